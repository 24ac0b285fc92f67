// SPDX-License-Identifier: Apache-2.0
// Memory of another library of this process, as the fake driver makes it.
#pragma once

#include <cstdint>

#include "tests/fake/fake_driver.hpp"

namespace nccl_ext::test {

class Foreign {
 public:
  explicit Foreign(fake::Memory memory, std::size_t bytes = 4096, int parts = 1, int device = 0)
      : address_(fake::driver().allocate(memory, device, bytes, parts)) {}
  ~Foreign() { fake::driver().release(address_); }
  Foreign(const Foreign&) = delete;
  Foreign& operator=(const Foreign&) = delete;

  std::uint8_t* data() const { return static_cast<std::uint8_t*>(address_); }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(address_); }

 private:
  void* address_;
};

// What the fake driver rounds virtual memory to.
inline constexpr std::int64_t kMappingBytes = 2 << 20;

}  // namespace nccl_ext::test
