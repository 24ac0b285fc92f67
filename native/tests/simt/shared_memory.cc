// SPDX-License-Identifier: Apache-2.0
#include "tests/simt/shared_memory.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace nccl_ext::simt {

SharedMemory::~SharedMemory() {
  for (const Block& block : blocks_) ::operator delete(block.memory, std::align_val_t(block.alignment));
}

void* SharedMemory::variable(const void* tag, std::size_t bytes, std::size_t alignment) {
  for (const Block& block : blocks_) {
    if (block.tag == tag) return block.memory;
  }
  const std::size_t most = std::max<std::size_t>(alignment, 16);
  auto* memory = static_cast<std::byte*>(::operator new(bytes, std::align_val_t(most)));
  fillWithGarbage(memory, bytes);
  blocks_.push_back({tag, memory, bytes, most, next_});
  // As far from each other as an address may go astray.
  next_ += static_cast<std::uint32_t>((bytes + 2047) / 1024 * 1024);
  return memory;
}

void* SharedMemory::dynamic() const {
  return blocks_.empty() || blocks_[0].tag != nullptr ? nullptr : blocks_[0].memory;
}

std::uint32_t SharedMemory::addressOf(const void* place) const {
  const auto* byte = static_cast<const std::byte*>(place);
  for (const Block& block : blocks_) {
    if (byte >= block.memory && byte < block.memory + block.bytes)
      return block.address + static_cast<std::uint32_t>(byte - block.memory);
  }
  return 0;
}

void* SharedMemory::at(std::uint32_t address, std::size_t bytes) const {
  for (const Block& block : blocks_) {
    if (address >= block.address && address + bytes <= block.address + block.bytes)
      return block.memory + (address - block.address);
  }
  return nullptr;
}

void fillWithGarbage(void* memory, std::size_t bytes) {
  static std::uint64_t state = 88172645463325252;
  auto* to = static_cast<std::byte*>(memory);
  for (std::size_t i = 0; i < bytes; i += 8) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(to + i, &state, std::min<std::size_t>(8, bytes - i));
  }
}

}  // namespace nccl_ext::simt
