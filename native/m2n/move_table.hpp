// SPDX-License-Identifier: Apache-2.0
// What one rank executes, free of addresses: contract/m2n.ts in C++. A number that the contract does not allow is -1 here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "generated/contract.hpp"

namespace nccl_ext {

// Strided moves, structure of arrays, sorted by (stage, peer, tensor).
struct MoveTable {
  std::size_t length = 0;
  std::vector<std::int32_t> peer;
  std::vector<std::uint8_t> stage;
  std::vector<std::int32_t> tensor;        // at the receiver: its destination
  std::vector<std::int32_t> sourceTensor;  // at the sender: its source in stage 0, its destination in stage 1
  std::vector<std::int64_t> sourceOffset;  // bytes
  std::vector<std::int64_t> destinationOffset;
  std::vector<std::int64_t> inner;   // bytes of a run, elements where it converts
  std::vector<std::int64_t> counts;  // kMoveLoops per move, outermost first
  std::vector<std::int64_t> sourceStrides;
  std::vector<std::int64_t> destinationStrides;
  std::vector<std::uint16_t> transform;
};

struct TransferProgram {
  int rank = -1;
  int size = -1;
  std::string digest;
  MoveTable sends;
  std::optional<MoveTable> receives;
  std::vector<std::int32_t> receivePeers;
  std::vector<std::int32_t> forwardPeers;
};

// Bytes of one unit of `inner` on either side.
struct UnitBytes {
  std::int64_t source = 1;
  std::int64_t destination = 1;
};

// None for a conversion that kernels do not know.
std::optional<UnitBytes> unitBytesOf(std::uint16_t transform);

// Whether a move has nothing to do.
bool isEmptyMove(const MoveTable& table, std::size_t move);

// Bytes of a move whose units have `unit` bytes. Products beyond 2^63 wrap: such a move lies out of bounds.
std::int64_t bytesOf(const MoveTable& table, std::size_t move, std::int64_t unit);

// Bytes from the first to beyond the last byte that a non-empty move touches on one side, relative to its offset; -1 when
// that is 2^62 or more.
std::int64_t extentOf(const MoveTable& table, std::size_t move, const std::vector<std::int64_t>& strides,
                      std::int64_t unit);

}  // namespace nccl_ext
