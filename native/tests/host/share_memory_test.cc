// SPDX-License-Identifier: Apache-2.0
// Memory between processes: what is exported and how, what an import checks, and that nothing stays open.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/driver_api.hpp"
#include "tests/support/foreign.hpp"
#include "tests/support/gpus.hpp"
#include "tests/support/one_rank.hpp"

namespace nccl_ext::test {
namespace {

using fake::Memory;

bool isOpen(int descriptor) {
  return fcntl(descriptor, F_GETFD) >= 0;
}

// A share of `foreign` as another process would have made it.
MemoryShare ipcOf(const Foreign& foreign, std::int64_t offset, std::int64_t bytes) {
  MemoryShare share;
  share.kind = ShareKind::kIpc;
  CUipcMemHandle raw;
  EXPECT_EQ(driver().cuIpcGetMemHandle(&raw, foreign.address()), CUDA_SUCCESS);
  share.handle.resize(sizeof raw);
  std::memcpy(share.handle.data(), &raw, sizeof raw);
  share.byteOffset = offset;
  share.bytes = bytes;
  return share;
}

class OtherProcess {
 public:
  OtherProcess() { fake::driver().pretendOtherProcess(true); }
  ~OtherProcess() { fake::driver().pretendOtherProcess(false); }
};

void expectRefusal(const Outcome<Handle>& outcome, ErrorCode code, const std::string& sentence) {
  ASSERT_EQ(codeOf(outcome), code);
  EXPECT_NE(outcome.error().detail.find(sentence), std::string::npos) << outcome.error().detail;
  EXPECT_EQ(outcome.error().op, "importMemory");
  EXPECT_EQ(outcome.error().rank, 0);
}

TEST(ExportMemory, GivesAnIpcHandleForPlainMemory) {
  OneRank one;
  const Handle plain = valueOf(one.runtime.allocate(one.rank, 1000, MemoryKind::kPlain));
  const MemoryShare share = valueOf(one.runtime.exportMemory(plain));
  EXPECT_EQ(share.kind, ShareKind::kIpc);
  EXPECT_EQ(share.handle.size(), 64u);
  EXPECT_EQ(share.byteOffset, 0);
  EXPECT_EQ(share.bytes, 1000);
  const Foreign foreign(Memory::kMalloc);
  const Handle part = valueOf(one.runtime.wrapMemory(one.rank, foreign.address() + 512, 100));
  const MemoryShare inside = valueOf(one.runtime.exportMemory(part));
  EXPECT_EQ(inside.kind, ShareKind::kIpc);
  EXPECT_EQ(inside.byteOffset, 512);
  EXPECT_EQ(inside.bytes, 100);
}

TEST(ExportMemory, GivesOneDescriptorPerBufferOpenUntilItIsFreed) {
  OneRank one;
  const MemoryShare share = valueOf(one.runtime.exportMemory(one.buffer));
  EXPECT_EQ(share.kind, ShareKind::kDescriptor);
  EXPECT_EQ(share.processId, getpid());
  EXPECT_EQ(share.byteOffset, 0);
  EXPECT_EQ(share.bytes, 1024);
  EXPECT_EQ(share.allocationBytes, kMappingBytes);
  EXPECT_EQ(fcntl(share.descriptor, F_GETFD), FD_CLOEXEC) << "children do not inherit it";
  EXPECT_EQ(valueOf(one.runtime.exportMemory(one.buffer)).descriptor, share.descriptor);
  ASSERT_TRUE(one.runtime.freeBuffer(one.buffer));
  EXPECT_FALSE(isOpen(share.descriptor));
  EXPECT_EQ(codeOf(one.runtime.exportMemory(one.buffer)), ErrorCode::kDisposed);

  const Foreign segment(Memory::kVirtual);
  const Handle wrapped = valueOf(one.runtime.wrapMemory(one.rank, segment.address() + 4096, 8));
  const MemoryShare part = valueOf(one.runtime.exportMemory(wrapped));
  EXPECT_EQ(part.byteOffset, 4096);
  one.dispose(one.handles);
  EXPECT_FALSE(isOpen(part.descriptor)) << "disposing the rank frees its buffers";
}

TEST(ExportMemory, SaysWhyMemoryCannotBeShared) {
  const Foreign pool(Memory::kPool), managed(Memory::kManaged), unshareable(Memory::kUnshareable),
      other(Memory::kOtherProcess), segments(Memory::kVirtual, 1, 2);
  OneRank one;
  const auto expectSentence = [&](const Foreign& foreign, std::int64_t bytes, const char* sentence) {
    const Handle buffer = valueOf(one.runtime.wrapMemory(one.rank, foreign.address(), bytes));
    const auto outcome = one.runtime.exportMemory(buffer);
    ASSERT_EQ(codeOf(outcome), ErrorCode::kUnsupported);
    EXPECT_NE(outcome.error().detail.find(sentence), std::string::npos) << outcome.error().detail;
    EXPECT_NE(outcome.error().help, "");
    EXPECT_EQ(outcome.error().rank, 0);
  };
  expectSentence(pool, 8, "pool");
  expectSentence(managed, 8, "managed");
  expectSentence(unshareable, 8, "without POSIX file descriptors");
  expectSentence(other, 8, "imported from another process");
  expectSentence(segments, kMappingBytes + 1, "several allocations");
  const Handle first = valueOf(one.runtime.wrapMemory(one.rank, segments.address(), kMappingBytes));
  EXPECT_TRUE(one.runtime.exportMemory(first)) << "a part of one segment is one allocation";
}

TEST(ImportMemory, OpensAnIpcHandleOnceForAllItsUsers) {
  const OtherProcess other;
  const Foreign foreign(Memory::kMalloc);
  OneRank one;
  const auto usage = one.runtime.memoryUsage();
  const Handle first = valueOf(one.runtime.importMemory(one.rank, ipcOf(foreign, 0, 4096)));
  const Handle second = valueOf(one.runtime.importMemory(one.rank, ipcOf(foreign, 100, 50)));
  EXPECT_EQ(fake::driver().openedIpc(), 1) << "opened once, though imported twice";
  EXPECT_EQ(one.runtime.memoryUsage().allocatedBytes, usage.allocatedBytes);
  ASSERT_TRUE(one.runtime.enqueueFill(one.stream, second, 0, 50, 9));
  ASSERT_TRUE(one.synchronize(one.stream));
  EXPECT_EQ(foreign.data()[100], 9);
  expectRefusal(one.runtime.importMemory(one.rank, ipcOf(foreign, 100, 3997)), ErrorCode::kOutOfBounds,
                "allocation of 4096 bytes");
  EXPECT_EQ(fake::driver().openedIpc(), 1);
  ASSERT_TRUE(one.runtime.freeBuffer(first));
  const auto outcome = one.runtime.exportMemory(second);
  EXPECT_EQ(codeOf(outcome), ErrorCode::kUnsupported) << "another process's memory is not shared on";
  EXPECT_EQ(fake::driver().openedIpc(), 1);
  ASSERT_TRUE(one.runtime.freeBuffer(second));
  one.until([&] { return fake::driver().openedIpc() == 0; });
  const Handle again = valueOf(one.runtime.importMemory(one.rank, ipcOf(foreign, 0, 1)));
  EXPECT_GT(again, 0);
  // Disposing the rank closes what it imported, as soon as no kernel can hold that up.
  one.dispose(one.handles);
  one.until([&] { return fake::driver().openedIpc() == 0; });
}

TEST(ImportMemory, RefusesIpcHandlesThatAreWrong) {
  const Gpus gpus(3);
  const Foreign foreign(Memory::kMalloc), far(Memory::kMalloc, 4096, 1, 2);
  OneRank one;
  const Handle plain = valueOf(one.runtime.allocate(one.rank, 64, MemoryKind::kPlain));
  const MemoryShare exported = valueOf(one.runtime.exportMemory(plain));
  expectRefusal(one.runtime.importMemory(one.rank, ipcOf(foreign, 0, 8)), ErrorCode::kInvalidArgument,
                "of this process");
  const OtherProcess other;
  expectRefusal(one.runtime.importMemory(one.rank, exported), ErrorCode::kInvalidArgument, "of this process");
  expectRefusal(one.runtime.importMemory(one.rank, ipcOf(far, 0, 8)), ErrorCode::kUnsupported, "GPU 0 cannot reach");
  MemoryShare wrong = ipcOf(foreign, 0, 8);
  wrong.handle.insert(wrong.handle.begin(), {1, 'c'});
  const auto outcome = one.runtime.importMemory(one.rank, wrong);
  expectRefusal(outcome, ErrorCode::kInvalidArgument, "64 bytes");
  EXPECT_EQ(std::get<std::int64_t>(outcome.error().seen), 66);
  EXPECT_NE(outcome.error().help.find("PyTorch"), std::string::npos);
  wrong.handle.assign(64, 1);
  expectRefusal(one.runtime.importMemory(one.rank, wrong), ErrorCode::kInvalidArgument, "cannot open the handle");
  wrong.byteOffset = -1;
  expectRefusal(one.runtime.importMemory(one.rank, wrong), ErrorCode::kInvalidArgument, "byteOffset");
  expectRefusal(one.runtime.importMemory(one.rank, MemoryShare()), ErrorCode::kInvalidArgument, "'ipc' or 'fd'");
  EXPECT_EQ(fake::driver().openedIpc(), 0);
}

TEST(ImportMemory, KnowsHandlesOfThisProcessAsLongAsABufferIsExported) {
  const Foreign foreign(Memory::kMalloc);
  OneRank one;
  const OtherProcess other;
  const Handle whole = valueOf(one.runtime.wrapMemory(one.rank, foreign.address(), 4096));
  const Handle part = valueOf(one.runtime.wrapMemory(one.rank, foreign.address() + 512, 8));
  const MemoryShare share = valueOf(one.runtime.exportMemory(whole));
  EXPECT_EQ(valueOf(one.runtime.exportMemory(part)).handle, share.handle);
  ASSERT_TRUE(one.runtime.freeBuffer(whole));
  expectRefusal(one.runtime.importMemory(one.rank, share), ErrorCode::kInvalidArgument, "of this process");
  ASSERT_TRUE(one.runtime.freeBuffer(part));
  EXPECT_TRUE(one.runtime.importMemory(one.rank, share));
  one.dispose(one.handles);
  one.until([&] { return fake::driver().openedIpc() == 0; });
}

TEST(ImportMemory, MapsADescriptorAndUnmapsItWhenFreed) {
  OneRank one;
  MemoryShare share = valueOf(one.runtime.exportMemory(one.buffer));
  const int before = fake::driver().live();
  share.byteOffset = 16;
  share.bytes = 100;
  const Handle mapped = valueOf(one.runtime.importMemory(one.rank, share));
  share.processId = 0;
  const Handle again = valueOf(one.runtime.importMemory(one.rank, share));
  EXPECT_GT(fake::driver().live(), before);
  EXPECT_NE(valueOf(one.runtime.bufferAddress(mapped)), valueOf(one.runtime.bufferAddress(again)));
  Bytes down(100);
  ASSERT_TRUE(one.runtime.enqueueFill(one.stream, one.buffer, 0, 1024, 3));
  ASSERT_TRUE(one.runtime.enqueueFill(one.stream, mapped, 0, 50, 5));
  ASSERT_TRUE(one.runtime.enqueueDownload(one.stream, spanOf(down), again, 0));
  ASSERT_TRUE(one.synchronize(one.stream));
  EXPECT_EQ(down[49], 5);
  EXPECT_EQ(down[50], 3);
  EXPECT_EQ(codeOf(one.runtime.exportMemory(mapped)), ErrorCode::kUnsupported);
  ASSERT_TRUE(one.runtime.freeBuffer(mapped));
  ASSERT_TRUE(one.runtime.freeBuffer(again));
  one.until([&] { return fake::driver().live() == before; });
  EXPECT_TRUE(isOpen(share.descriptor)) << "the caller's descriptor stays the caller's";
}

TEST(ImportMemory, BecomesNoWindow) {
  Harness harness;
  const auto ranks = harness.ranks(2);
  std::vector<Handle> buffers;
  for (const Handle rank : ranks)
    buffers.push_back(valueOf(harness.runtime.allocate(rank, 64, MemoryKind::kSymmetric)));
  const MemoryShare share = valueOf(harness.runtime.exportMemory(buffers[0]));
  buffers[1] = valueOf(harness.runtime.importMemory(ranks[1], share));
  int refused = 0;
  for (std::size_t rank = 0; rank < 2; rank++) {
    harness.runtime.registerWindow(ranks[rank], buffers[rank], [&](const Outcome<Handle>& window) {
      EXPECT_EQ(codeOf(window), ErrorCode::kUnsupported);
      EXPECT_NE(window.error().detail.find("memory of another process"), std::string::npos);
      refused++;
    });
  }
  harness.until([&] { return refused == 2; });
  harness.dispose(ranks);
}

TEST(ImportMemory, RefusesDescriptorsThatAreWrong) {
  const Gpus gpus(3);
  OneRank one;
  const int before = fake::driver().live();
  const MemoryShare good = valueOf(one.runtime.exportMemory(one.buffer));
  const auto expectOf = [&](auto change, ErrorCode code, const char* sentence) {
    MemoryShare share = good;
    change(share);
    expectRefusal(one.runtime.importMemory(one.rank, share), code, sentence);
  };
  using Share = MemoryShare&;
  expectOf([](Share share) { share.descriptor = -1; }, ErrorCode::kInvalidArgument, "fd must be");
  expectOf([](Share share) { share.descriptor = 0; }, ErrorCode::kInvalidArgument, "not one of device memory");
  expectOf([](Share share) { share.bytes = kMappingBytes + 1; }, ErrorCode::kOutOfBounds, "lie outside");
  expectOf([](Share share) { share.byteOffset = kMappingBytes; }, ErrorCode::kOutOfBounds, "lie outside");
  expectOf([](Share share) { share.allocationBytes = -1; }, ErrorCode::kOutOfBounds, "lie outside");
  expectOf([](Share share) { share.allocationBytes -= 1; }, ErrorCode::kInvalidArgument, "multiples of 2097152");
  expectOf([](Share share) { share.allocationBytes *= 2; }, ErrorCode::kInvalidArgument, "has no 4194304 bytes");
  expectOf([](Share share) { share.processId = -5; }, ErrorCode::kInvalidArgument, "processId");
  expectOf([](Share share) { share.bytes = -1; }, ErrorCode::kInvalidArgument, "bytes must be");
  const Foreign far(Memory::kVirtual, 1, 1, 2);
  Harness second;
  const auto ranks = valueOf(second.tryRanks({1, {2}, std::chrono::milliseconds(2000)}));
  const Handle wrapped = valueOf(second.runtime.wrapMemory(ranks[0], far.address(), 64));
  expectRefusal(one.runtime.importMemory(one.rank, valueOf(second.runtime.exportMemory(wrapped))),
                ErrorCode::kUnsupported, "GPU 0 cannot reach memory of GPU 2");
  second.dispose(ranks);
  EXPECT_EQ(fake::driver().live(), before + 3) << "a refused import leaves nothing but what `far` is";
}

TEST(ImportMemory, TakesTheDescriptorOfAnotherProcess) {
  OneRank one;
  MemoryShare share = valueOf(one.runtime.exportMemory(one.buffer));
  // The child holds a copy of every descriptor.
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  share.processId = child;
  const Handle mapped = valueOf(one.runtime.importMemory(one.rank, share));
  ASSERT_TRUE(one.runtime.enqueueFill(one.stream, mapped, 0, 1024, 4));
  ASSERT_TRUE(one.synchronize(one.stream));
  EXPECT_EQ(*reinterpret_cast<std::uint8_t*>(valueOf(one.runtime.bufferAddress(one.buffer))), 4);
  MemoryShare unknown = share;
  unknown.descriptor = 100'000;
  expectRefusal(one.runtime.importMemory(one.rank, unknown), ErrorCode::kInvalidArgument, "there is no descriptor");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  expectRefusal(one.runtime.importMemory(one.rank, share), ErrorCode::kInvalidArgument, "there is no process");
  one.dispose(one.handles);
}

}  // namespace
}  // namespace nccl_ext::test
