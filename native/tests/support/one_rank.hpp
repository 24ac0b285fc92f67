// SPDX-License-Identifier: Apache-2.0
// What most runtime tests begin with: one rank with a stream and a buffer, and bytes to move.
#pragma once

#include "tests/support/harness.hpp"

namespace nccl_ext::test {

inline HostSpan spanOf(Bytes& bytes) {
  return {bytes.data(), bytes.size(), std::make_shared<int>(0)};
}

inline Bytes pattern(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; i++) bytes[i] = static_cast<std::uint8_t>(i * 31 + i / 251);
  return bytes;
}

// One rank with a stream and a symmetric buffer.
struct OneRank : Harness {
  explicit OneRank(std::int64_t bytes = 1024) {
    handles = ranks(1);
    rank = handles.at(0);
    stream = valueOf(runtime.createStream(rank));
    buffer = valueOf(runtime.allocate(rank, bytes, MemoryKind::kSymmetric));
  }
  std::vector<Handle> handles;
  Handle rank = 0, stream = 0, buffer = 0;
};

}  // namespace nccl_ext::test
