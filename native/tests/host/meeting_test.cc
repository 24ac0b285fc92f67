// SPDX-License-Identifier: Apache-2.0
// Meetings: everyone's payload by rank, and a typed error on every rank for each way in which one can go wrong; in one
// process and over TCP alike.
#include <future>
#include <thread>

#include "runtime/tcp_meeting.hpp"
#include "tests/support/free_port.hpp"

namespace nccl_ext {
namespace {

using Result = Outcome<std::vector<Bytes>>;
using std::chrono::milliseconds;

Arrival arrivalOf(int rank, const std::string& topic) {
  return {"exchange", topic, Bytes(static_cast<std::size_t>(rank + 1), static_cast<std::uint8_t>(rank))};
}

using test::freePort;

// One meeting object per rank, as processes have; local ranks share one.
class Meetings {
 public:
  explicit Meetings(int size, bool tcp) : size_(size) {
    const int port = tcp ? freePort() : 0;
    if (!tcp) shared_ = std::make_unique<LocalMeeting>(size);
    for (int rank = 0; tcp && rank < size; rank++)
      own_.push_back(std::make_unique<TcpMeeting>(configOf(rank, size, port)));
  }

  static TcpMeetingConfig configOf(int rank, int size, int port) {
    TcpMeetingConfig config;
    config.rank = rank;
    config.size = size;
    config.address = "127.0.0.1";
    config.port = port;
    config.timeout = milliseconds(1500);
    config.token = "secret";
    return config;
  }

  Meeting& of(int rank) { return shared_ ? *shared_ : *own_[static_cast<std::size_t>(rank)]; }

  std::future<Result> gather(int rank, const std::string& topic, milliseconds wait = milliseconds(5000)) {
    return std::async(std::launch::async, [this, rank, topic, wait] {
      return of(rank).gather(rank, arrivalOf(rank, topic), Clock::now() + wait);
    });
  }

  std::vector<std::future<Result>> all(const std::string& topic) {
    std::vector<std::future<Result>> results;
    for (int rank = 0; rank < size_; rank++) results.push_back(gather(rank, topic));
    return results;
  }

 private:
  int size_;
  std::unique_ptr<Meeting> shared_;
  std::vector<std::unique_ptr<Meeting>> own_;
};

class MeetingTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Both, MeetingTest, testing::Values(false, true),
                         [](const auto& test) { return test.param ? "Tcp" : "Local"; });

TEST_P(MeetingTest, GivesEveryRankAllPayloads) {
  Meetings meetings(4, GetParam());
  for (const char* topic : {"first", "second", "third"}) {
    for (auto& result : meetings.all(topic)) {
      const Result payloads = result.get();
      ASSERT_TRUE(payloads) << payloads.error().detail;
      ASSERT_EQ(payloads.value().size(), 4u);
      for (int rank = 0; rank < 4; rank++)
        EXPECT_EQ(payloads.value()[static_cast<std::size_t>(rank)], arrivalOf(rank, "").payload);
    }
  }
}

TEST_P(MeetingTest, ToleratesARankThatIsAMeetingAhead) {
  Meetings meetings(2, GetParam());
  auto fast = std::async(std::launch::async, [&] {
    for (int i = 0; i < 20; i++) {
      if (const Result result =
              meetings.of(1).gather(1, arrivalOf(1, std::to_string(i)), Clock::now() + milliseconds(5000));
          !result)
        return result.error().detail;
    }
    return std::string();
  });
  for (int i = 0; i < 20; i++)
    ASSERT_TRUE(meetings.of(0).gather(0, arrivalOf(0, std::to_string(i)), Clock::now() + milliseconds(5000)));
  EXPECT_EQ(fast.get(), "");
}

TEST_P(MeetingTest, NamesARankWithAnotherTopicAndGoesOn) {
  Meetings meetings(3, GetParam());
  auto a = meetings.gather(0, "same"), b = meetings.gather(1, "other"), c = meetings.gather(2, "same");
  for (auto* result : {&a, &b, &c}) {
    const Result outcome = result->get();
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::kDisagreement);
    EXPECT_EQ(outcome.error().peer, 1);
    EXPECT_EQ(std::get<std::string>(outcome.error().seen), "other");
  }
  for (auto& result : meetings.all("again")) EXPECT_TRUE(result.get());
}

TEST_P(MeetingTest, NamesARankThatDoesNotCome) {
  Meetings meetings(3, GetParam());
  for (auto& result : meetings.all("everyone connects")) ASSERT_TRUE(result.get());
  auto a = meetings.gather(0, "late", milliseconds(200)), b = meetings.gather(1, "late", milliseconds(200));
  for (auto* result : {&a, &b}) {
    const Result outcome = result->get();
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::kTimeout);
    EXPECT_EQ(outcome.error().peer, 2);
  }
  const Result late = meetings.gather(2, "late").get();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kTimeout);
}

