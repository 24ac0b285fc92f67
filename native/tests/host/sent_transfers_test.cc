// SPDX-License-Identifier: Apache-2.0
// Transfers between ranks that do not write into each other's memory, on fakes of CUDA and NCCL: rounds, forwarding, graphs,
// verification, which pairs send and why, and ends of waits that NCCL itself would never end.
#include <cstring>
#include <random>

#include "m2n/transfer_paths.hpp"
#include "tests/support/gpus.hpp"
#include "tests/support/moves.hpp"

namespace nccl_ext::test {
namespace {

constexpr std::int64_t kBytes = 1 << 16;

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
void expect(SendingRanks& world, const std::vector<TestMove>& moves) {
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
std::vector<TestMove> randomMoves(std::mt19937& random, int ranks) {
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

TEST(SentTransfers, MoveEveryByteInRounds) {
  SendingRanks world(4);
  std::mt19937 random(5);
  for (const StagingLimits& staging : {StagingLimits{}, StagingLimits{512, 64}, StagingLimits{2048, 5}}) {
    const std::vector<TestMove> moves = randomMoves(random, 4);
    const auto transfers = world.sent(moves, staging);
    for (std::uint32_t seed = 1; seed < 4; seed++) {
      world.fill(seed);
      world.run(transfers);
      expect(world, moves);
    }
    for (std::size_t rank = 0; rank < 4; rank++) {
      std::int64_t written = 0;
      for (const TestMove& move : moves)
        written +=
            move.from == static_cast<int>(rank) ? move.inner * move.counts[0] * move.counts[1] * move.counts[2] : 0;
      EXPECT_EQ(world.runtime.progressOf(transfers[rank]).writtenBytes, 3 * written);
      EXPECT_EQ(world.runtime.progressOf(transfers[rank]).completed, 3);
      EXPECT_TRUE(world.disposeTransfer(transfers[rank]));
    }
  }
}

TEST(SentTransfers, ConvertAndForwardAndVerify) {
  SendingRanks world(3);
  TestMove cast{0, 1, 300, 0, 64};
  cast.transform = castTransform(DType::kF32, DType::kBf16);
  const std::vector<TestMove> moves = {{0, 1, 13}, cast, {1, 2, 700, 0, 0, {1, 1, 1}, {}, {}, 1}, {2, 2, 9, 0, 4096}};
  const auto transfers = world.sent(moves, {256, 64}, true);
  for (int round = 0; round < 3; round++) {
    world.fill(static_cast<std::uint32_t>(round));
    world.run(transfers);
    EXPECT_EQ(std::memcmp(world.bytesOf(world.destinations[2]), world.bytesOf(world.destinations[1]), 700), 0);
    EXPECT_EQ(std::memcmp(world.bytesOf(world.destinations[1]), world.bytesOf(world.sources[0]), 13), 0);
    EXPECT_EQ(std::memcmp(world.bytesOf(world.destinations[2]) + 4096, world.bytesOf(world.sources[2]), 9), 0);
  }
  EXPECT_EQ(world.runtime.progressOf(transfers[2]).completed, 3);
}

TEST(SentTransfers, FindWhatArrivedWrong) {
  SendingRanks world(2);
  const std::vector<TestMove> moves = {{0, 1, 64}};
  std::vector<PrepareConfig> configs = {world.configOf(0, moves), world.configOf(1, moves)};
  for (PrepareConfig& config : configs) {
    config.path = "sendrecv";
    config.verify = true;
  }
  configs[1].program.receives->destinationOffset[0] += 1;
  std::vector<Handle> transfers;
  for (const auto& outcome : world.prepare(configs)) transfers.push_back(valueOf(outcome));
  world.fill(3);
  for (std::size_t rank = 0; rank < 2; rank++)
    ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[rank], world.streams[rank]));
  EXPECT_TRUE(world.synchronize(world.streams[0]));
  EXPECT_EQ(codeOf(world.synchronize(world.streams[1])), ErrorCode::kVerify);
}

TEST(SentTransfers, RunFromGraphs) {
  SendingRanks world(2);
  const std::vector<TestMove> moves = {{0, 1, 5000}, {1, 0, 5000}};
  const auto transfers = world.sent(moves, {1024, 64});
  std::vector<Handle> graphs;
  for (std::size_t rank = 0; rank < 2; rank++) {
    ASSERT_TRUE(world.runtime.beginCapture(world.streams[rank]));
    ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[rank], world.streams[rank]));
    graphs.push_back(valueOf(world.runtime.endCapture(world.streams[rank])));
  }
  for (std::uint32_t seed = 1; seed < 4; seed++) {
    world.fill(seed);
    for (std::size_t rank = 0; rank < 2; rank++)
      ASSERT_TRUE(world.runtime.launchGraph(graphs[rank], world.streams[rank]));
    for (const Handle stream : world.streams) EXPECT_TRUE(world.synchronize(stream));
    expect(world, moves);
  }
}

