// SPDX-License-Identifier: Apache-2.0
// The shared memory of a CTA: garbage at first, each variable a block of its own, so that AddressSanitizer sees what reaches beyond it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace nccl_ext::simt {

class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept = default;
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  // The block of `tag`, made when it is asked for first.
  void* variable(const void* tag, std::size_t bytes, std::size_t alignment);

  // What the launch asked for; null where that was nothing.
  void* dynamic() const;

  // Addresses as 32-bit numbers, as instructions have them. at: null where `bytes` from there are not in one block.
  std::uint32_t addressOf(const void* place) const;
  void* at(std::uint32_t address, std::size_t bytes) const;

 private:
  struct Block {
    const void* tag;
    std::byte* memory;
    std::size_t bytes;
    std::size_t alignment;
    std::uint32_t address;
  };
  std::vector<Block> blocks_;
  std::uint32_t next_ = 1024;
};

// Bytes that nothing should make sense of; different ones each time.
void fillWithGarbage(void* memory, std::size_t bytes);

}  // namespace nccl_ext::simt
