// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 with the functions that the probes of driver and devices call. FAKE_CUDA_VERSION, FAKE_CUDA_INIT and
// FAKE_CUDA_DEVICES are set per variant by the build; FAKE_CUDA_DEVICES of the environment wins.
#include <cstddef>
#include <cstdio>
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

extern "C" int cuDeviceGetName(char* name, int length, int device) {
  std::snprintf(name, static_cast<std::size_t>(length), "Fake GPU %d", device);
  return 0;
}

extern "C" int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  for (int i = 0; i < 16; i++) uuid[i] = static_cast<unsigned char>(16 * i + device);
  return 0;
}

extern "C" int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = std::size_t{80} << 30;
  return 0;
}

extern "C" int cuDeviceGetAttribute(int* value, int attribute, int) {
  switch (attribute) {
    case 16:
      *value = 132;
      return 0;  // multiprocessors
    case 75:
      *value = 9;
      return 0;  // compute capability
    case 76:
      *value = 0;
      return 0;
    default:
      return 1;
  }
}

// Devices 0 and 1 are peers; the others are alone.
extern "C" int cuDeviceCanAccessPeer(int* can, int device, int peer) {
  *can = device + peer == 1;
  return 0;
}