// GPU 2 reaches nobody, control blocks neither.
TEST(SentTransfers, SendWhereMemoryCannotBeReached) {
  const Gpus gpus(3);
  SendingRanks world(3);
  const std::vector<TestMove> moves = {{0, 1, 700}, {0, 2, 900}, {2, 1, 500, 0, 1000}, {1, 1, 10, 0, 2000}};
  const auto transfers = world.sent(moves, {256, 64}, true, "auto");
  world.fill(9);
  world.run(transfers);
  expect(world, moves);
  const auto paths = world.runtime.pathsOf(transfers[0]);
  ASSERT_EQ(paths.size(), 2u);
  EXPECT_STREQ(paths[0].path, "mapped");
  EXPECT_STREQ(paths[1].path, "sendrecv");
  EXPECT_EQ(paths[1].bytes, 900);
  EXPECT_NE(paths[1].why.find("rank 0 cannot write to memory of rank 2"), std::string::npos) << paths[1].why;
  std::vector<PrepareConfig> configs;
  for (int rank = 0; rank < 3; rank++) {
    configs.push_back(world.configOf(rank, moves));
    configs.back().path = "mapped";
  }
  for (const auto& outcome : world.prepare(std::move(configs))) EXPECT_EQ(codeOf(outcome), ErrorCode::kUnsupported);
}

// Nothing but the host's watch finds that out.
TEST(SentTransfers, EndAfterTheTimeoutWhereRanksDoNotMeet) {
  const Gpus gpus(3);
  SendingRanks world(3, Timeout(300));
  const auto transfers = world.sent({{2, 0, 64}, {0, 2, 64}}, {}, false, "auto");
  ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[2], world.streams[2]));
  const Status failed = world.synchronize(world.streams[2]);
  ASSERT_EQ(codeOf(failed), ErrorCode::kTimeout) << failed.error().detail;
  EXPECT_EQ(failed.error().peer, 0);
  EXPECT_NE(failed.error().detail.find("rank 2 waited too long in transfer to exchange bytes with rank 0"),
            std::string::npos)
      << failed.error().detail;
  EXPECT_EQ(world.runtime.progressOf(transfers[2]).completed, 0);
}

// Ranks that meet wait for each other before NCCL does, so the missing one is known.
TEST(SentTransfers, NameARankThatDoesNotCome) {
  SendingRanks world(3, Timeout(200));
  const auto transfers = world.sent({{0, 1, 64}, {1, 2, 64}, {2, 0, 64}});
  for (const std::size_t rank : {std::size_t{0}, std::size_t{2}})
    ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[rank], world.streams[rank]));
  const Status failed = world.synchronize(world.streams[0]);
  ASSERT_EQ(codeOf(failed), ErrorCode::kTimeout);
  EXPECT_EQ(failed.error().peer, 1) << failed.error().detail;
  const Status waited = world.synchronize(world.streams[2]);
  ASSERT_EQ(codeOf(waited), ErrorCode::kTimeout) << waited.error().detail;
  EXPECT_EQ(waited.error().peer, 1) << waited.error().detail;
  EXPECT_TRUE(world.runtime.poisonOf(world.handles[0]).has_value());
  EXPECT_EQ(codeOf(world.runtime.enqueueTransfer(transfers[0], world.streams[0])), ErrorCode::kPoisoned);
}

TEST(SentTransfers, EndWhenAPeerIsAborted) {
  SendingRanks world(2, Timeout(20'000));
  const auto transfers = world.sent({{0, 1, 64}});
  std::memset(world.bytesOf(world.destinations[1]), 7, 64);
  ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[1], world.streams[1]));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_TRUE(world.runtime.abortRank(world.handles[0], "test"));
  const Status lost = world.synchronize(world.streams[1]);
  ASSERT_EQ(codeOf(lost), ErrorCode::kRankLost) << lost.error().detail;
  EXPECT_EQ(lost.error().peer, 0);
  EXPECT_EQ(world.bytesOf(world.destinations[1])[0], 7);
  EXPECT_EQ(world.runtime.progressOf(transfers[1]).completed, 0);
}

