// SPDX-License-Identifier: Apache-2.0
// Ranks hear of one that is lost while they meet nobody: who was aborted or went without a word, and never who was done.
#include <condition_variable>
#include <map>

#include "runtime/tcp_frames.hpp"
#include "tests/support/meetings.hpp"

namespace nccl_ext::test {
namespace {

// Who was told whom the ranks lost, by rank.
class Told {
 public:
  void watch(Meetings& meetings, int rank) { watch(meetings.of(rank), rank); }
  void watch(Meeting& meeting, int rank) {
    meeting.watch(rank, [this, rank](int lost) {
      const std::lock_guard<std::mutex> lock(mutex_);
      EXPECT_EQ(lost_.count(rank), 0u) << "told twice";
      lost_[rank] = lost;
      changed_.notify_all();
    });
  }

  // Waits for `count` of them, which must not take as long as a deadline.
  std::map<int, int> await(std::size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, milliseconds(3000), [&] { return lost_.size() >= count; });
    return lost_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, int> lost_;
};

const ErrorRecord aborted = fail(ErrorCode::kAborted, "abort", "the rank was aborted");
const ErrorRecord disposed = fail(ErrorCode::kDisposed, "dispose", "the rank was disposed");

class WatchTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Both, WatchTest, testing::Values(false, true),
                         [](const auto& test) { return test.param ? "Tcp" : "Local"; });

TEST_P(WatchTest, TellsTheOthersAtOnceOfARankThatIsAborted) {
  for (const int lost : {0, 1}) {
    Told told;
    Meetings meetings(3, GetParam());
    for (auto& result : meetings.all("everyone connects")) ASSERT_TRUE(result.get());
    for (int rank = 0; rank < 3; rank++) told.watch(meetings, rank);
    meetings.of(lost).leave(lost, aborted);
    EXPECT_EQ(told.await(2), (std::map<int, int>{{1 - lost, lost}, {2, lost}}));
    // One that asks later hears of it as well.
    Told late;
    late.watch(meetings, 2);
    EXPECT_EQ(late.await(1), (std::map<int, int>{{2, lost}}));
  }
}

TEST_P(WatchTest, SaysNothingOfARankThatIsDone) {
  Told told;
  Meetings meetings(4, GetParam());
  for (auto& result : meetings.all("everyone connects")) ASSERT_TRUE(result.get());
  for (int rank = 0; rank < 4; rank++) told.watch(meetings, rank);
  meetings.of(3).leave(3, disposed);
  // Over TCP as well it has left when others miss it.
  EXPECT_EQ(meetings.gather(2, "after").get().error().peer, 3);
  meetings.of(1).leave(1, late(1, 2));
  EXPECT_EQ(told.await(2), (std::map<int, int>{{0, 2}, {2, 1}}))
      << "not the rank that left first, nor itself; who left is not told";
}

TEST(TcpWatch, TellsTheOthersOfAProcessThatEndsWithoutAWord) {
  const int port = freePort();
  Told told;
  std::vector<std::unique_ptr<TcpMeeting>> ranks;
  for (int rank = 0; rank < 3; rank++) ranks.push_back(std::make_unique<TcpMeeting>(Meetings::configOf(rank, 3, port)));
  std::vector<std::future<Result>> results;
  for (int rank = 0; rank < 3; rank++)
    results.push_back(std::async(std::launch::async, [&ranks, rank] {
      return ranks[static_cast<std::size_t>(rank)]->gather(rank, arrivalOf(rank, "join"),
                                                           Clock::now() + milliseconds(5000));
    }));
  for (auto& result : results) ASSERT_TRUE(result.get());
  for (int rank = 0; rank < 2; rank++) told.watch(*ranks[static_cast<std::size_t>(rank)], rank);
  ranks[2].reset();
  EXPECT_EQ(told.await(2), (std::map<int, int>{{0, 2}, {1, 2}}));
}

// Rank 0 of a world of two that lets rank 1 in, says `last` if there is something in it, and is gone.
void playRankZero(int port, const Bytes& last) {
  Outcome<Socket> listener = Socket::listenOn("127.0.0.1", port);
  ASSERT_TRUE(listener) << listener.error().detail;
  std::optional<Socket> one = listener.value().accept(milliseconds(5000));
  ASSERT_TRUE(one);
  const auto deadline = Clock::now() + milliseconds(5000);
  ASSERT_TRUE(one->receive(deadline, kMaxGreeting));
  ASSERT_TRUE(one->send(encode(Result(std::vector<Bytes>{})), deadline));
  ASSERT_TRUE(one->receive(deadline, kMaxFrame));
  ASSERT_TRUE(one->send(encode(Result(std::vector<Bytes>(2))), deadline));
  ASSERT_TRUE(last.empty() || one->send(last, deadline));
}

TEST(TcpWatch, TellsOfARankZeroThatEndsWithoutAFarewell) {
  const Bytes farewell = encode(Notice{-1, lostConnection(1, 0, "rank 0 ended")});
  for (const bool done : {false, true}) {
    const int port = freePort();
    const auto zero = std::async(std::launch::async, playRankZero, port, done ? farewell : Bytes());
    Told told;
    TcpMeeting one(Meetings::configOf(1, 2, port));
    ASSERT_TRUE(one.gather(1, arrivalOf(1, "join"), Clock::now() + milliseconds(5000)));
    told.watch(one, 1);
    const Result after = one.gather(1, arrivalOf(1, "after"), Clock::now() + milliseconds(5000));
    EXPECT_EQ(after.error().detail, done ? "rank 0 ended" : "the connection to rank 0 ended");
    EXPECT_EQ(told.await(done ? 0 : 1).size(), done ? 0u : 1u);
  }
}

}  // namespace
}  // namespace nccl_ext::test
