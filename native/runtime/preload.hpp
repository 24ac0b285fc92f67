// SPDX-License-Identifier: Apache-2.0
// Brings kernels to the device before any of them runs: what a first launch would wait for, a kernel that waits for a peer holds up.
#pragma once

#include <cuda_runtime_api.h>

namespace nccl_ext {

// Lets stacks on the current device be as large as a kernel's. Where they are not, the driver takes more memory at the first launch, and
// waits for all that runs on the GPU first.
inline cudaError_t reserveStack(std::size_t bytes) {
  std::size_t most = 0;
  const cudaError_t result = cudaDeviceGetLimit(&most, cudaLimitStackSize);
  return result != cudaSuccess || bytes <= most ? result : cudaDeviceSetLimit(cudaLimitStackSize, bytes);
}

// Loads a kernel's code too.
template <class Kernel>
cudaError_t preloadKernel(Kernel* kernel, cudaFuncAttributes& attributes) {
  const cudaError_t result = cudaFuncGetAttributes(&attributes, kernel);
  return result == cudaSuccess ? reserveStack(attributes.localSizeBytes) : result;
}

template <class... Kernels>
cudaError_t preloadKernels(Kernels*... kernels) {
  cudaFuncAttributes attributes = {};
  cudaError_t result = cudaSuccess;
  ((result = result == cudaSuccess ? preloadKernel(kernels, attributes) : result), ...);
  return result;
}

}  // namespace nccl_ext
