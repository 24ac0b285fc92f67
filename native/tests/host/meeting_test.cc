// SPDX-License-Identifier: Apache-2.0
// Meetings: everyone's payload by rank, and a typed error on every rank for each way in which one can go wrong; in one
// process and over TCP alike.
#include "tests/support/meetings.hpp"

namespace nccl_ext::test {
namespace {

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

}  // namespace
}  // namespace nccl_ext::test
