// SPDX-License-Identifier: Apache-2.0
#include "runtime/probe_devices.hpp"

#include <dlfcn.h>

#include <array>
#include <cstddef>

namespace nccl_ext {
namespace {

// CUdevice_attribute values of cuda.h, which is not needed for anything else here.
constexpr int kMultiprocessorCount = 16;
constexpr int kComputeCapabilityMajor = 75;
constexpr int kComputeCapabilityMinor = 76;

constexpr std::size_t kUuidBytes = 16;
constexpr std::size_t kNameBytes = 256;

// A driver function; one that the library lacks, or that fails, gives false.
template <class... Arguments>
class Query {
 public:
  Query(void* library, const char* name)
      : function_(library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name))) {}
  explicit operator bool() const { return function_ != nullptr; }
  bool operator()(Arguments... arguments) const { return function_ != nullptr && function_(arguments...) == 0; }

 private:
  using Function = int (*)(Arguments...);
  Function function_;
};

struct Driver {
  explicit Driver(void* library)
      : name(library, "cuDeviceGetName"),
        uuid(library, "cuDeviceGetUuid_v2"),
        olderUuid(library, "cuDeviceGetUuid"),
        memory(library, "cuDeviceTotalMem_v2"),
        attribute(library, "cuDeviceGetAttribute"),
        canAccessPeer(library, "cuDeviceCanAccessPeer") {}
  Query<char*, int, int> name;
  // The second version tells the instances of a divided GPU (MIG) apart.
  Query<unsigned char*, int> uuid, olderUuid;
  Query<std::size_t*, int> memory;
  Query<int*, int, int> attribute;
  Query<int*, int, int> canAccessPeer;
};

std::string uuidText(const std::array<unsigned char, kUuidBytes>& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "GPU-";
  for (std::size_t i = 0; i < bytes.size(); i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

int attributeOf(const Driver& driver, int device, int attribute) {
  int value = 0;
  return driver.attribute(&value, attribute, device) ? value : 0;
}

// A CUdevice is the device's index: cuDeviceGet gives nothing else.
ProbedDevice describe(const Driver& driver, int index, int count) {
  ProbedDevice device;
  device.index = index;
  std::array<char, kNameBytes> name{};
  if (driver.name(name.data(), static_cast<int>(name.size()) - 1, index)) device.name = name.data();
  std::array<unsigned char, kUuidBytes> uuid{};
  if (driver.uuid ? driver.uuid(uuid.data(), index) : driver.olderUuid(uuid.data(), index))
    device.uuid = uuidText(uuid);
  const int major = attributeOf(driver, index, kComputeCapabilityMajor);
  if (major > 0) {
    device.computeCapability =
        std::to_string(major) + "." + std::to_string(attributeOf(driver, index, kComputeCapabilityMinor));
  }
  device.multiprocessors = attributeOf(driver, index, kMultiprocessorCount);
  std::size_t bytes = 0;
  if (driver.memory(&bytes, index)) device.memoryBytes = bytes;
  for (int peer = 0; peer < count; peer++) {
    int can = 0;
    if (peer != index && driver.canAccessPeer(&can, index, peer) && can != 0) device.peers.push_back(peer);
  }
  return device;
}

}  // namespace

std::vector<ProbedDevice> probeDevices(int count, const std::string& library) {
  // Stays loaded, as in probeDriver.
  const Driver driver(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL));
  std::vector<ProbedDevice> devices;
  for (int index = 0; index < count; index++) devices.push_back(describe(driver, index, count));
  return devices;
}

}  // namespace nccl_ext
