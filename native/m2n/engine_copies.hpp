// SPDX-License-Identifier: Apache-2.0
// Which moves copy engines can do, and as how many copies. Pure.
#pragma once

#include <optional>
#include <string>

#include "m2n/bundle_moves.hpp"

namespace nccl_ext {

// `planes` x `rows` runs of `width` bytes. A plane has the pitch times the height; both are multiples of nothing.
struct EngineCopy {
  std::uint64_t source = 0;
  std::uint64_t destination = 0;  // as this rank sees it
  std::uint64_t width = 0;
  std::uint64_t rows = 1, planes = 1;
  std::uint64_t sourcePitch = 0, destinationPitch = 0;    // bytes from row to row
  std::uint64_t sourceHeight = 1, destinationHeight = 1;  // rows from plane to plane
};

struct EngineCopies {
  std::vector<EngineCopy> copies;
  std::uint64_t bytes = 0;  // of one execution
};

// A run of a strided copy that is shorter costs an engine more than its bytes do.
inline constexpr std::uint64_t kLeastEngineRun = 4096;
// Copies become nodes of a graph; more take long to prepare.
inline constexpr std::size_t kMostEngineCopies = 16'384;

// Over NVLink an H200's engine moves as many bytes a second as kernels do; but each execution takes 11 us more, for its gate and the graph,
// and each copy 3.4 us to start. What is as large as this pays a percent for it at most, and leaves the SMs to others.
inline constexpr std::uint64_t kLargeEngineBytes = std::uint64_t{1} << 30;   // of a stage
inline constexpr std::uint64_t kLargeEngineCopy = std::uint64_t{128} << 20;  // on average

// A move that engines cannot do: its place in `moves`, and the reason, which goes on from "tensor 3 ".
struct EngineRefusal {
  std::size_t move = 0;
  std::string reason;
};

// The copies of all moves, or in `refusal` why not. Moves are checked, as for bundleMoves.
EngineCopies engineCopiesOf(const std::vector<Move>& moves, std::optional<EngineRefusal>& refusal);

// Whether they are all of one run each, and large: between GPUs engines are as fast with those as kernels.
bool areLargeRuns(const EngineCopies& copies);

// `moves`, sorted by peer, from another peer on for each rank, so that senders do not all begin with the same receiver: engines make
// one copy after the other.
std::vector<Move> fromOwnPeerOn(std::vector<Move> moves, int rank);

}  // namespace nccl_ext
