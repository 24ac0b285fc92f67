// SPDX-License-Identifier: Apache-2.0
#include "tests/fake/fake_cudart.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tests/fake/fake_cudart_parts.hpp"
#include "tests/fake/fake_driver.hpp"

namespace {

thread_local cudaError_t lastError = cudaSuccess;
// Of every device.
std::atomic<std::size_t> stackLimit{1024};

int deviceCount() {
  const char* wanted = std::getenv("FAKE_CUDA_DEVICES");
  return wanted == nullptr ? 1 : std::atoi(wanted);
}

}  // namespace

namespace nccl_ext::fake {

cudaError_t answer(cudaError_t result) {
  if (result != cudaSuccess) lastError = result;
  return result;
}

int liveObjects() {
  return live;
}

}  // namespace nccl_ext::fake

using nccl_ext::fake::answer;

extern "C" {

cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit limit) {
  *value = stackLimit;
  return answer(limit == cudaLimitStackSize ? cudaSuccess : cudaErrorUnsupportedLimit);
}
cudaError_t cudaDeviceSetLimit(cudaLimit limit, std::size_t value) {
  if (limit != cudaLimitStackSize) return answer(cudaErrorUnsupportedLimit);
  stackLimit = value;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  return std::exchange(lastError, cudaSuccess);
}
const char* cudaGetErrorName(cudaError_t) {
  return "fakeError";
}
const char* cudaGetErrorString(cudaError_t) {
  return "fake error";
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = deviceCount();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= deviceCount()) return answer(cudaErrorInvalidDevice);
  nccl_ext::fake::driver().setCurrent(device);
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = nccl_ext::fake::driver().current();
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "fake GPU");
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  if (attribute != cudaDevAttrMaxSharedMemoryPerBlockOptin) return answer(cudaErrorInvalidValue);
  *value = 227 << 10;
  return cudaSuccess;
}
// As the fake driver's memory: GPUs 0 and 1 reach each other, others nobody.
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  const int device = nccl_ext::fake::driver().current();
  if (peer > 1 || device > 1 || peer == device) return answer(cudaErrorPeerAccessUnsupported);
  return cudaSuccess;
}

}  // extern "C"
