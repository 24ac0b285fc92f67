// SPDX-License-Identifier: Apache-2.0
// What comes over a connection is what somebody wrote who may be anybody: numbers that nothing may be done with, lengths without bytes.
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "runtime/tcp_frames.hpp"
#include "tests/support/meetings.hpp"

namespace nccl_ext::test {
namespace {

Greeting greetingOf(const std::string& group, std::int64_t rank, std::int64_t size) {
  Greeting greeting;
  greeting.group = group;
  greeting.rank = rank;
  greeting.size = size;
  greeting.token = "secret";
  return greeting;
}

TEST(TcpFrames, RefuseNumbersThatNoRankHas) {
  EXPECT_TRUE(decodeGreeting(encode(greetingOf("", 1, 2))));
  EXPECT_FALSE(decodeGreeting(encode(greetingOf("", (std::int64_t{1} << 32) + 1, 2))));
  EXPECT_FALSE(decodeGreeting(encode(greetingOf("", 1, (std::int64_t{1} << 32) + 2))));
}

TEST(TcpFrames, RefuseWaitsThatNoClockCanAdd) {
  const Arrival arrival = arrivalOf(1, "topic");
  EXPECT_TRUE(decodeRequest(encode(Request{arrival, milliseconds(-5), {}})));
  EXPECT_TRUE(decodeRequest(encode(Request{arrival, milliseconds(std::int64_t{1} << 33), {}})));
  EXPECT_FALSE(decodeRequest(encode(Request{arrival, milliseconds::max(), {}})));
  EXPECT_FALSE(decodeRequest(encode(Request{arrival, milliseconds::min(), {}})));
}

TEST(TcpFrames, EveryPartOfAFrameIsNone) {
  const Bytes whole = encode(Request{arrivalOf(1, "topic"), milliseconds(5), {}});
  for (std::size_t bytes = 0; bytes < whole.size(); bytes++)
    EXPECT_FALSE(decodeRequest(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)))) << bytes;
}

struct Pair {
  Pair() : ends(opened()), one(ends[0]), other(ends[1]) {}
  static std::array<int, 2> opened() {
    std::array<int, 2> ends = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    return ends;
  }
  std::array<int, 2> ends;
  Socket one, other;
};

long peakKib() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(TcpFrames, TakeNoMemoryForBytesThatDoNotCome) {
  Pair pair;
  const std::uint32_t claimed = kMaxFrame;
  const long before = peakKib();
  ASSERT_EQ(write(pair.ends[0], &claimed, sizeof claimed), static_cast<ssize_t>(sizeof claimed));
  EXPECT_FALSE(pair.other.receive(Clock::now() + milliseconds(200), kMaxFrame));
  EXPECT_LT(peakKib() - before, 128 << 10);
}

TEST(TcpFrames, ArriveWholeAtEveryLength) {
  Pair pair;
  for (const std::size_t bytes : {0u, 1u, 65'535u, 65'536u, 65'537u, 131'073u, 5'000'001u}) {
    Bytes frame(bytes);
    for (std::size_t i = 0; i < bytes; i++) frame[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
    auto sent = std::async(std::launch::async, [&] { return pair.one.send(frame, Clock::now() + milliseconds(5000)); });
    const std::optional<Bytes> got = pair.other.receive(Clock::now() + milliseconds(5000), kMaxFrame);
    ASSERT_TRUE(sent.get());
    ASSERT_TRUE(got);
    EXPECT_TRUE(*got == frame) << bytes << " bytes";
  }
}

}  // namespace
}  // namespace nccl_ext::test
