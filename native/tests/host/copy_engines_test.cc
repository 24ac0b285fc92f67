// SPDX-License-Identifier: Apache-2.0
// Transfers by copy engines, asked for (sms: 0) or not, and with fewer SMs, on the fake CUDA runtime: the same bytes, the same grants, the
// same failures.
#include <cstdlib>
#include <cstring>

#include "m2n/engine_copies.hpp"
#include "m2n/transfer_paths.hpp"
#include "tests/support/gpus.hpp"
#include "tests/support/moves.hpp"
#include "tests/support/one_rank.hpp"

namespace nccl_ext::test {
namespace {

constexpr std::int64_t kBytes = 1 << 16;
constexpr std::int64_t kRun = 4096;

// Rows of two ranks become columns of the third one's tensor, which forwards them; one move is local.
const std::vector<TestMove> kMoves = {
    {0, 1, kRun, 0, 0, {1, 1, 4}, {0, 0, kRun}, {0, 0, 2 * kRun}},
    {2, 1, kRun, 0, kRun, {1, 1, 4}, {0, 0, kRun}, {0, 0, 2 * kRun}},
    {0, 0, 100, 7, 3},
    {1, 2, 8 * kRun, 0, kRun, {1, 1, 1}, {}, {}, 1},
};

struct EngineRanks : MovingRanks {
  using MovingRanks::MovingRanks;

  std::vector<Outcome<Handle>> tryPrepare(const std::vector<TestMove>& moves,
                                          const std::vector<std::optional<int>>& sms) {
    std::vector<PrepareConfig> configs;
    for (std::size_t rank = 0; rank < handles.size(); rank++) {
      configs.push_back(configOf(static_cast<int>(rank), moves));
      configs.back().sms = sms[rank];
    }
    return prepare(std::move(configs));
  }

  std::vector<Handle> preparedWith(const std::vector<TestMove>& moves, const std::vector<std::optional<int>>& sms) {
    std::vector<Handle> transfers;
    for (const auto& outcome : tryPrepare(moves, sms)) transfers.push_back(valueOf(outcome));
    return transfers;
  }

  void fill(int round) {
    for (std::size_t rank = 0; rank < handles.size(); rank++) {
      for (std::int64_t i = 0; i < kBytes; i++)
        bytesOf(sources[rank])[i] = static_cast<std::uint8_t>(i / 7 + 31 * static_cast<int>(rank) + round);
      std::memset(bytesOf(destinations[rank]), 0, kBytes);
    }
  }

  // What kMoves leaves.
  void expectMoved() {
    std::vector<std::uint8_t> columns(8 * kRun);
    for (std::int64_t row = 0; row < 4; row++) {
      std::memcpy(&columns[static_cast<std::size_t>(2 * row * kRun)], bytesOf(sources[0]) + row * kRun, kRun);
      std::memcpy(&columns[static_cast<std::size_t>((2 * row + 1) * kRun)], bytesOf(sources[2]) + row * kRun, kRun);
    }
    EXPECT_EQ(std::memcmp(bytesOf(destinations[1]), columns.data(), columns.size()), 0);
    EXPECT_EQ(std::memcmp(bytesOf(destinations[2]) + kRun, columns.data(), columns.size()), 0);
    EXPECT_EQ(std::memcmp(bytesOf(destinations[0]) + 3, bytesOf(sources[0]) + 7, 100), 0);
    EXPECT_EQ(bytesOf(destinations[0])[2], 0);
    EXPECT_EQ(bytesOf(destinations[2])[kRun - 1], 0);
  }
};

void expectSame(const std::vector<std::optional<int>>& sms) {
  EngineRanks world(3, kBytes);
  const auto transfers = world.preparedWith(kMoves, sms);
  for (int round = 1; round <= 3; round++) {
    world.fill(round);
    for (std::size_t rank = 0; rank < 3; rank++)
      ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[rank], world.streams[rank]));
    for (const Handle stream : world.streams) EXPECT_TRUE(world.synchronize(stream));
    world.expectMoved();
    const std::int64_t written[] = {4 * kRun + 100, 8 * kRun, 4 * kRun};
    for (std::size_t rank = 0; rank < 3; rank++) {
      EXPECT_EQ(world.runtime.progressOf(transfers[rank]).completed, round);
      EXPECT_EQ(world.runtime.progressOf(transfers[rank]).writtenBytes, round * written[rank]);
    }
  }
  for (const Handle transfer : transfers) EXPECT_TRUE(world.disposeTransfer(transfer));
}

TEST(CopyEngines, MoveWhatKernelsMove) {
  expectSame({0, 0, 0});
}

TEST(CopyEngines, WorkBesideKernelsOfOtherRanks) {
  expectSame({0, std::nullopt, 3});
  expectSame({1, 0, 0});
}