// Preparing connects pairs on the ranks' workers, which one that sends must not wait for, nor overtake on some ranks.
TEST(SentTransfers, AreRefusedWhileAnotherOneIsPrepared) {
  SendingRanks world(2);
  const std::vector<TestMove> moves = {{0, 1, 5000}, {1, 0, 5000}};
  const auto transfers = world.sent(moves);
  ASSERT_TRUE(world.runtime.beginCapture(world.streams[0]));
  ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[0], world.streams[0]));
  const Handle graph = valueOf(world.runtime.endCapture(world.streams[0]));
  int prepared = 0;
  for (int rank = 0; rank < 2; rank++) {
    PrepareConfig config = world.configOf(rank, moves);
    config.path = "sendrecv";
    world.runtime.prepareTransfer(world.handles[static_cast<std::size_t>(rank)], std::move(config),
                                  [&](const Outcome<Handle>& made) { prepared += made ? 1 : 100; });
  }
  const Status refused = world.runtime.enqueueTransfer(transfers[0], world.streams[0]);
  ASSERT_EQ(codeOf(refused), ErrorCode::kBusy);
  EXPECT_NE(refused.error().detail.find("rank 0 prepares a transfer"), std::string::npos) << refused.error().detail;
  EXPECT_EQ(codeOf(world.runtime.launchGraph(graph, world.streams[0])), ErrorCode::kBusy);
  world.until([&] { return prepared >= 2; });
  EXPECT_EQ(prepared, 2);
  world.fill(4);
  ASSERT_TRUE(world.runtime.launchGraph(graph, world.streams[0]));
  ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[1], world.streams[1]));
  for (const Handle stream : world.streams) EXPECT_TRUE(world.synchronize(stream));
  expect(world, moves);
}

// A rank that exchanges nothing waits for those that connect longer than for anything else.
TEST(SentTransfers, TakeTheirTimeToConnect) {
  const SlowConnections slow(1500);
  SendingRanks world(3, Timeout(1000));
  for (const Handle transfer : world.sent({{0, 1, 5000}})) EXPECT_NE(transfer, 0);
}

// The communicator goes only when the worker has come back from NCCL, and a peer does not wait for its deadline.
TEST(SentTransfers, EndWhileTheyConnect) {
  const SlowConnections slow(400);
  SendingRanks world(2);
  std::vector<std::optional<ErrorCode>> failed(2);
  for (int rank = 0; rank < 2; rank++) {
    PrepareConfig config = world.configOf(rank, {{0, 1, 5000}});
    config.path = "sendrecv";
    const auto at = static_cast<std::size_t>(rank);
    world.runtime.prepareTransfer(world.handles[at], std::move(config),
                                  [&failed, at](const Outcome<Handle>& made) { failed[at] = codeOf(made); });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ASSERT_TRUE(world.runtime.abortRank(world.handles[0], "test"));
  world.until([&] { return failed[0].has_value() && failed[1].has_value(); });
  EXPECT_EQ(*failed[0], ErrorCode::kAborted);
  EXPECT_EQ(*failed[1], ErrorCode::kRankLost);
}

// NCCL ends no communicator before the graphs that hold groups of it.
TEST(SentTransfers, EndWithTheirGraphs) {
  for (const bool disposes : {true, false}) {
    SendingRanks world(2);
    const auto transfers = world.sent({{0, 1, 5000}, {1, 0, 5000}}, {1024, 64});
    for (std::size_t rank = 0; rank < 2; rank++) {
      ASSERT_TRUE(world.runtime.beginCapture(world.streams[rank]));
      ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[rank], world.streams[rank]));
    }
    const Handle graph = valueOf(world.runtime.endCapture(world.streams[0]));
    ASSERT_TRUE(world.runtime.launchGraph(graph, world.streams[0]));
    ASSERT_TRUE(world.runtime.abortRank(world.handles[0], "test"));
    // Rank 1 still records. Without disposing, the environment ends.
    if (!disposes) world.handles.clear();
  }
}

TEST(SentTransfers, RefuseUnknownPathsAndDifferentOnes) {
  SendingRanks world(2);
  std::vector<PrepareConfig> configs = {world.configOf(0, {{0, 1, 8}}), world.configOf(1, {{0, 1, 8}})};
  configs[1].path = "mapped";
  for (const auto& outcome : world.prepare(configs)) {
    ASSERT_EQ(codeOf(outcome), ErrorCode::kDisagreement);
    EXPECT_NE(outcome.error().detail.find("rank 1 and the others hold different values of path"), std::string::npos)
        << outcome.error().detail;
  }
  configs[0].path = configs[1].path = "pigeon";
  for (const auto& outcome : world.prepare(configs)) EXPECT_EQ(codeOf(outcome), ErrorCode::kInvalidArgument);
}

TEST(SentTransfers, LeaveTheMappedPathAlone) {
  SendingRanks world(2);
  const auto transfers = world.sent({{0, 1, 64}, {1, 1, 32, 0, 100}}, {}, false, "auto");
  const auto paths = world.runtime.pathsOf(transfers[1]);
  ASSERT_EQ(paths.size(), 2u);
  EXPECT_STREQ(paths[0].path, "local");
  EXPECT_EQ(paths[0].bytes, 32);
  EXPECT_STREQ(paths[1].path, "mapped");
  EXPECT_STREQ(paths[1].direction, "receive");
  EXPECT_EQ(paths[1].bytes, 64);
  EXPECT_EQ(paths[1].why, "");
}

}  // namespace
}  // namespace nccl_ext::test
