// SPDX-License-Identifier: Apache-2.0
// File descriptors: one that is closed with its owner, and a copy of another process's.
#pragma once

#include <cstdint>

#include "runtime/error.hpp"

namespace nccl_ext {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;

  int get() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

// A descriptor of this process for what `descriptor` is in process `process`. ERR_UNSUPPORTED: the kernel does not allow
// it. ERR_INVALID_ARGUMENT: there is no such process or descriptor.
Outcome<Descriptor> copyFromProcess(std::int64_t process, int descriptor, const char* op);

}  // namespace nccl_ext