TEST(CopyEngines, RunFromGraphs) {
  EngineRanks world(3, kBytes);
  const auto transfers = world.preparedWith(kMoves, {0, 0, 0});
  std::vector<Handle> graphs;
  for (std::size_t rank = 0; rank < 3; rank++) {
    ASSERT_TRUE(world.runtime.beginCapture(world.streams[rank]));
    ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[rank], world.streams[rank]));
    ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[rank], world.streams[rank]));
    graphs.push_back(valueOf(world.runtime.endCapture(world.streams[rank])));
  }
  for (int round = 1; round <= 3; round++) {
    world.fill(round);
    for (std::size_t rank = 0; rank < 3; rank++)
      ASSERT_TRUE(world.runtime.launchGraph(graphs[rank], world.streams[rank]));
    for (const Handle stream : world.streams) EXPECT_TRUE(world.synchronize(stream));
    world.expectMoved();
    EXPECT_EQ(world.runtime.progressOf(transfers[1]).completed, 2 * round);
  }
  for (const Handle graph : graphs) EXPECT_TRUE(world.runtime.freeGraph(graph));
}

TEST(CopyEngines, TouchNoDestinationBeforeItsRankComes) {
  EngineRanks world(2, kBytes);
  const auto transfers = world.preparedWith({{0, 1, kBytes}}, {0, 0});
  world.fill(1);
  ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[0], world.streams[0]));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(world.bytesOf(world.destinations[1])[100], 0);
  ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[1], world.streams[1]));
  for (const Handle stream : world.streams) EXPECT_TRUE(world.synchronize(stream));
  EXPECT_EQ(std::memcmp(world.bytesOf(world.destinations[1]), world.bytesOf(world.sources[0]), kBytes), 0);
}

TEST(CopyEngines, WriteNotOneByteToARankThatDoesNotCome) {
  for (const bool captured : {false, true}) {
    EngineRanks world(2, kBytes, Timeout(60));
    const auto transfers = world.preparedWith({{0, 1, kBytes}, {0, 0, kBytes}}, {0, 0});
    world.fill(1);
    const Handle stream = world.streams[0];
    EXPECT_TRUE(!captured || world.runtime.beginCapture(stream));
    ASSERT_TRUE(world.runtime.enqueueTransfer(transfers[0], stream));
    const Handle graph = captured ? valueOf(world.runtime.endCapture(stream)) : 0;
    EXPECT_TRUE(!captured || world.runtime.launchGraph(graph, stream));
    const Status ended = world.synchronize(stream);
    ASSERT_EQ(codeOf(ended), ErrorCode::kTimeout);
    EXPECT_EQ(ended.error().op, "transfer");
    EXPECT_EQ(ended.error().peer, 1);
    for (const Handle destination : world.destinations) {
      const std::uint8_t* bytes = world.bytesOf(destination);
      EXPECT_TRUE(std::all_of(bytes, bytes + kBytes, [](std::uint8_t byte) { return byte == 0; }));
    }
    EXPECT_EQ(world.runtime.progressOf(transfers[0]).writtenBytes, 0);
    EXPECT_EQ(world.runtime.progressOf(transfers[0]).completed, 0);
    EXPECT_EQ(codeOf(world.runtime.enqueueTransfer(transfers[0], stream)), ErrorCode::kPoisoned);
  }
}

TEST(CopyEngines, AreRefusedOnEveryRankForWhatTheyCannotMove) {
  EngineRanks world(3, kBytes);
  TestMove cast{0, 1, 3};
  cast.transform = castTransform(DType::kF32, DType::kBf16);
  const auto refused = world.tryPrepare({cast, {2, 1, 64, 0, 64}}, {0, 0, 0});
  for (std::size_t rank = 0; rank < 3; rank++) {
    ASSERT_FALSE(refused[rank]);
    const ErrorRecord& error = refused[rank].error();
    EXPECT_EQ(error.code, ErrorCode::kUnsupported);
    EXPECT_EQ(error.peer, rank == 0 ? 1 : 0);
    EXPECT_NE(error.detail.find("tensor 0 from rank 0 to rank 1 is converted"), std::string::npos) << error.detail;
    EXPECT_NE(error.help.find("Leave out sms on rank 0"), std::string::npos) << error.help;
  }
  // The ranks are as they were, and a rank that only receives may ask for engines.
  EXPECT_EQ(world.preparedWith({cast, {2, 1, 64, 0, 64}}, {std::nullopt, 0, 0}).size(), 3u);
  const auto comb = world.tryPrepare({{0, 1, 16, 0, 0, {1, 1, 9}, {0, 0, 32}, {0, 0, 48}}}, {0, std::nullopt, 2});
  EXPECT_NE(comb[0].error().detail.find("has runs of 16 bytes"), std::string::npos) << comb[0].error().detail;
  EXPECT_EQ(comb[2].error().code, ErrorCode::kUnsupported);
}

