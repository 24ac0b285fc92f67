// SPDX-License-Identifier: Apache-2.0
// Brings kernels to the device before any of them runs: what a first launch would wait for, a kernel that waits for a peer holds up.
#pragma once

#include <cuda_runtime_api.h>

namespace nccl_ext {

// Loads a kernel's code, and lets stacks be as large as its own: where they are not, the driver takes more memory at the first launch, and
// waits for all that runs on the GPU first. Of the current device.
template <class Kernel>
cudaError_t preloadKernel(Kernel* kernel, cudaFuncAttributes& attributes) {
  std::size_t most = 0;
  cudaError_t result = cudaFuncGetAttributes(&attributes, kernel);
  if (result == cudaSuccess) result = cudaDeviceGetLimit(&most, cudaLimitStackSize);
  if (result != cudaSuccess || attributes.localSizeBytes <= most) return result;
  return cudaDeviceSetLimit(cudaLimitStackSize, attributes.localSizeBytes);
}

template <class... Kernels>
cudaError_t preloadKernels(Kernels*... kernels) {
  cudaFuncAttributes attributes = {};
  cudaError_t result = cudaSuccess;
  ((result = result == cudaSuccess ? preloadKernel(kernels, attributes) : result), ...);
  return result;
}

}  // namespace nccl_ext
