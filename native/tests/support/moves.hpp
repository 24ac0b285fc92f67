// SPDX-License-Identifier: Apache-2.0
// Short forms for tests of transfers: programs from lists of moves, and the same move on every rank.
#pragma once

#include <algorithm>
#include <array>
#include <set>

#include "tests/support/harness.hpp"

namespace nccl_ext::test {

using Loops = std::array<std::int64_t, 3>;

// One strided move; what is left out is one contiguous run.
struct TestMove {
  int from = 0, to = 0;
  std::int64_t inner = 0;
  std::int64_t source = 0, destination = 0;
  Loops counts{1, 1, 1}, sourceStrides{}, destinationStrides{};
  int stage = 0, tensor = 0;
  std::uint16_t transform = 0;
};

inline MoveTable tableOf(std::vector<TestMove> moves, int TestMove::* peer) {
  std::stable_sort(moves.begin(), moves.end(), [peer](const TestMove& a, const TestMove& b) {
    return std::tie(a.stage, a.*peer, a.tensor) < std::tie(b.stage, b.*peer, b.tensor);
  });
  MoveTable table;
  table.length = moves.size();
  for (const TestMove& move : moves) {
    table.peer.push_back(move.*peer);
    table.stage.push_back(static_cast<std::uint8_t>(move.stage));
    table.tensor.push_back(move.tensor);
    table.sourceTensor.push_back(move.tensor);
    table.sourceOffset.push_back(move.source);
    table.destinationOffset.push_back(move.destination);
    table.inner.push_back(move.inner);
    table.transform.push_back(move.transform);
    for (int loop = 0; loop < 3; loop++) {
      const auto at = static_cast<std::size_t>(loop);
      table.counts.push_back(move.counts[at]);
      table.sourceStrides.push_back(move.sourceStrides[at]);
      table.destinationStrides.push_back(move.destinationStrides[at]);
    }
  }
  return table;
}

inline TransferProgram programOf(int rank, int size, const std::vector<TestMove>& moves) {
  TransferProgram program;
  program.rank = rank;
  program.size = size;
  program.digest = "test plan";
  std::vector<TestMove> sends, receives;
  std::set<std::int32_t> peers[2];
  for (const TestMove& move : moves) {
    if (move.from == rank) sends.push_back(move);
    if (move.to == rank) receives.push_back(move);
    if (move.to == rank && move.from != rank) peers[move.stage].insert(move.from);
  }
  program.sends = tableOf(sends, &TestMove::to);
  program.receives = tableOf(receives, &TestMove::from);
  program.receivePeers.assign(peers[0].begin(), peers[0].end());
  program.forwardPeers.assign(peers[1].begin(), peers[1].end());
  return program;
}

// Ranks with a stream, one source and one destination buffer each, which are tensor 0.
struct MovingRanks : Harness {
  explicit MovingRanks(int count, std::int64_t bytes = 256, Timeout timeout = Timeout(2000)) {
    handles = ranks(count, timeout);
    for (const Handle rank : handles) {
      streams.push_back(valueOf(runtime.createStream(rank)));
      sources.push_back(valueOf(runtime.allocate(rank, bytes, MemoryKind::kSymmetric)));
      destinations.push_back(valueOf(runtime.allocate(rank, bytes, MemoryKind::kPlain)));
    }
  }
  ~MovingRanks() { dispose(handles); }

  // By rank, where the fake keeps device memory.
  std::uint8_t* bytesOf(Handle buffer) {
    return reinterpret_cast<std::uint8_t*>(static_cast<std::uintptr_t>(valueOf(runtime.bufferAddress(buffer))));
  }

  PrepareConfig configOf(int rank, const std::vector<TestMove>& moves) {
    const auto at = static_cast<std::size_t>(rank);
    PrepareConfig config;
    config.program = programOf(rank, static_cast<int>(handles.size()), moves);
    config.sources = {{sources[at]}, {0}};
    config.destinations = {{destinations[at]}, {0}};
    return config;
  }

  std::vector<Outcome<Handle>> prepare(std::vector<PrepareConfig> configs) {
    std::vector<std::optional<Outcome<Handle>>> results(configs.size());
    for (std::size_t rank = 0; rank < configs.size(); rank++) {
      runtime.prepareTransfer(handles[rank], std::move(configs[rank]),
                              [&results, rank](Outcome<Handle> result) { results[rank].emplace(std::move(result)); });
    }
    until([&] { return std::all_of(results.begin(), results.end(), [](const auto& one) { return one.has_value(); }); });
    std::vector<Outcome<Handle>> outcomes;
    for (auto& result : results) outcomes.push_back(std::move(result).value());
    return outcomes;
  }

  std::vector<Handle> prepared(const std::vector<TestMove>& moves) {
    std::vector<PrepareConfig> configs;
    for (std::size_t rank = 0; rank < handles.size(); rank++)
      configs.push_back(configOf(static_cast<int>(rank), moves));
    std::vector<Handle> transfers;
    for (const auto& outcome : prepare(std::move(configs))) transfers.push_back(valueOf(outcome));
    return transfers;
  }

  Status disposeTransfer(Handle transfer) {
    std::optional<Status> result;
    runtime.disposeTransfer(transfer, [&](Status status) { result.emplace(std::move(status)); });
    until([&] { return result.has_value(); });
    return result.value_or(fail(ErrorCode::kInternal, "test", "no result"));
  }

  std::vector<Handle> handles, streams, sources, destinations;
};

}  // namespace nccl_ext::test
