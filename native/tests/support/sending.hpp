// SPDX-License-Identifier: Apache-2.0
// Ranks that send to each other what they do not write, moves for them, and what they must have done.
#pragma once

#include <cstring>
#include <random>

#include "m2n/transfer_paths.hpp"
#include "tests/support/moves.hpp"

namespace nccl_ext::test {

inline constexpr std::int64_t kBytes = 1 << 16;

// The first group of a communicator takes this long, as where NCCL connects ranks.
struct SlowConnections {
  explicit SlowConnections(int milliseconds) {
    setenv("FAKE_NCCL_CONNECT_MS", std::to_string(milliseconds).c_str(), 1);
  }
  ~SlowConnections() { unsetenv("FAKE_NCCL_CONNECT_MS"); }
};

struct SendingRanks : MovingRanks {
  explicit SendingRanks(int count, Timeout timeout = Timeout(5000), std::int64_t bytes = kBytes)
      : MovingRanks(count, bytes, timeout) {}

  std::vector<Handle> sent(const std::vector<TestMove>& moves, StagingLimits staging = {}, bool verify = false,
                           const std::string& path = "sendrecv") {
    std::vector<PrepareConfig> configs;
    for (int rank = 0; rank < static_cast<int>(handles.size()); rank++) {
      configs.push_back(configOf(rank, moves));
      configs.back().path = path;
      configs.back().staging = staging;
      configs.back().verify = verify;
    }
    std::vector<Handle> transfers;
    for (const auto& outcome : prepare(std::move(configs))) transfers.push_back(valueOf(outcome));
    return transfers;
  }

  void run(const std::vector<Handle>& transfers) {
    for (std::size_t rank = 0; rank < handles.size(); rank++)
      ASSERT_TRUE(runtime.enqueueTransfer(transfers[rank], streams[rank]));
    for (const Handle stream : streams) {
      const Status done = synchronize(stream);
      EXPECT_TRUE(done) << (done ? "" : done.error().detail);
    }
  }

  void fill(std::uint32_t seed) {
    std::mt19937 random(seed);
    for (const Handle buffer : sources) {
      std::uint8_t* bytes = bytesOf(buffer);
      for (std::int64_t i = 0; i < kBytes; i++) bytes[i] = static_cast<std::uint8_t>(random());
    }
    for (const Handle buffer : destinations) std::memset(bytesOf(buffer), 0xee, kBytes);
  }
};

// Byte by byte, after all moves of stage 0.
inline void expect(SendingRanks& world, const std::vector<TestMove>& moves) {
  std::vector<std::vector<std::uint8_t>> want(world.handles.size(), std::vector<std::uint8_t>(kBytes, 0xee));
  for (const TestMove& move : moves) {
    const std::uint8_t* from = world.bytesOf(world.sources[static_cast<std::size_t>(move.from)]);
    for (std::int64_t a = 0; a < move.counts[0]; a++) {
      for (std::int64_t b = 0; b < move.counts[1]; b++) {
        for (std::int64_t c = 0; c < move.counts[2]; c++) {
          const std::int64_t source =
              move.source + a * move.sourceStrides[0] + b * move.sourceStrides[1] + c * move.sourceStrides[2];
          const std::int64_t destination = move.destination + a * move.destinationStrides[0] +
                                           b * move.destinationStrides[1] + c * move.destinationStrides[2];
          std::memcpy(want[static_cast<std::size_t>(move.to)].data() + destination, from + source,
                      static_cast<std::size_t>(move.inner));
        }
      }
    }
  }
  for (std::size_t rank = 0; rank < want.size(); rank++) {
    EXPECT_EQ(std::memcmp(want[rank].data(), world.bytesOf(world.destinations[rank]), kBytes), 0) << "rank " << rank;
  }
}

// Strided moves among all ranks, which write no byte twice.
inline std::vector<TestMove> randomMoves(std::mt19937& random, int ranks) {
  const auto pick = [&](unsigned below) { return static_cast<std::int64_t>(random() % below); };
  std::vector<TestMove> moves;
  std::vector<std::int64_t> ends(static_cast<std::size_t>(ranks), 0);
  for (int i = 0; i < 30; i++) {
    TestMove move;
    move.from = static_cast<int>(pick(static_cast<unsigned>(ranks)));
    move.to = static_cast<int>(pick(static_cast<unsigned>(ranks)));
    move.inner = 1 + pick(90);
    move.counts = {1 + pick(3), 1 + pick(3), 1 + pick(4)};
    const std::int64_t row = move.inner + pick(5);
    move.destinationStrides = {row * move.counts[2] * move.counts[1], row * move.counts[2], row};
    move.sourceStrides = {pick(2000), pick(500), pick(200)};
    move.source = pick(4000);
    std::int64_t& end = ends[static_cast<std::size_t>(move.to)];
    move.destination = end + pick(7);
    end = move.destination + row * move.counts[0] * move.counts[1] * move.counts[2];
    if (end <= kBytes) moves.push_back(move);
  }
  return moves;
}

}  // namespace nccl_ext::test
