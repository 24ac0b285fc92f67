// SPDX-License-Identifier: Apache-2.0
// Streams that other libraries share with us: one order of work, their own life, their captures respected.
#include <atomic>

#include "tests/fake/fake_cudart.hpp"
#include "tests/fake/fake_driver.hpp"
#include "tests/support/gpus.hpp"
#include "tests/support/one_rank.hpp"

namespace nccl_ext::test {
namespace {

// A stream of another library.
class TheirStream {
 public:
  TheirStream() { EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess); }
  ~TheirStream() { (void)cudaStreamDestroy(stream_); }
  TheirStream(const TheirStream&) = delete;
  TheirStream& operator=(const TheirStream&) = delete;

  cudaStream_t get() const { return stream_; }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(stream_); }

 private:
  cudaStream_t stream_ = nullptr;
};

TEST(WrapStream, RunsBothPartiesWorkInOrderAndIsLeftToItsOwner) {
  const TheirStream theirs;
  OneRank one;
  const Handle stream = valueOf(one.runtime.wrapStream(one.rank, theirs.address()));
  EXPECT_EQ(valueOf(one.runtime.streamAddress(stream)), theirs.address());
  auto* memory = reinterpret_cast<std::uint8_t*>(valueOf(one.runtime.bufferAddress(one.buffer)));
  std::atomic<int> seen{0};
  ASSERT_TRUE(one.runtime.enqueueFill(stream, one.buffer, 0, 8, 1));
  fake::launch(theirs.get(), [&] { seen = memory[0]; });
  ASSERT_TRUE(one.runtime.enqueueFill(stream, one.buffer, 0, 8, 2));
  ASSERT_TRUE(one.runtime.enqueueBarrier(stream));
  ASSERT_TRUE(one.synchronize(stream));
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(memory[0], 2);
  ASSERT_TRUE(one.runtime.freeStream(stream));
  one.dispose(one.handles);
  std::atomic<bool> alive{false};
  fake::launch(theirs.get(), [&] { alive = true; });
  one.until([&] { return alive.load(); });
}

TEST(WrapStream, IsHeldWhileWorkIsUnfinishedAndDrainedByDispose) {
  const TheirStream theirs;
  OneRank one;
  const Handle stream = valueOf(one.runtime.wrapStream(one.rank, theirs.address()));
  std::atomic<bool> go{false};
  fake::launch(theirs.get(), [&] {
    while (!go) std::this_thread::yield();
  });
  ASSERT_TRUE(one.runtime.enqueueFill(stream, one.buffer, 0, 8, 1));
  EXPECT_EQ(codeOf(one.runtime.freeStream(stream)), ErrorCode::kBusy);
  go = true;
  one.dispose(one.handles);
  EXPECT_EQ(codeOf(one.runtime.enqueueBarrier(stream)), ErrorCode::kDisposed);
}

TEST(WrapStream, RefusesDefaultStreamsAndThoseOfOtherContexts) {
  const Gpus gpus(2);
  OneRank one;
  const auto expect = [&](std::uint64_t address, ErrorCode code, const char* sentence) {
    const auto outcome = one.runtime.wrapStream(one.rank, address);
    ASSERT_EQ(codeOf(outcome), code);
    EXPECT_NE(outcome.error().detail.find(sentence), std::string::npos) << outcome.error().detail;
    EXPECT_NE(outcome.error().help, "");
    EXPECT_EQ(outcome.error().rank, 0);
  };
  expect(0, ErrorCode::kInvalidArgument, "NULL");
  expect(1, ErrorCode::kInvalidArgument, "default stream");
  expect(2, ErrorCode::kInvalidArgument, "each thread");
  expect(0x1234560, ErrorCode::kInvalidArgument, "not one of a CUDA stream");
  const TheirStream far, odd;
  fake::driver().adoptStream(far.get(), 1, false);
  expect(far.address(), ErrorCode::kInvalidArgument, "GPU 1; rank 0 is on GPU 0");
  fake::driver().adoptStream(odd.get(), 0, true);
  expect(odd.address(), ErrorCode::kUnsupported, "context of its own on GPU 0");
  EXPECT_EQ(fake::driver().current(), 0);
  EXPECT_EQ(codeOf(one.runtime.streamAddress(one.buffer)), ErrorCode::kInvalidArgument);
}

TEST(WrapStream, RespectsCapturesOfOthers) {
  const TheirStream theirs;
  OneRank one;
  cudaGraph_t graph = nullptr;
  (void)cudaStreamBeginCapture(theirs.get(), cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(codeOf(one.runtime.wrapStream(one.rank, theirs.address())), ErrorCode::kInvalidState);
  (void)cudaStreamEndCapture(theirs.get(), &graph);
  (void)cudaGraphDestroy(graph);
  // A stream of theirs that we wrap, and one of ours that they know.
  const Handle wrapped = valueOf(one.runtime.wrapStream(one.rank, theirs.address()));
  const std::uint64_t known = valueOf(one.runtime.streamAddress(one.stream));
  const std::pair<Handle, cudaStream_t> both[] = {{wrapped, theirs.get()},
                                                  {one.stream, reinterpret_cast<cudaStream_t>(known)}};
  for (const auto& [stream, raw] : both) {
    ASSERT_TRUE(one.runtime.enqueueFill(stream, one.buffer, 0, 8, 1));
    (void)cudaStreamBeginCapture(raw, cudaStreamCaptureModeRelaxed);
    const Status status = one.runtime.enqueueFill(stream, one.buffer, 0, 8, 2);
    EXPECT_EQ(codeOf(status), ErrorCode::kInvalidState);
    EXPECT_NE(status.error().detail.find("somebody else records"), std::string::npos);
    EXPECT_EQ(codeOf(one.runtime.enqueueBarrier(stream)), ErrorCode::kInvalidState);
    EXPECT_EQ(codeOf(one.runtime.beginCapture(stream)), ErrorCode::kInvalidState);
    EXPECT_TRUE(one.synchronize(stream)) << "what was enqueued before is waited for";
    (void)cudaStreamEndCapture(raw, &graph);
    (void)cudaGraphDestroy(graph);
    EXPECT_TRUE(one.runtime.enqueueFill(stream, one.buffer, 0, 8, 3));
    EXPECT_TRUE(one.synchronize(stream));
  }
  EXPECT_FALSE(one.runtime.poisonOf(one.rank).has_value());
}

TEST(WrapStream, RecordsGraphsOfOurs) {
  const TheirStream theirs;
  OneRank one;
  const Handle stream = valueOf(one.runtime.wrapStream(one.rank, theirs.address()));
  ASSERT_TRUE(one.runtime.beginCapture(stream));
  ASSERT_TRUE(one.runtime.enqueueFill(stream, one.buffer, 0, 8, 6));
  const Handle graph = valueOf(one.runtime.endCapture(stream));
  ASSERT_TRUE(one.runtime.launchGraph(graph, stream));
  ASSERT_TRUE(one.synchronize(stream));
  EXPECT_EQ(*reinterpret_cast<std::uint8_t*>(valueOf(one.runtime.bufferAddress(one.buffer))), 6);
  one.dispose(one.handles);
}

TEST(WrapStream, CountsForTheLimitOfADevice) {
  const TheirStream theirs;
  Harness harness;
  const auto ranks = harness.ranks(1);
  for (int i = 0; i < 32; i++) (void)valueOf(harness.runtime.createStream(ranks[0]));
  EXPECT_EQ(codeOf(harness.runtime.wrapStream(ranks[0], theirs.address())), ErrorCode::kUnsupported);
  harness.dispose(ranks);
}

}  // namespace
}  // namespace nccl_ext::test
