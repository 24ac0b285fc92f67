// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 with the three functions that the driver probe calls. FAKE_CUDA_VERSION, FAKE_CUDA_INIT and
// FAKE_CUDA_DEVICES are set per variant by the build; FAKE_CUDA_DEVICES of the environment wins.
#include <cstdlib>

extern "C" int cuInit(unsigned) {
  return FAKE_CUDA_INIT;
}

extern "C" int cuDriverGetVersion(int* version) {
  *version = FAKE_CUDA_VERSION;
  return 0;
}

extern "C" int cuDeviceGetCount(int* count) {
  const char* wanted = std::getenv("FAKE_CUDA_DEVICES");
  *count = wanted == nullptr ? FAKE_CUDA_DEVICES : std::atoi(wanted);
  return 0;
}
