// SPDX-License-Identifier: Apache-2.0
// Memory of other libraries of the process: used in place, checked first, never freed; and what of it becomes a window.
#include <cstring>

#include "tests/fake/fake_cudart.hpp"
#include "tests/support/foreign.hpp"
#include "tests/support/gpus.hpp"
#include "tests/support/one_rank.hpp"

namespace nccl_ext::test {
namespace {

using fake::Memory;

TEST(WrapMemory, IsUsedInPlaceAndLeftToItsOwner) {
  const int before = fake::driver().live();
  {
    const Foreign foreign(Memory::kMalloc, 4096);
    OneRank one;
    const auto usage = one.runtime.memoryUsage();
    const Handle buffer = valueOf(one.runtime.wrapMemory(one.rank, foreign.address() + 96, 4000));
    EXPECT_EQ(valueOf(one.runtime.bufferAddress(buffer)), foreign.address() + 96);
    EXPECT_EQ(one.runtime.memoryUsage().allocatedBytes, usage.allocatedBytes) << "nothing was allocated";
    ASSERT_TRUE(one.runtime.enqueueFill(one.stream, buffer, 0, 4000, 7));
    ASSERT_TRUE(one.synchronize(one.stream));
    EXPECT_EQ(foreign.data()[96], 7);
    EXPECT_EQ(foreign.data()[4095], 7);
    EXPECT_EQ(codeOf(one.runtime.enqueueFill(one.stream, buffer, 0, 4001, 7)), ErrorCode::kOutOfBounds);
    ASSERT_TRUE(one.runtime.freeBuffer(buffer));
    EXPECT_EQ(codeOf(one.runtime.freeBuffer(buffer)), ErrorCode::kDisposed);
    EXPECT_EQ(one.runtime.memoryUsage().allocatedBytes, usage.allocatedBytes);
    EXPECT_TRUE(one.runtime.wrapMemory(one.rank, foreign.address(), 4096)) << "it was not freed";
    one.dispose(one.handles);
    EXPECT_EQ(foreign.data()[96], 7);
  }
  EXPECT_EQ(fake::driver().live(), before);
}

TEST(WrapMemory, MayBeManagedOrOfSeveralMappings) {
  const Foreign managed(Memory::kManaged), segments(Memory::kVirtual, 1, 3), pool(Memory::kPool);
  OneRank one;
  EXPECT_TRUE(one.runtime.wrapMemory(one.rank, managed.address(), 4096));
  EXPECT_TRUE(one.runtime.wrapMemory(one.rank, pool.address(), 4096));
  EXPECT_TRUE(one.runtime.wrapMemory(one.rank, segments.address(), 3 * kMappingBytes));
  EXPECT_TRUE(one.runtime.wrapMemory(one.rank, segments.address() + 100, 3 * kMappingBytes - 100));
  const auto past = one.runtime.wrapMemory(one.rank, segments.address() + 100, 3 * kMappingBytes);
  ASSERT_EQ(codeOf(past), ErrorCode::kOutOfBounds);
  EXPECT_EQ(std::get<std::int64_t>(past.error().expected), 3 * kMappingBytes - 100);
}

TEST(WrapMemory, RefusesWhatIsNoMemoryOfTheRanksGpu) {
  const Gpus gpus(2);
  OneRank one;
  const Foreign pinned(Memory::kPinned), own(Memory::kMalloc), other(Memory::kMalloc, 4096, 1, 1);
  const int local = 0;
  const auto refusal = [&](std::uint64_t address, std::int64_t bytes) {
    const auto outcome = one.runtime.wrapMemory(one.rank, address, bytes);
    EXPECT_FALSE(outcome);
    EXPECT_EQ(outcome.error().rank, 0);
    EXPECT_NE(outcome.error().op, "");
    return outcome.error();
  };
  const auto says = [](const ErrorRecord& error, const char* text) {
    return error.detail.find(text) != std::string::npos && !error.help.empty();
  };
  EXPECT_TRUE(says(refusal(0, 8), "null"));
  EXPECT_EQ(refusal(own.address(), -1).code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(says(refusal(pinned.address(), 8), "host memory"));
  EXPECT_TRUE(says(refusal(reinterpret_cast<std::uint64_t>(&local), 4), "no device memory"));
  const ErrorRecord wrong = refusal(other.address(), 8);
  EXPECT_EQ(wrong.code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(says(wrong, "GPU 1; rank 0 is on GPU 0"));
  EXPECT_EQ(std::get<std::int64_t>(wrong.expected), 0);
  EXPECT_EQ(std::get<std::int64_t>(wrong.seen), 1);
  const ErrorRecord large = refusal(own.address() + 4000, 97);
  EXPECT_EQ(large.code, ErrorCode::kOutOfBounds);
  EXPECT_EQ(std::get<std::int64_t>(large.expected), 96);
  EXPECT_TRUE(says(large, "97 bytes"));
  EXPECT_EQ(codeOf(one.runtime.wrapMemory(one.stream, own.address(), 8)), ErrorCode::kInvalidArgument);
}

struct TwoRanks : Harness {
  TwoRanks() : handles(ranks(2)) {}
  std::vector<Outcome<Handle>> registerAll(Handle first, Handle second) {
    std::vector<Outcome<Handle>> results;
    const Handle buffers[] = {first, second};
    for (std::size_t rank = 0; rank < 2; rank++)
      runtime.registerWindow(handles[rank], buffers[rank],
                             [&](const Outcome<Handle>& window) { results.push_back(window); });
    until([&] { return results.size() == 2; });
    return results;
  }
  std::vector<Handle> handles;
};

TEST(WrapMemory, BecomesAWindowWhenPeersCanSeeIt) {
  const Foreign a(Memory::kVirtual), b(Memory::kVirtual);
  TwoRanks two;
  const Handle first = valueOf(two.runtime.wrapMemory(two.handles[0], a.address(), kMappingBytes));
  const Handle second = valueOf(two.runtime.wrapMemory(two.handles[1], b.address() + 8192, 1000));
  for (const auto& window : two.registerAll(first, second)) {
    ASSERT_TRUE(window) << window.error().detail;
    EXPECT_TRUE(two.runtime.freeWindow(window.value()));
  }
  EXPECT_TRUE(two.runtime.freeBuffer(first));
  two.dispose(two.handles);
}

TEST(WrapMemory, BecomesNoWindowOtherwiseAndEveryRankLearnsWhy) {
  const Foreign plain(Memory::kMalloc), pool(Memory::kPool), unshareable(Memory::kUnshareable),
      other(Memory::kOtherProcess), segments(Memory::kVirtual, 1, 2), fine(Memory::kVirtual);
  const struct {
    std::uint64_t address;
    std::int64_t bytes;
    ErrorCode code;
    const char* sentence;
  } cases[] = {
      {plain.address(), 4096, ErrorCode::kUnsupported, "wrapped memory of cudaMalloc"},
      {pool.address(), 4096, ErrorCode::kUnsupported, "wrapped memory of cudaMalloc or a pool"},
      {unshareable.address(), 4096, ErrorCode::kUnsupported, "without POSIX file descriptors"},
      {other.address(), 4096, ErrorCode::kUnsupported, "imported from another process"},
      {segments.address(), 2 * kMappingBytes, ErrorCode::kUnsupported, "several allocations"},
      {fine.address() + 100, 4096, ErrorCode::kInvalidArgument, "100 bytes into its allocation"},
  };
  TwoRanks two;
  const Handle symmetric = valueOf(two.runtime.allocate(two.handles[0], 4096, MemoryKind::kSymmetric));
  for (const auto& one : cases) {
    const Handle wrapped = valueOf(two.runtime.wrapMemory(two.handles[1], one.address, one.bytes));
    for (const auto& result : two.registerAll(symmetric, wrapped)) {
      EXPECT_EQ(codeOf(result), one.code);
      EXPECT_NE(result.error().detail.find(one.sentence), std::string::npos) << result.error().detail;
      EXPECT_NE(result.error().detail.find("rank 1"), std::string::npos);
      EXPECT_EQ(result.error().peer, result.error().rank == 0 ? 1 : -1);
    }
    EXPECT_TRUE(two.runtime.freeBuffer(wrapped));
  }
  const Handle last = valueOf(two.runtime.wrapMemory(two.handles[1], fine.address(), 4096));
  for (const auto& window : two.registerAll(symmetric, last)) EXPECT_TRUE(window) << "the world goes on";
  two.dispose(two.handles);
}

}  // namespace
}  // namespace nccl_ext::test
