// SPDX-License-Identifier: Apache-2.0
// Worlds split from worlds: who is in which, in what order, and what they share with their parent; as threads of one
// process and over TCP.
#include <algorithm>

#include "tests/fake/fake_cudart.hpp"
#include "tests/support/free_port.hpp"
#include "tests/support/one_rank.hpp"

namespace nccl_ext::test {
namespace {

using std::chrono::milliseconds;
using Split = Outcome<std::optional<SplitRank>>;

struct Ask {
  std::int64_t color;
  std::int64_t key = 0;
};

// Splits all ranks of one process at once.
std::vector<Split> splitAll(Harness& harness, const std::vector<Handle>& ranks, const std::vector<Ask>& asks) {
  std::vector<std::optional<Split>> results(ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); rank++) {
    harness.runtime.splitRank(ranks[rank], asks[rank].color, asks[rank].key,
                              [&results, rank](const Split& result) { results[rank] = result; });
  }
  harness.until([&] { return std::all_of(results.begin(), results.end(), [](const auto& one) { return one; }); });
  std::vector<Split> out;
  for (const auto& result : results) out.push_back(result.value_or(fail(ErrorCode::kInternal, "test", "no result")));
  return out;
}

// The ranks of the children, by rank of the parent; 0 where there is none.
std::vector<Handle> handlesOf(const std::vector<Split>& splits) {
  std::vector<Handle> handles;
  for (const Split& split : splits) {
    EXPECT_TRUE(split) << (split ? "" : split.error().detail);
    handles.push_back(split && split.value() ? split.value()->handle : 0);
  }
  return handles;
}

// Every rank's payload of one exchange.
void expectExchange(Harness& harness, const std::vector<Handle>& ranks) {
  std::size_t done = 0;
  for (std::size_t rank = 0; rank < ranks.size(); rank++) {
    harness.runtime.exchange(ranks[rank], "who", Bytes{static_cast<std::uint8_t>(rank)}, [&](const auto& all) {
      EXPECT_TRUE(all) << (all ? "" : all.error().detail);
      if (all) {
        EXPECT_EQ(all.value().size(), ranks.size());
        for (std::size_t peer = 0; peer < all.value().size(); peer++) EXPECT_EQ(all.value()[peer][0], peer);
      }
      done++;
    });
  }
  harness.until([&] { return done == ranks.size(); });
}

void expectBarrier(Harness& harness, const std::vector<Handle>& ranks) {
  std::vector<Handle> streams;
  for (const Handle rank : ranks) streams.push_back(valueOf(harness.runtime.createStream(rank)));
  for (int round = 0; round < 5; round++) {
    for (const Handle stream : streams) ASSERT_TRUE(harness.runtime.enqueueBarrier(stream));
  }
  for (const Handle stream : streams) {
    EXPECT_TRUE(harness.synchronize(stream));
    EXPECT_TRUE(harness.runtime.freeStream(stream));
  }
}

TEST(Split, GroupsByColorAndOrdersByKeyThenRank) {
  const int before = fake::liveObjects();
  {
    Harness harness;
    const auto ranks = harness.ranks(6);
    const auto splits = splitAll(harness, ranks, {{7, 5}, {0}, {7, -5}, {-1}, {7, 5}, {0}});
    const auto children = handlesOf(splits);
    const int expected[6][2] = {{1, 3}, {0, 2}, {0, 3}, {-1, -1}, {2, 3}, {1, 2}};
    for (std::size_t rank = 0; rank < 6; rank++) {
      ASSERT_TRUE(splits[rank]);
      EXPECT_EQ(splits[rank].value().has_value(), rank != 3);
      if (rank == 3) continue;
      EXPECT_EQ(splits[rank].value()->rank, expected[rank][0]);
      EXPECT_EQ(splits[rank].value()->size, expected[rank][1]);
    }
    const std::vector<Handle> sevens = {children[2], children[0], children[4]}, zeros = {children[1], children[5]};
    expectExchange(harness, sevens);
    expectBarrier(harness, zeros);
    expectBarrier(harness, sevens);
    expectBarrier(harness, ranks);
    EXPECT_EQ(valueOf(harness.runtime.deviceOf(zeros[0])).smBudget,
              valueOf(harness.runtime.deviceOf(ranks[0])).smBudget);
    // Windows of a child, while its parent makes none.
    std::size_t made = 0;
    for (const Handle rank : sevens) {
      const Handle buffer = valueOf(harness.runtime.allocate(rank, 64, MemoryKind::kSymmetric));
      harness.runtime.registerWindow(rank, buffer, [&](const Outcome<Handle>& window) {
        EXPECT_TRUE(window) << (window ? "" : window.error().detail);
        if (window) {
          EXPECT_EQ(valueOf(harness.runtime.windowPeers(window.value())).addresses.size(), 3u);
        }
        made++;
      });
    }
    harness.until([&] { return made == 3; });
    harness.dispose(zeros);
    expectBarrier(harness, ranks);
    // The sevens go with their parents.
    harness.dispose(ranks);
    EXPECT_EQ(codeOf(harness.runtime.createStream(sevens[0])), ErrorCode::kDisposed);
  }
  EXPECT_EQ(fake::liveObjects(), before);
}

TEST(Split, SplitsWhatWasSplitAndDisposesItWithItsParent) {
  Harness harness;
  const auto ranks = harness.ranks(4);
  const auto low = handlesOf(splitAll(harness, ranks, {{0, 3}, {0, 2}, {0, 1}, {-1}}));
  const std::vector<Handle> inOrder = {low[2], low[1], low[0]};
  const auto pairs = handlesOf(splitAll(harness, inOrder, {{1}, {-1}, {1}}));
  expectBarrier(harness, {pairs[0], pairs[2]});
  harness.dispose({ranks[0]});
  for (const Handle gone : {low[0], pairs[2]})
    EXPECT_EQ(codeOf(harness.runtime.createStream(gone)), ErrorCode::kDisposed);
  EXPECT_TRUE(harness.runtime.createStream(pairs[0]));
  harness.dispose({ranks[1], ranks[2], ranks[3]});
}

TEST(Split, RefusesWrongColorsAndKeysOnEveryRankAndGoesOn) {
  Harness harness;
  const auto ranks = harness.ranks(3);
  for (const Ask wrong : {Ask{-2}, Ask{std::int64_t{1} << 31}, Ask{0, std::int64_t{1} << 31}}) {
    const auto splits = splitAll(harness, ranks, {{0}, wrong, {0}});
    for (std::size_t rank = 0; rank < 3; rank++) {
      ASSERT_EQ(codeOf(splits[rank]), ErrorCode::kInvalidArgument);
      EXPECT_EQ(splits[rank].error().rank, static_cast<int>(rank));
      EXPECT_EQ(splits[rank].error().peer, rank == 1 ? -1 : 1);
    }
  }
  expectBarrier(harness, handlesOf(splitAll(harness, ranks, {{0}, {0}, {0}})));
  harness.dispose(ranks);
}

TEST(Split, NamesTheRankThatDoesNotCome) {
  Harness harness;
  const auto ranks = harness.ranks(3, milliseconds(100));
  const auto splits = splitAll(harness, {ranks[0], ranks[2]}, {{0}, {0}});
  for (const Split& split : splits) {
    ASSERT_EQ(codeOf(split), ErrorCode::kTimeout);
    EXPECT_EQ(split.error().peer, 1);
  }
  EXPECT_EQ(codeOf(splitAll(harness, {ranks[0]}, {{0}})[0]), ErrorCode::kPoisoned);
  harness.dispose(ranks);
}

TEST(Split, APoisonedChildLeavesItsParentAndOtherPartsUsable) {
  Harness harness;
  const auto ranks = harness.ranks(4, milliseconds(300));
  const auto children = handlesOf(splitAll(harness, ranks, {{0}, {0}, {1}, {1}}));
  const Handle lonely = valueOf(harness.runtime.createStream(children[0]));
  ASSERT_TRUE(harness.runtime.enqueueBarrier(lonely));
  const Status timedOut = harness.synchronize(lonely);
  ASSERT_EQ(codeOf(timedOut), ErrorCode::kTimeout);
  EXPECT_EQ(timedOut.error().peer, 1);
  ASSERT_TRUE(harness.runtime.abortRank(children[1], "enough"));
  expectBarrier(harness, ranks);
  expectBarrier(harness, {children[2], children[3]});
  for (const Handle rank : ranks) EXPECT_FALSE(harness.runtime.poisonOf(rank));
  harness.dispose({children[0], children[1]});
  expectBarrier(harness, handlesOf(splitAll(harness, ranks, {{0}, {0}, {0}, {0}})));
  harness.dispose(ranks);
}

TEST(Split, AParentThatIsAbortedTakesItsChildrenAlong) {
  Harness harness;
  const auto ranks = harness.ranks(2, milliseconds(60'000));
  const auto children = handlesOf(splitAll(harness, ranks, {{0}, {0}}));
  const Handle stream = valueOf(harness.runtime.createStream(children[0]));
  ASSERT_TRUE(harness.runtime.enqueueBarrier(stream));
  std::optional<Outcome<std::vector<Bytes>>> host;
  harness.runtime.exchange(children[0], "alone", {}, [&](const auto& result) { host = result; });
  ASSERT_TRUE(harness.runtime.abortRank(ranks[1], "test"));
  EXPECT_EQ(codeOf(harness.synchronize(stream)), ErrorCode::kRankLost);
  harness.until([&] { return host.has_value(); });
  EXPECT_EQ(codeOf(*host), ErrorCode::kRankLost);
  EXPECT_TRUE(harness.runtime.poisonOf(children[1]));
  harness.dispose(ranks);
}

TEST(Split, EndsWithChildrenAliveAndASplitUnderWay) {
  const int before = fake::liveObjects();
  {
    Harness harness;
    const auto ranks = harness.ranks(3, milliseconds(60'000));
    const auto children = handlesOf(splitAll(harness, ranks, {{0}, {0}, {0}}));
    const Handle stream = valueOf(harness.runtime.createStream(children[0]));
    ASSERT_TRUE(harness.runtime.enqueueBarrier(stream));
    harness.runtime.splitRank(ranks[0], 0, 0, [](const auto&) {});
  }
  EXPECT_EQ(fake::liveObjects(), before);
}

TEST(Split, LetsStreamsOfParentAndChildWaitForEachOther) {
  Harness harness;
  const auto ranks = harness.ranks(2);
  const auto children = handlesOf(splitAll(harness, ranks, {{0}, {0}}));
  const Handle stream = valueOf(harness.runtime.createStream(ranks[0])),
               other = valueOf(harness.runtime.createStream(children[1]));
  const Handle event = valueOf(harness.runtime.createEvent(children[1]));
  ASSERT_TRUE(harness.runtime.recordEvent(event, other));
  EXPECT_TRUE(harness.runtime.waitEvent(stream, event));
  EXPECT_TRUE(harness.synchronize(stream));
  harness.dispose(ranks);
}

// Three runtimes stand for three processes; ranks 1 and 2 become a world of their own, without rank 0, which listens.
TEST(Split, WorksAcrossProcesses) {
  Harness processes[3];
  std::optional<Outcome<Handle>> joined[3];
  const int port = freePort();
  for (int rank = 0; rank < 3; rank++) {
    const JoinConfig config{rank, 3, rank, 3, "127.0.0.1", port, "token", milliseconds(5000), 0};
    processes[rank].runtime.joinRank(config, [&joined, rank](const Outcome<Handle>& handle) { joined[rank] = handle; });
  }
  const auto all = [&](auto& results) {
    processes[0].until([&] {
      for (Harness& one : processes) one.runtime.mailbox().deliver();
      return std::all_of(std::begin(results), std::end(results), [](const auto& one) { return one.has_value(); });
    });
  };
  all(joined);
  for (int round = 0; round < 2; round++) {
    std::optional<Split> splits[3];
    for (int rank = 0; rank < 3; rank++) {
      processes[rank].runtime.splitRank(valueOf(*joined[rank]), rank == 0 ? -1 : 4, -rank,
                                        [&splits, rank](const Split& split) { splits[rank] = split; });
    }
    all(splits);
    for (const auto& split : splits) ASSERT_TRUE(*split) << split->error().detail;
    EXPECT_FALSE(splits[0]->value());
    EXPECT_EQ(splits[2]->value()->rank, 0);
    EXPECT_EQ(splits[1]->value()->rank, 1);
    std::optional<Outcome<std::vector<Bytes>>> exchanged[2];
    for (int rank : {1, 2}) {
      processes[rank].runtime.exchange(splits[rank]->value()->handle, "who", Bytes{static_cast<std::uint8_t>(rank)},
                                       [&exchanged, rank](const auto& result) { exchanged[rank - 1] = result; });
    }
    all(exchanged);
    for (const auto& result : exchanged) {
      ASSERT_TRUE(*result) << result->error().detail;
      EXPECT_EQ(result->value(), (std::vector<Bytes>{{2}, {1}}));
    }
    const Handle a = valueOf(processes[1].runtime.createStream(splits[1]->value()->handle)),
                 b = valueOf(processes[2].runtime.createStream(splits[2]->value()->handle));
    ASSERT_TRUE(processes[1].runtime.enqueueBarrier(a));
    ASSERT_TRUE(processes[2].runtime.enqueueBarrier(b));
    EXPECT_TRUE(processes[1].synchronize(a));
    EXPECT_TRUE(processes[2].synchronize(b));
    for (int rank : {1, 2}) processes[rank].dispose({splits[rank]->value()->handle});
  }
  for (int rank : {2, 1, 0}) processes[rank].dispose({valueOf(*joined[rank])});
}

}  // namespace
}  // namespace nccl_ext::test
