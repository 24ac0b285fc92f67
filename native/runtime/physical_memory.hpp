// SPDX-License-Identifier: Apache-2.0
// Physical memory that cuMemCreate made, of this process or imported from another one, as a counted reference. NCCL's
// allocations and PyTorch's expandable segments are made of it; cudaMalloc's are not.
#pragma once

#include <cstdint>

#include "runtime/descriptor.hpp"
#include "runtime/driver_api.hpp"

namespace nccl_ext {

class PhysicalMemory {
 public:
  // What is mapped at `address`; empty for memory of another kind.
  static PhysicalMemory at(std::uint64_t address);
  // From a descriptor, which stays the caller's. ERR_INVALID_ARGUMENT when it is of something else.
  static Outcome<PhysicalMemory> import(int descriptor, const char* op);
  ~PhysicalMemory();
  PhysicalMemory(PhysicalMemory&& other) noexcept;
  PhysicalMemory& operator=(PhysicalMemory&&) = delete;

  explicit operator bool() const { return handle_ != 0; }
  CUmemGenericAllocationHandle get() const { return handle_; }
  Outcome<CUmemAllocationProp> properties(const char* op) const;
  // A descriptor by which others import it; child processes do not inherit it. ERR_UNSUPPORTED: it was made without one,
  // or it is another process's.
  Outcome<Descriptor> describe(const char* op) const;

 private:
  explicit PhysicalMemory(CUmemGenericAllocationHandle handle) : handle_(handle) {}

  CUmemGenericAllocationHandle handle_ = 0;
};

}  // namespace nccl_ext