TEST_P(MeetingTest, TellsTheOthersOfARankThatLeft) {
  Meetings meetings(3, GetParam());
  for (auto& result : meetings.all("everyone connects")) ASSERT_TRUE(result.get());
  auto own = meetings.gather(1, "next"), other = meetings.gather(2, "next");
  std::this_thread::sleep_for(milliseconds(50));
  meetings.of(1).leave(1, fail(ErrorCode::kAborted, "abort", "rank 1 was aborted"));
  const Result mine = own.get();
  ASSERT_FALSE(mine);
  EXPECT_EQ(mine.error().code, ErrorCode::kAborted);
  // Rank 1 had come to this meeting before it left; the next one is lost.
  if (!GetParam()) {
    ASSERT_TRUE(meetings.gather(0, "next").get());
    ASSERT_TRUE(other.get());
  } else {
    (void)meetings.gather(0, "next").get();
    (void)other.get();
  }
  const Result lost = meetings.gather(2, "after").get();
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::kRankLost);
  EXPECT_EQ(lost.error().peer, 1);
}

Failure late(int rank, int peer) {
  return fail(ErrorCode::kTimeout, "barrier",
              "rank " + std::to_string(rank) + " waited too long in barrier for rank " + std::to_string(peer))
      .ofRank(rank)
      .fromPeer(peer);
}

// A rank that waited in vain leaves too, and is not the one that was lost.
TEST_P(MeetingTest, NamesTheRankThatThoseWhoLeftHadLost) {
  Meetings meetings(4, GetParam());
  for (auto& result : meetings.all("everyone connects")) ASSERT_TRUE(result.get());
  meetings.of(1).leave(1, late(1, 2));
  auto waiting = meetings.gather(3, "after");
  const Result lost = meetings.gather(0, "after").get();
  for (const Result& outcome : {lost, waiting.get()}) {
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::kRankLost);
    EXPECT_EQ(outcome.error().peer, 2) << outcome.error().detail;
    EXPECT_NE(outcome.error().detail.find("rank 1 left: rank 1 waited too long"), std::string::npos)
        << outcome.error().detail;
  }
  const Result blamed = meetings.gather(2, "after").get();
  ASSERT_FALSE(blamed);
  EXPECT_EQ(blamed.error().peer, 1) << "a rank does not lose itself";
}

Result joinAs(TcpMeetingConfig config) {
  return TcpMeeting(config).gather(config.rank, arrivalOf(config.rank, "join"), Clock::now() + config.timeout);
}

struct Joined {
  Result zero, one;
};

// Rank 0 of a world of two, and a process that wants to be rank 1 with `config`.
Joined joinBoth(TcpMeetingConfig zero, TcpMeetingConfig one) {
  auto first = std::async(std::launch::async, joinAs, zero);
  Result second = joinAs(one);
  return {first.get(), second};
}

TEST(TcpMeeting, NamesRankZeroWhenItCannotBeReached) {
  auto config = Meetings::configOf(1, 2, freePort());
  config.timeout = milliseconds(300);
  const Result result = joinAs(config);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(result.error().peer, 0);
}

TEST(TcpMeeting, RefusesAnotherWorldSizeOnEveryRank) {
  const int port = freePort();
  const Joined joined = joinBoth(Meetings::configOf(0, 2, port), Meetings::configOf(1, 3, port));
  ASSERT_FALSE(joined.one);
  EXPECT_EQ(joined.one.error().code, ErrorCode::kLauncher);
  ASSERT_FALSE(joined.zero);
  EXPECT_EQ(joined.zero.error().code, ErrorCode::kRankLost);
  EXPECT_NE(joined.zero.error().detail.find("world of 3"), std::string::npos);
}

