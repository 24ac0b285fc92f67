// SPDX-License-Identifier: Apache-2.0
#include "tests/simt/memory.hpp"

namespace nccl_ext::simt {

void checkAligned(const void* place, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(place) % bytes == 0 || machine().current() == nullptr) return;
  machine().fail("an access of " + std::to_string(bytes) + " bytes at no multiple of them");
}

void beforeRead(const void* word, std::uint64_t holds) {
  Thread* const self = machine().current();
  if (self == nullptr) return;
  const bool again = self->lastRead == word && self->lastSeen == holds;
  self->lastRead = word;
  self->lastSeen = holds;
  if (again || machine().pick(4) == 0) machine().yield();
}

void beforeWrite() {
  if (machine().current() == nullptr) return;
  if (machine().pick(4) == 0) machine().yield();
  machine().moved();
}

}  // namespace nccl_ext::simt
