// SPDX-License-Identifier: Apache-2.0
// Ranks of different processes find each other, or every one of them learns in time why not. Two runtimes stand for two
// processes.
#include <thread>

#include "tests/support/free_port.hpp"
#include "tests/support/one_rank.hpp"

namespace nccl_ext::test {
namespace {

using std::chrono::milliseconds;
using Joined = std::optional<Outcome<Handle>>;

JoinConfig configOf(int rank, int port) {
  JoinConfig config;
  config.rank = config.localRank = rank;
  config.worldSize = config.localWorldSize = 2;
  config.address = "127.0.0.1";
  config.port = port;
  config.timeout = milliseconds(1500);
  return config;
}

struct Pair {
  Harness zero, one;
  Joined first, second;

  explicit Pair(const char* versionOfOne = "0.0.0") : one({13, versionOfOne, {}}) {}

  // Both errors; none is a success.
  void join(const JoinConfig& a, const JoinConfig& b) {
    zero.runtime.joinRank(a, [this](const Outcome<Handle>& rank) { first = rank; });
    one.runtime.joinRank(b, [this](const Outcome<Handle>& rank) { second = rank; });
    zero.until([this] {
      one.runtime.mailbox().deliver();
      return first.has_value() && second.has_value();
    });
  }

  // With a deadline that no test waits for.
  void joinPatiently() {
    const int port = freePort();
    JoinConfig a = configOf(0, port), b = configOf(1, port);
    a.timeout = b.timeout = milliseconds(20'000);
    join(a, b);
    ASSERT_TRUE(*first && *second);
  }

  void expectOnBoth(ErrorCode code, const std::string& word) {
    for (const Joined* joined : {&first, &second}) {
      ASSERT_FALSE(**joined);
      EXPECT_EQ((*joined)->error().code, code) << (*joined)->error().detail;
      EXPECT_EQ((*joined)->error().peer, 1) << (*joined)->error().detail;
      EXPECT_NE((*joined)->error().detail.find(word), std::string::npos) << (*joined)->error().detail;
    }
    EXPECT_EQ(first->error().rank, 0);
    EXPECT_EQ(second->error().rank, 1);
  }
};

TEST(Join, MakesAWorldThatPassesBarriers) {
  Pair pair;
  const int port = freePort();
  pair.join(configOf(0, port), configOf(1, port));
  ASSERT_TRUE(*pair.first) << pair.first->error().detail;
  ASSERT_TRUE(*pair.second) << pair.second->error().detail;
  EXPECT_EQ(valueOf(pair.one.runtime.deviceOf(pair.second->value())).ranks, 2) << "counted across processes";
  const Handle a = valueOf(pair.zero.runtime.createStream(pair.first->value())),
               b = valueOf(pair.one.runtime.createStream(pair.second->value()));
  ASSERT_TRUE(pair.zero.runtime.enqueueBarrier(a));
  ASSERT_TRUE(pair.one.runtime.enqueueBarrier(b));
  EXPECT_TRUE(pair.zero.synchronize(a));
  EXPECT_TRUE(pair.one.synchronize(b));
  pair.one.dispose({pair.second->value()});
  pair.zero.dispose({pair.first->value()});
}

// The barrier was in flight when a host call heard of the loss; what comes later is refused.
TEST(Join, SaysOnStreamsWhoWasLost) {
  Pair pair;
  ASSERT_NO_FATAL_FAILURE(pair.joinPatiently());
  const Handle rank = pair.first->value(), stream = valueOf(pair.zero.runtime.createStream(rank));
  ASSERT_TRUE(pair.zero.runtime.enqueueBarrier(stream));
  // Here the flags of rank 1 go with it, where a real peer has them mapped: they must have been written by then.
  std::this_thread::sleep_for(milliseconds(100));
  std::optional<ErrorCode> exchanged;
  pair.zero.runtime.exchange(rank, "topic", Bytes{1}, [&](const auto& all) { exchanged = codeOf(all); });
  pair.one.dispose({pair.second->value()});
  pair.zero.until([&] { return exchanged.has_value(); });
  EXPECT_EQ(*exchanged, ErrorCode::kRankLost);
  const Status barrier = pair.zero.synchronize(stream);
  ASSERT_EQ(codeOf(barrier), ErrorCode::kRankLost) << barrier.error().detail;
  EXPECT_EQ(barrier.error().peer, 1);
  EXPECT_EQ(barrier.error().op, "barrier");
  EXPECT_NE(barrier.error().detail.find("rank 1 left"), std::string::npos) << barrier.error().detail;
  EXPECT_EQ(codeOf(pair.zero.runtime.enqueueBarrier(stream)), ErrorCode::kPoisoned);
  pair.zero.dispose({rank});
}

// No host call asks for anything: the kernel that waits learns it from the process of rank 0.
TEST(Join, EndsTheWaitsOfOtherProcessesForARankThatIsAborted) {
  for (const int lost : {0, 1}) {
    Pair pair;
    ASSERT_NO_FATAL_FAILURE(pair.joinPatiently());
    Harness& gone = lost == 0 ? pair.zero : pair.one;
    Harness& left = lost == 0 ? pair.one : pair.zero;
    const Handle goes = lost == 0 ? pair.first->value() : pair.second->value();
    const Handle stays = lost == 0 ? pair.second->value() : pair.first->value();
    const Handle stream = valueOf(left.runtime.createStream(stays));
    ASSERT_TRUE(left.runtime.enqueueBarrier(stream));
    const auto begun = std::chrono::steady_clock::now();
    ASSERT_TRUE(gone.runtime.abortRank(goes, "no reason"));
    const Status barrier = left.synchronize(stream);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, milliseconds(10'000)) << "as if by the deadline";
    ASSERT_EQ(codeOf(barrier), ErrorCode::kRankLost) << barrier.error().detail;
    EXPECT_EQ(barrier.error().peer, lost);
    pair.one.dispose({pair.second->value()});
    pair.zero.dispose({pair.first->value()});
  }
}

TEST(Join, LeavesWaitsAloneWhenARankIsDisposedInOrder) {
  Pair pair;
  const int port = freePort();
  pair.join(configOf(0, port), configOf(1, port));
  ASSERT_TRUE(*pair.first && *pair.second);
  const Handle stream = valueOf(pair.zero.runtime.createStream(pair.first->value()));
  ASSERT_TRUE(pair.zero.runtime.enqueueBarrier(stream));
  // It has told rank 1 that it came, whose memory goes now.
  std::this_thread::sleep_for(milliseconds(200));
  pair.one.dispose({pair.second->value()});
  const Status barrier = pair.zero.synchronize(stream);
  EXPECT_EQ(codeOf(barrier), ErrorCode::kTimeout) << barrier.error().detail;
  pair.zero.dispose({pair.first->value()});
}

TEST(Join, RefusesAnotherVersionOnEveryRank) {
  Pair pair("0.0.1");
  const int port = freePort();
  pair.join(configOf(0, port), configOf(1, port));
  pair.expectOnBoth(ErrorCode::kDisagreement, "version");
}

TEST(Join, RefusesOtherOptionsOnEveryRank) {
  Pair pair;
  const int port = freePort();
  JoinConfig other = configOf(1, port);
  other.timeout = milliseconds(1400);
  pair.join(configOf(0, port), other);
  pair.expectOnBoth(ErrorCode::kDisagreement, "timeoutMs");
}

TEST(Join, GivesEachRankTheSmsItAskedFor) {
  Pair pair;
  const int port = freePort();
  JoinConfig a = configOf(0, port), b = configOf(1, port);
  a.sms = 28;
  b.sms = 4;
  pair.join(a, b);
  ASSERT_TRUE(*pair.first && *pair.second);
  EXPECT_EQ(pair.zero.runtime.deviceOf(pair.first->value()).value().smBudget, 28);
  EXPECT_EQ(pair.one.runtime.deviceOf(pair.second->value()).value().smBudget, 4);
  pair.one.dispose({pair.second->value()});
  pair.zero.dispose({pair.first->value()});
}

TEST(Join, RefusesMoreSmsThanTheSharedGpuHas) {
  Pair pair;
  const int port = freePort();
  JoinConfig a = configOf(0, port), b = configOf(1, port);
  a.sms = b.sms = 67;
  pair.join(a, b);
  for (const Joined* joined : {&pair.first, &pair.second}) {
    ASSERT_FALSE(**joined);
    EXPECT_EQ((*joined)->error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(Join, NamesTheRankWithAWrongToken) {
  Pair pair;
  const int port = freePort();
  JoinConfig a = configOf(0, port), b = configOf(1, port);
  a.token = "right";
  b.token = "wrong";
  pair.join(a, b);
  ASSERT_FALSE(*pair.first);
  EXPECT_EQ(pair.first->error().code, ErrorCode::kTimeout);
  EXPECT_EQ(pair.first->error().peer, 1);
  ASSERT_FALSE(*pair.second);
  EXPECT_EQ(pair.second->error().code, ErrorCode::kLauncher);
  EXPECT_EQ(pair.second->error().peer, 0);
}

TEST(Join, RefusesAnotherWorldSize) {
  Pair pair;
  const int port = freePort();
  JoinConfig b = configOf(1, port);
  b.worldSize = 3;
  pair.join(configOf(0, port), b);
  ASSERT_FALSE(*pair.first);
  EXPECT_EQ(pair.first->error().code, ErrorCode::kRankLost);
  EXPECT_EQ(pair.first->error().peer, 1);
  ASSERT_FALSE(*pair.second);
  EXPECT_EQ(pair.second->error().code, ErrorCode::kLauncher);
}

}  // namespace
}  // namespace nccl_ext::test