TEST(TcpMeeting, RefusesAWrongTokenAndTheOthersMissTheRank) {
  const int port = freePort();
  auto stranger = Meetings::configOf(1, 2, port);
  stranger.token = "guess";
  const Joined joined = joinBoth(Meetings::configOf(0, 2, port), stranger);
  ASSERT_FALSE(joined.one);
  EXPECT_EQ(joined.one.error().code, ErrorCode::kLauncher);
  ASSERT_FALSE(joined.zero);
  EXPECT_EQ(joined.zero.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(joined.zero.error().peer, 1);
}

TEST(TcpMeeting, RefusesASecondProcessOfTheSameRank) {
  const int port = freePort();
  Meetings meetings(3, false);
  TcpMeeting zero(Meetings::configOf(0, 3, port)), one(Meetings::configOf(1, 3, port));
  auto first = std::async(std::launch::async,
                          [&] { return zero.gather(0, arrivalOf(0, "join"), Clock::now() + milliseconds(1000)); });
  auto second = std::async(std::launch::async,
                           [&] { return one.gather(1, arrivalOf(1, "join"), Clock::now() + milliseconds(1000)); });
  std::this_thread::sleep_for(milliseconds(200));
  const Result twin = joinAs(Meetings::configOf(1, 3, port));
  ASSERT_FALSE(twin);
  EXPECT_EQ(twin.error().code, ErrorCode::kLauncher);
  EXPECT_NE(twin.error().detail.find("already"), std::string::npos);
  EXPECT_EQ(first.get().error().peer, 2);
  EXPECT_EQ(second.get().error().peer, 2);
}

// Ranks 1 and 2 of three meet as 0 and 1, while all three meet too.
TEST_P(MeetingTest, AGroupMeetsBesideTheWorld) {
  Meetings meetings(3, GetParam());
  for (auto& result : meetings.all("everyone connects")) ASSERT_TRUE(result.get());
  for (int round = 0; round < 3; round++) {
    const std::string name = std::to_string(round);
    std::shared_ptr<Meeting> first = meetings.of(1).group(name, 0, 2), second = first;
    if (GetParam()) second = meetings.of(2).group(name, 1, 2);
    auto alone = meetings.gather(1, "all");  // holds nobody up
    auto a = std::async(std::launch::async,
                        [&] { return first->gather(0, arrivalOf(0, "part"), Clock::now() + milliseconds(3000)); });
    const Result b = second->gather(1, arrivalOf(1, "part"), Clock::now() + milliseconds(3000));
    ASSERT_TRUE(b) << b.error().detail;
    EXPECT_EQ(b.value().size(), 2u);
    EXPECT_EQ(b.value()[1], arrivalOf(1, "").payload);
    ASSERT_TRUE(a.get());
    auto zero = meetings.gather(0, "all"), two = meetings.gather(2, "all");
    for (auto* result : {&alone, &zero, &two}) EXPECT_TRUE(result->get());
    // A rank that leaves its group stays in the world.
    first->leave(0, fail(ErrorCode::kAborted, "abort", "rank 0 was aborted"));
    const Result lost = second->gather(1, arrivalOf(1, "part"), Clock::now() + milliseconds(3000));
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().code, ErrorCode::kRankLost);
    EXPECT_EQ(lost.error().peer, 0);
  }
  for (auto& result : meetings.all("after")) EXPECT_TRUE(result.get());
}

TEST(TcpMeeting, WaitsForARankThatIsLate) {
  const int port = freePort();
  auto first = std::async(std::launch::async, joinAs, Meetings::configOf(0, 2, port));
  std::this_thread::sleep_for(milliseconds(300));
  const Result second = joinAs(Meetings::configOf(1, 2, port));
  EXPECT_TRUE(second) << second.error().detail;
  EXPECT_TRUE(first.get());
}

// Rank 0 may end at once after a meeting that all came to: the others still get what they met for.
TEST(TcpMeeting, AnswersBeforeItEnds) {
  for (int round = 0; round < 20; round++) {
    const int port = freePort();
    const Joined joined = joinBoth(Meetings::configOf(0, 2, port), Meetings::configOf(1, 2, port));
    ASSERT_TRUE(joined.one) << joined.one.error().detail;
    ASSERT_TRUE(joined.zero) << joined.zero.error().detail;
  }
}

// Rank 0 hears of a loss and ends, before the others have asked for anything.
TEST(TcpMeeting, RankZeroSaysWhoWasLostBeforeItEnds) {
  for (const bool told : {false, true}) {
    const int port = freePort();
    std::vector<std::unique_ptr<TcpMeeting>> ranks;
    for (int rank = 0; rank < 4; rank++)
      ranks.push_back(std::make_unique<TcpMeeting>(Meetings::configOf(rank, 4, port)));
    const auto gather = [&](int rank, const char* topic) {
      return std::async(std::launch::async, [&ranks, rank, topic] {
        return ranks[static_cast<std::size_t>(rank)]->gather(rank, arrivalOf(rank, topic),
                                                             Clock::now() + milliseconds(5000));
      });
    };
    std::vector<std::future<Result>> results;
    for (int rank = 0; rank < 4; rank++) results.push_back(gather(rank, "everyone connects"));
    for (auto& result : results) ASSERT_TRUE(result.get());
    auto waiting = gather(1, "after");
    // A process that is killed says nothing; one that is stopped is missed by rank 0.
    if (told)
      ranks[0]->leave(0, late(0, 2));
    else
      ranks[2].reset();
    const Result first = waiting.get();
    ranks[0].reset();
    for (const Result& outcome : {first, gather(1, "later").get(), gather(3, "later").get()}) {
      ASSERT_FALSE(outcome);
      EXPECT_EQ(outcome.error().code, ErrorCode::kRankLost);
      EXPECT_EQ(outcome.error().peer, 2) << outcome.error().detail;
    }
  }
}

TEST(TcpMeeting, SaysWhyRankZeroCannotListen) {
  const int port = freePort();
  auto config = Meetings::configOf(0, 2, port);
  config.address = "192.0.2.1";  // reserved for documentation: no interface has it
  const Result result = joinAs(config);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kLauncher);
  EXPECT_NE(result.error().detail.find("192.0.2.1"), std::string::npos);
}

}  // namespace
}  // namespace nccl_ext
