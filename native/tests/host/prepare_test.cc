// SPDX-License-Identifier: Apache-2.0
// Every way in which ranks refuse to prepare a transfer: together, by name, and without getting out of step.
#include "tests/support/moves.hpp"

namespace nccl_ext::test {
namespace {

const std::vector<TestMove> kMove = {{0, 1, 64}};

struct Refusal {
  const char* name;
  int at;  // the rank that is wrong
  ErrorCode code;
  const char* text;  // in what rank 0 is told
  void (*change)(PrepareConfig& config);
};

std::ostream& operator<<(std::ostream& out, const Refusal& refusal) {
  return out << refusal.name;
}

const Refusal kRefusals[] = {
    {"another plan", 1, ErrorCode::kDisagreement, "plan digest", [](auto& config) { config.program.digest = "other"; }},
    {"another verify", 1, ErrorCode::kDisagreement, "plan digest", [](auto& config) { config.verify = true; }},
    {"the program of another rank", 0, ErrorCode::kInvalidArgument, "program of rank 1",
     [](auto& config) { config.program.rank = 1; }},
    {"another world size", 0, ErrorCode::kInvalidArgument, "3 ranks", [](auto& config) { config.program.size = 3; }},
    {"an unknown peer", 1, ErrorCode::kInvalidArgument, "peer 7",
     [](auto& config) { config.program.receivePeers = {7}; }},
    {"an unknown peer of a move", 0, ErrorCode::kInvalidArgument, "peer 5",
     [](auto& config) { config.program.sends.peer = {5}; }},
    {"an unknown stage", 0, ErrorCode::kInvalidArgument, "stage 2",
     [](auto& config) { config.program.sends.stage = {2}; }},
    {"short arrays", 0, ErrorCode::kInvalidArgument, "shorter",
     [](auto& config) { config.program.sends.counts = {1}; }},
    {"a negative offset", 0, ErrorCode::kInvalidArgument, "-1",
     [](auto& config) { config.program.sends.sourceOffset = {-1}; }},
    {"an unknown cast", 0, ErrorCode::kInvalidArgument, "transform",
     [](auto& config) { config.program.sends.transform = {500}; }},
    {"a cast of integers", 0, ErrorCode::kInvalidArgument, "transform",
     [](auto& config) { config.program.sends.transform = {castTransform(DType::kI32, DType::kF32)}; }},
    {"a sender nobody expects", 1, ErrorCode::kDisagreement, "does not expect",
     [](auto& config) { config.program.receivePeers = {}; }},
    {"a sender who does not send", 0, ErrorCode::kDisagreement, "expects bytes",
     [](auto& config) { config.program.receivePeers = {1}; }},
    {"an unbound source", 0, ErrorCode::kInvalidArgument, "no source",
     [](auto& config) { config.sources.buffer = {0}; }},
    {"an unbound destination", 1, ErrorCode::kInvalidArgument, "no destination",
     [](auto& config) { config.destinations.buffer = {0}; }},
    {"a source beyond its buffer", 0, ErrorCode::kOutOfBounds, "source tensor 0",
     [](auto& config) { config.sources.byteOffset = {193}; }},
    {"a destination beyond its buffer", 1, ErrorCode::kOutOfBounds, "destination tensor 0",
     [](auto& config) { config.destinations.byteOffset = {193}; }},
    {"sizes beyond 64 bits", 0, ErrorCode::kOutOfBounds, "source tensor 0",
     [](auto& config) {
       config.program.sends.counts = {1ll << 52, 1, 1};
       config.program.sends.sourceStrides = {1ll << 52, 0, 0};
     }},
    {"a byte offset that is none", 1, ErrorCode::kInvalidArgument, "byte offset",
     [](auto& config) { config.destinations.byteOffset = {-1}; }},
    {"a handle that is none", 0, ErrorCode::kInvalidArgument, "sources[0]",
     [](auto& config) { config.sources.buffer = {999'999}; }},
};

class PrepareRefused : public testing::TestWithParam<Refusal> {};

TEST_P(PrepareRefused, OnAllRanks) {
  const Refusal& refusal = GetParam();
  MovingRanks world(2);
  std::vector<PrepareConfig> configs = {world.configOf(0, kMove), world.configOf(1, kMove)};
  refusal.change(configs[static_cast<std::size_t>(refusal.at)]);
  const auto outcomes = world.prepare(std::move(configs));
  for (int rank = 0; rank < 2; rank++) {
    const auto& outcome = outcomes[static_cast<std::size_t>(rank)];
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, refusal.code) << outcome.error().detail;
    EXPECT_EQ(outcome.error().rank, rank);
    EXPECT_EQ(outcome.error().op, "prepareTransfer");
    EXPECT_FALSE(world.runtime.poisonOf(world.handles[static_cast<std::size_t>(rank)]).has_value());
  }
  EXPECT_NE(outcomes[0].error().detail.find(refusal.text), std::string::npos) << outcomes[0].error().detail;
  // Refused together, the ranks are still in step, and nothing is busy.
  EXPECT_EQ(world.prepared(kMove).size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Prepare, PrepareRefused, testing::ValuesIn(kRefusals));

TEST(Prepare, RefusesVerifyWithoutReceives) {
  MovingRanks world(1);
  PrepareConfig config = world.configOf(0, {});
  config.verify = true;
  config.program.receives.reset();
  EXPECT_EQ(codeOf(world.prepare({config})[0]), ErrorCode::kInvalidArgument);
}

TEST(Prepare, RefusesUnsortedMoves) {
  MovingRanks world(1);
  PrepareConfig config = world.configOf(0, {{0, 0, 4}, {0, 0, 4, 8, 8}});
  config.program.sends.tensor = {1, 0};
  const auto outcome = world.prepare({config})[0];
  ASSERT_EQ(codeOf(outcome), ErrorCode::kInvalidArgument);
  EXPECT_NE(outcome.error().detail.find("not sorted"), std::string::npos);
}

TEST(Prepare, RefusesBuffersOfOtherRanksAndFreedOnes) {
  MovingRanks world(2);
  std::vector<PrepareConfig> configs = {world.configOf(0, kMove), world.configOf(1, kMove)};
  configs[0].sources.buffer = {world.sources[1]};
  for (const auto& outcome : world.prepare(configs)) EXPECT_EQ(codeOf(outcome), ErrorCode::kForeignObject);
  ASSERT_TRUE(world.runtime.freeBuffer(world.sources[0]));
  configs[0].sources.buffer = {world.sources[0]};
  const auto outcomes = world.prepare(configs);
  ASSERT_EQ(codeOf(outcomes[1]), ErrorCode::kDisposed);
  EXPECT_EQ(outcomes[1].error().peer, 0);
}

TEST(Prepare, RefusesToWriteWhatItReads) {
  MovingRanks world(2);
  const std::vector<TestMove> both = {{0, 1, 64}, {1, 0, 64}};
  std::vector<PrepareConfig> configs = {world.configOf(0, both), world.configOf(1, both)};
  configs[1].destinations = {configs[1].sources.buffer, {32}};
  const auto outcomes = world.prepare(std::move(configs));
  for (const auto& outcome : outcomes) ASSERT_EQ(codeOf(outcome), ErrorCode::kOverlap);
  EXPECT_EQ(outcomes[1].error().peer, 1);
  EXPECT_EQ(std::get<std::int64_t>(outcomes[1].error().seen), 32);
  EXPECT_EQ(outcomes[0].error().peer, 1);
  EXPECT_NE(outcomes[0].error().detail.find("rank 1 could not take part"), std::string::npos);
}

TEST(Prepare, AllowsRowsOfOneTensorBetweenRowsOfAnother) {
  MovingRanks world(2);
  // Rank 1 sends the left half of every row to itself, from the right half.
  const std::vector<TestMove> moves = {{1, 1, 8, 8, 0, {1, 1, 16}, {0, 0, 16}, {0, 0, 16}}};
  std::vector<PrepareConfig> configs = {world.configOf(0, moves), world.configOf(1, moves)};
  configs[1].destinations = configs[1].sources;
  for (const auto& outcome : world.prepare(configs)) EXPECT_TRUE(outcome) << outcome.error().detail;
  // One row more to the right, and they meet.
  configs[1].destinations.byteOffset = {4};
  configs[1].program.sends.counts = {1, 1, 15};
  configs[1].program.receives->counts = {1, 1, 15};
  for (const auto& outcome : world.prepare(configs)) EXPECT_EQ(codeOf(outcome), ErrorCode::kOverlap);
}

TEST(Prepare, NamesARankThatDoesNotCome) {
  MovingRanks world(3, 256, Timeout(50));
  std::optional<Outcome<Handle>> result;
  world.runtime.prepareTransfer(world.handles[0], world.configOf(0, {}), [&](auto outcome) { result = outcome; });
  world.until([&] { return result.has_value(); });
  ASSERT_EQ(codeOf(*result), ErrorCode::kTimeout);
  EXPECT_EQ(result->error().peer, 1);
  EXPECT_TRUE(world.runtime.poisonOf(world.handles[0]).has_value());
}

}  // namespace
}  // namespace nccl_ext::test
