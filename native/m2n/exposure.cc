// SPDX-License-Identifier: Apache-2.0
#include "m2n/exposure.hpp"

#include <unistd.h>

#include <random>

#include "m2n/prepare_part.hpp"
#include "runtime/identity.hpp"

namespace nccl_ext {

const Whereabouts& whereabouts() {
  // Process ids alone are not enough: containers of one machine use the same ones.
  static const Whereabouts here = [] {
    std::random_device random;
    return Whereabouts{hostIdentity(),
                       std::to_string(getpid()) + "-" + std::to_string(random()) + "-" + std::to_string(random())};
  }();
  return here;
}

Exposure exposureOf(const DeviceMemory& memory) {
  Exposure exposure;
  exposure.device = memory.device();
  exposure.address = reinterpret_cast<std::uint64_t>(memory.address());
  exposure.bytes = static_cast<std::int64_t>(memory.bytes());
  return exposure;
}

Exposure exposureOf(const DeviceMemory& memory, std::optional<Exported>& exported) {
  Exposure exposure = exposureOf(memory);
  if (!exported) {
    Outcome<Exported> made = exportShare(memory, kPrepareOp);
    if (!made) {
      exposure.why = made.error().detail;
      return exposure;
    }
    exported.emplace(std::move(made.value()));
  }
  exposure.share = exported->share;
  exposure.serial = exported->serial;
  return exposure;
}

}  // namespace nccl_ext
