// SPDX-License-Identifier: Apache-2.0
// Meetings of processes: who may join, who comes late, and what the others hear when rank 0 ends.
#include "runtime/tcp_frames.hpp"
#include "tests/support/meetings.hpp"

namespace nccl_ext::test {
namespace {

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

// What a stranger that knows the token gets for its greeting.
Result greetAs(Socket& socket, const Greeting& greeting) {
  const auto deadline = Clock::now() + milliseconds(5000);
  EXPECT_TRUE(socket.send(encode(greeting), deadline));
  const std::optional<Bytes> answer = socket.receive(deadline, kMaxFrame);
  return answer ? decodeAnswer(*answer, static_cast<int>(greeting.rank)) : Result(lostConnection(-1, 0, "no answer"));
}

// The first that came has said how many they are: a rank beyond has no place in what is kept by rank.
TEST(TcpMeeting, RefusesAnotherSizeOfAPart) {
  const int port = freePort();
  TcpMeeting zero(Meetings::configOf(0, 4, port));
  auto world = std::async(std::launch::async,
                          [&] { return zero.gather(0, arrivalOf(0, "join"), Clock::now() + milliseconds(1000)); });
  std::vector<Socket> sockets;
  std::vector<Result> results;
  for (const auto& [rank, size] : {std::pair<int, int>{0, 2}, {3, 4}, {1, 4}, {1, 2}}) {
    Outcome<Socket> socket = Socket::connectTo("127.0.0.1", port, Clock::now() + milliseconds(5000));
    ASSERT_TRUE(socket);
    sockets.push_back(std::move(socket.value()));
    Greeting greeting;
    greeting.group = "/part";
    greeting.rank = rank;
    greeting.size = size;
    greeting.token = "secret";
    results.push_back(greetAs(sockets.back(), greeting));
  }
  EXPECT_TRUE(results[0]);
  for (const std::size_t wrong : {1u, 2u}) {
    ASSERT_FALSE(results[wrong]);
    EXPECT_EQ(results[wrong].error().code, ErrorCode::kLauncher);
    EXPECT_NE(results[wrong].error().detail.find("a world of 4 ranks, rank 0 one of 2"), std::string::npos);
  }
  EXPECT_TRUE(results[3]);
  EXPECT_EQ(world.get().error().peer, 1);
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
}  // namespace nccl_ext::test
