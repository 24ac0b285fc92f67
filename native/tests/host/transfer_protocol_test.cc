// SPDX-License-Identifier: Apache-2.0
// A transfer's grants, arrivals and CTA count with threads as CTAs of ranks, across the wrap of the epochs; and how it fails.
#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "m2n/shared/transfer.hpp"

namespace nccl_ext {
namespace {

constexpr int kCtas = 2;

std::uint64_t nanoseconds() {
  std::this_thread::yield();
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

// A ring of ranks: each sends to the next one in stage 0 and forwards to the one after that in stage 1.
struct Ring {
  explicit Ring(int ranks, std::uint64_t start = 0, std::uint64_t timeoutNs = 5'000'000'000)
      : size(ranks),
        timeoutNs(timeoutNs),
        cells(count(ranks)),
        states(count(ranks)),
        counts(count(ranks)),
        boxes(count(ranks)),
        words(count(ranks)),
        peers(count(ranks)) {
    for (auto& block : cells) {
      block.resize(controlCells(ranks));
      for (TransferCell& cell : block) cell.value = start;
      controls.push_back(block.data());
    }
    for (TransferState& state : states) state.epoch = start;
    for (int rank = 0; rank < ranks; rank++) peers[count(rank)] = {(rank + ranks - 1) % ranks, (rank + 1) % ranks};
  }
  static std::size_t count(int number) { return static_cast<std::size_t>(number); }

  int before(int rank) const { return peers[count(rank)][0]; }
  int after(int rank) const { return peers[count(rank)][1]; }

  TransferArgs of(int rank, int stage = 0, int last = 1) {
    TransferArgs args{};
    args.work.ctas = kCtas;
    args.controls = controls.data();
    args.grantees = args.senders = &peers[count(rank)][0];
    args.receivers = &peers[count(rank)][1];
    args.state = &states[count(rank)];
    args.counts = &counts[count(rank)];
    args.status = &boxes[count(rank)];
    args.words = &words[count(rank)];
    args.timeoutNs = timeoutNs;
    args.granteeCount = args.receiverCount = args.senderCount = 1;
    args.rank = rank;
    args.size = size;
    args.stage = stage;
    args.last = last;
    return args;
  }

  int size;
  std::uint64_t timeoutNs;
  std::vector<std::vector<TransferCell>> cells;
  std::vector<TransferCell*> controls;
  std::vector<TransferState> states;
  std::vector<TransferCounts> counts;
  std::vector<DeviceStatus> boxes;
  std::vector<RankWords> words;
  std::vector<std::array<std::int32_t, 2>> peers;  // sender, receiver
};

// What the kernel does in one CTA; `write` makes its stores.
void runCta(const TransferArgs& args, int cta, const std::function<void()>& write) {
  const std::uint64_t epoch = args.state->epoch + 1;
  if (cta == 0) {
    const bool runs = mayRun(args, skipReason(guardOf(args)));
    if (runs && args.stage == 0) grant(args, args.grantees[0], epoch);
    admit(args, epoch, runs);
  }
  if (isAdmitted(args, epoch)) {
    const WaitEnd end = awaitGrant(args, args.receivers[0], epoch, nanoseconds);
    if (end == WaitEnd::kArrived)
      write();
    else
      failTransfer(args, end, args.receivers[0], 1, epoch, 0);
  }
  if (!isLast(args)) return;
  if (peek<kDevice>(args.state->failed) == 0) {
    arrive(args, args.receivers[0], epoch);
    const WaitEnd end = awaitArrival(args, args.senders[0], epoch, nanoseconds);
    if (end != WaitEnd::kArrived) failTransfer(args, end, args.senders[0], 1, epoch, 0);
  }
  closeStage(args);
  endStage(args, epoch, args.state->failed != 0, args.state->completed);
}

void runStage(const TransferArgs& args, const std::function<void(int)>& write) {
  std::vector<std::thread> ctas;
  for (int cta = 0; cta < kCtas; cta++) ctas.emplace_back([&, cta] { runCta(args, cta, [&] { write(cta); }); });
  for (std::thread& cta : ctas) cta.join();
}

// Plain data that CTAs write at a peer: ThreadSanitizer finds a missing edge. Nobody joins the CTAs of another rank.
TEST(Transfer, WritesOnlyBetweenGrantAndArrivalAcrossTheWrap) {
  constexpr int kRanks = 3, kRounds = 100;
  Ring ring(kRanks, ~std::uint64_t{0} - kRounds / 2);
  std::vector<std::array<int, kCtas>> first(kRanks), second(kRanks);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; rank++) {
    ranks.emplace_back([&, rank] {
      const auto self = Ring::count(rank), next = Ring::count(ring.after(rank));
      for (int round = 0; round < kRounds; round++) {
        // The stream before the transfer: this rank uses its memory.
        first[self].fill(-1);
        second[self].fill(-1);
        runStage(ring.of(rank, 0, 0), [&](int cta) { first[next][Ring::count(cta)] = round * 100 + rank; });
        for (const int value : first[self]) ASSERT_EQ(value, round * 100 + ring.before(rank));
        runStage(ring.of(rank, 1, 1), [&](int cta) { second[next][Ring::count(cta)] = first[self][Ring::count(cta)]; });
        for (const int value : second[self]) ASSERT_EQ(value, round * 100 + ring.before(ring.before(rank)));
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const TransferCounts& counts : ring.counts) EXPECT_EQ(counts.completed, std::uint64_t{kRounds});
}

TEST(Transfer, NamesTheReceiverThatDoesNotComeAndSkipsWhatFollows) {
  Ring ring(2, 0, 20'000'000);
  const auto never = [](int) { FAIL() << "wrote without a grant"; };
  runStage(ring.of(0), never);
  EXPECT_EQ(ring.boxes[0].code, static_cast<int>(ErrorCode::kTimeout));
  EXPECT_EQ(ring.boxes[0].op, static_cast<int>(DeviceOp::kTransfer));
  EXPECT_EQ(ring.boxes[0].peer, 1);
  EXPECT_EQ(ring.boxes[0].expected, 1u);
  clear(ring.boxes[0]);
  runStage(ring.of(0), never);
  EXPECT_EQ(ring.boxes[0].code, static_cast<int>(ErrorCode::kPoisoned));
  EXPECT_EQ(ring.states[0].epoch, 2u) << "a skipped execution counts";
  EXPECT_EQ(ring.counts[0].completed, 0u);
}

TEST(Transfer, TellsNobodyThatAHalfHasArrived) {
  Ring ring(2, 0, 20'000'000);
  ring.words[0].drained = 1;
  runStage(ring.of(0), [](int) { FAIL() << "wrote behind a failure"; });
  EXPECT_EQ(ring.cells[1][arrivalCell(2, 0, 0)].value, 0u);
  EXPECT_EQ(ring.cells[1][grantCell(0)].value, 0u);
}

// The clock of a wait and its peer in one: a look takes most of the timeout, so ten of them outlast it.
struct Looks {
  Ring& ring;
  int writes;     // looks during which the peer writes
  bool arrives;   // whether it tells that everything is in then
  int count = 0;  // so far

  std::uint64_t operator()() {
    if (++count <= writes) add<kSystem>(ring.cells[1][progressCell(2)].value, std::uint64_t{1});
    if (count == writes && arrives) publish<kSystem>(ring.cells[0][arrivalCell(2, 0, 1)].value, std::uint64_t{1});
    return static_cast<std::uint64_t>(count) * ring.timeoutNs * 2 / 3;
  }
};

TEST(Transfer, WaitsOnWhileThePeerWrites) {
  Ring ring(2);
  Looks looks{ring, 30, true};
  EXPECT_EQ(awaitArrival(ring.of(0), 1, 1, std::ref(looks)), WaitEnd::kArrived);
  EXPECT_EQ(looks.count, 30);
}

TEST(Transfer, GivesUpATimeoutAfterThePeerWroteLast) {
  Ring ring(2);
  Looks looks{ring, 30, false};
  EXPECT_EQ(awaitArrival(ring.of(0), 1, 1, std::ref(looks)), WaitEnd::kExpired);
  EXPECT_GT(looks.count, 31);
  EXPECT_LT(looks.count, 36) << "a timeout is two looks; one may be over when the last write is seen";
}

TEST(Transfer, EndsWhenTheHostSaysStop) {
  Ring ring(2);
  std::thread host([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ring.words[0].peer = 1;
    publish<kSystem>(ring.words[0].stop, static_cast<std::int32_t>(ErrorCode::kRankLost));
  });
  runStage(ring.of(0), [](int) { FAIL() << "wrote without a grant"; });
  host.join();
  EXPECT_EQ(ring.boxes[0].code, static_cast<int>(ErrorCode::kRankLost));
  EXPECT_EQ(ring.boxes[0].peer, 1);
}

}  // namespace
}  // namespace nccl_ext