TEST(CopyEngines, NeedADriverThatHasConditions) {
  setenv("FAKE_CUDA_NO_CONDITIONS", "1", 1);
  EngineRanks world(2, kBytes);
  unsetenv("FAKE_CUDA_NO_CONDITIONS");
  const auto refused = world.tryPrepare({{0, 1, kBytes}}, {0, std::nullopt});
  ASSERT_EQ(refused[0].error().code, ErrorCode::kUnsupported);
  EXPECT_NE(refused[0].error().detail.find("out of reach on rank 0"), std::string::npos) << refused[0].error().detail;
  EXPECT_EQ(refused[1].error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(world.preparedWith({{0, 1, kBytes}}, {std::nullopt, 0}).size(), 2u);
}

struct GpuRanks : EngineRanks {
  explicit GpuRanks(int count) : EngineRanks(count, 2 * kLarge, Timeout(5000)) {}

  std::string pathOf(const std::vector<TestMove>& moves, std::optional<int> sms = std::nullopt) {
    const std::vector<Handle> transfers = preparedWith(moves, std::vector<std::optional<int>>(handles.size(), sms));
    std::string path;
    for (const TransferPath& one : runtime.pathsOf(transfers[0])) {
      if (std::string(one.direction) == "send" && one.peer == 1) path = one.path;
    }
    for (const Handle transfer : transfers) EXPECT_TRUE(disposeTransfer(transfer));
    return path;
  }

  static constexpr auto kLarge = static_cast<std::int64_t>(kLargeEngineBytes);
};

TEST(CopyEnginesUnasked, MoveFewLargeRunsToAnotherGpu) {
  const Gpus gpus(2);
  GpuRanks world(2);
  constexpr std::int64_t kLarge = GpuRanks::kLarge;
  EXPECT_EQ(world.pathOf({{0, 1, kLarge}}), "copy-engine");
  EXPECT_EQ(world.pathOf({{0, 1, kLarge + 1}, {0, 1, kLarge - 1, kLarge + 1, kLarge + 1}}), "copy-engine");
  const std::string mapped = "mapped";
  EXPECT_EQ(world.pathOf({{0, 1, kLarge - 1}}), mapped);
  // Nine copies, a little less than an eighth each.
  EXPECT_EQ(world.pathOf({{0, 1, kLarge / 9, 0, 0, {1, 1, 9}, {0, 0, kLarge / 8}, {0, 0, kLarge / 9}}}), mapped);
  EXPECT_EQ(world.pathOf({{0, 1, kLarge}, {0, 0, kLarge, kLarge}}), mapped) << "local moves are within one GPU";
  EXPECT_EQ(world.pathOf({{0, 1, kLarge, 0, 0, {1, 1, 2}, {0, 0, kLarge}, {0, 0, kLarge}}}), "copy-engine")
      << "one run";
  EXPECT_EQ(world.pathOf({{0, 1, kLarge / 2, 0, 0, {1, 1, 2}, {0, 0, kLarge / 2 + 16}, {0, 0, kLarge}}}), mapped)
      << "rows";
  EXPECT_EQ(world.pathOf({{0, 1, kLarge}}, 2), mapped) << "who names SMs wants kernels";
}

TEST(CopyEnginesUnasked, MoveNoMoreThanTheTimeoutLeavesRoomFor) {
  const Gpus gpus(2);
  EngineRanks world(2, GpuRanks::kLarge, Timeout(200));
  const auto transfers = world.preparedWith({{0, 1, GpuRanks::kLarge}}, {std::nullopt, std::nullopt});
  EXPECT_STREQ(world.runtime.pathsOf(transfers[0]).at(0).path, "mapped");
}

TEST(CopyEnginesUnasked, DoNotMoveWhereRanksShareTheSendersGpu) {
  GpuRanks world(2);
  EXPECT_EQ(world.pathOf({{0, 1, GpuRanks::kLarge}}), "mapped");
}

TEST(CopyEnginesUnasked, DoNotMoveWithoutADriverThatHasConditions) {
  const Gpus gpus(2);
  setenv("FAKE_CUDA_NO_CONDITIONS", "1", 1);
  GpuRanks world(2);
  unsetenv("FAKE_CUDA_NO_CONDITIONS");
  EXPECT_EQ(world.pathOf({{0, 1, GpuRanks::kLarge}}), "mapped");
}

TEST(TransferSms, AreAtMostTheBudget) {
  EngineRanks world(2, kBytes);
  const int budget = valueOf(world.runtime.deviceOf(world.handles[0])).smBudget;
  for (const int wrong : {-1, budget + 1}) {
    const auto refused = world.tryPrepare({{0, 1, 64}}, {1, wrong});
    ASSERT_EQ(refused[1].error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(refused[1].error().detail.find("sms must be an integer from 0 to " + std::to_string(budget)),
              std::string::npos);
    EXPECT_EQ(refused[0].error().peer, 1);
  }
  EXPECT_EQ(world.preparedWith({{0, 1, 64}}, {budget, 1}).size(), 2u);
}

}  // namespace
}  // namespace nccl_ext::test
