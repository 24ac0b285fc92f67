// SPDX-License-Identifier: Apache-2.0
// The part of the CUDA runtime that kernels' files and tests of tests/gpu/m2n call, on the machine of tests/simt. Memory begins as
// garbage and at multiples of 256.
#include <cuda_runtime_api.h>

#include <cstring>
#include <limits>
#include <new>

#include "tests/simt/machine.hpp"

namespace {

using nccl_ext::simt::machine;

constexpr std::align_val_t kAlignment{256};

cudaError_t finish() {
  return machine().run().empty() ? cudaSuccess : cudaErrorLaunchFailure;
}

void* allocate(std::size_t bytes) {
  void* memory = ::operator new(bytes, kAlignment);
  nccl_ext::simt::fillWithGarbage(memory, bytes);
  return memory;
}

}  // namespace

extern "C" {

cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) {
  return machine().problem().c_str();
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 227 << 10;
  return cudaSuccess;
}
// Fibers have stacks of their own.
cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit) {
  *value = std::numeric_limits<std::size_t>::max();
  return cudaSuccess;
}
cudaError_t cudaDeviceSetLimit(cudaLimit, std::size_t) {
  return cudaErrorInvalidValue;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->sharedSizeBytes = 1024;
  attributes->binaryVersion = attributes->ptxVersion = 90;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  *memory = allocate(bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  ::operator delete(memory, kAlignment);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  *memory = allocate(bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  return cudaFree(memory);
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  const cudaError_t result = finish();
  if (bytes > 0) std::memcpy(to, from, bytes);
  return result;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  static std::uintptr_t streams = 0;
  *stream = reinterpret_cast<cudaStream_t>(++streams);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  return finish();
}

}  // extern "C"
