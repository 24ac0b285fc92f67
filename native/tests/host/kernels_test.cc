// SPDX-License-Identifier: Apache-2.0
// Users' kernels on the fake driver: what is refused and in which words, how long modules and tables live, and what a
// kernel's guard does.
#include <elf.h>

#include <cstring>

#include "runtime/module_image.hpp"
#include "tests/support/one_rank.hpp"

namespace nccl_ext::test {
namespace {

using std::chrono::milliseconds;

constexpr const char* kPtx =
    ".version 8.4\n"
    "//kernel store 1024 0 0:8 8:8\n"
    "//kernel complain 1024 0 0:32 32:8\n"
    "//kernel await_flag 256 1024 0:8 8:8 16:32\n"
    "//kernel nothing 1024 0\n";

Bytes bytesOf(const std::string& text) {
  return Bytes(text.begin(), text.end());
}

Outcome<Handle> load(Harness& harness, Handle rank, Bytes image) {
  std::optional<Outcome<Handle>> result;
  harness.runtime.loadModule(rank, std::move(image),
                             [&](Outcome<Handle> module) { result.emplace(std::move(module)); });
  harness.until([&] { return result.has_value(); });
  return result.value_or(fail(ErrorCode::kInternal, "test", "no result"));
}

// One thread, and parameters of 64 bits each.
KernelLaunch launchOf(const std::vector<std::uint64_t>& words) {
  KernelLaunch launch;
  launch.grid = launch.block = {1, 1, 1};
  launch.sharedBytes = 0;
  launch.parameters.resize(words.size() * sizeof words[0]);
  if (!words.empty()) std::memcpy(launch.parameters.data(), words.data(), launch.parameters.size());
  for (std::size_t i = 0; i < words.size(); i++)
    launch.offsets.push_back(static_cast<std::int64_t>(i * sizeof words[0]));
  return launch;
}

// complain(guard, code)
KernelLaunch complaint(ErrorCode code) {
  KernelLaunch launch = launchOf({0, 0, 0, 0, static_cast<std::uint64_t>(code)});
  launch.offsets = {0, 32};
  launch.guardOffset = 0;
  return launch;
}

// await_flag(flag, value, guard)
KernelLaunch awaiting(std::uint64_t flag, std::uint64_t value) {
  KernelLaunch launch = launchOf({flag, value, 0, 0, 0, 0});
  launch.offsets = {0, 8, 16};
  launch.guardOffset = 16;
  return launch;
}

struct WithModule : OneRank {
  WithModule() { module = valueOf(load(*this, rank, bytesOf(kPtx))); }
  Handle kernel(const std::string& name) { return valueOf(runtime.kernelOf(module, name)); }
  Handle module = 0;
};

Bytes cubin(std::size_t bytes, std::uint16_t machine = 190) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_machine = machine;
  header.e_shoff = sizeof header;
  header.e_shnum = 1;
  header.e_shentsize = sizeof(Elf64_Shdr);
  Elf64_Shdr section{};
  section.sh_type = SHT_PROGBITS;
  section.sh_offset = sizeof header + sizeof section;
  section.sh_size = 64;
  Bytes image(sizeof header + sizeof section + 64);
  std::memcpy(image.data(), &header, sizeof header);
  std::memcpy(image.data() + sizeof header, &section, sizeof section);
  image.resize(bytes == 0 ? image.size() : bytes);
  return image;
}

TEST(ModuleImage, IsWholeOrRefused) {
  const auto prepared = [](Bytes image) { return codeOf(prepareImage(image)); };
  EXPECT_EQ(prepared({}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(prepared(Bytes(100, 'x')), ErrorCode::kModule);
  EXPECT_EQ(prepared(cubin(0)), ErrorCode::kNone);
  for (const std::size_t bytes : {4, 63, 64, 127, 191}) EXPECT_EQ(prepared(cubin(bytes)), ErrorCode::kModule) << bytes;
  EXPECT_EQ(prepared(cubin(0, EM_X86_64)), ErrorCode::kModule);
  EXPECT_EQ(prepared({0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 200, 0, 0, 0, 0, 0, 0, 0}), ErrorCode::kModule);
  EXPECT_EQ(prepared(bytesOf(std::string(".version 8.0\0x", 14))), ErrorCode::kModule) << "a zero inside";
  Bytes ptx = bytesOf(".version 8.0");
  ASSERT_TRUE(prepareImage(ptx));
  EXPECT_EQ(ptx.back(), 0) << "the driver reads up to a zero";
}

TEST(Modules, AreRefusedWithTheDriversWords) {
  OneRank one;
  const auto other = load(one, one.rank, cubin(0));
  ASSERT_EQ(codeOf(other), ErrorCode::kModule);
  EXPECT_NE(other.error().detail.find("no code for GPU 0"), std::string::npos);
  EXPECT_EQ(other.error().rank, 0);
  const auto newer = load(one, one.rank, bytesOf(".version 9.9\n"));
  ASSERT_EQ(codeOf(newer), ErrorCode::kModule);
  EXPECT_NE(newer.error().detail.find("newer than the driver"), std::string::npos);
  const auto wrong = load(one, one.rank, bytesOf(".version 8.0\n nowhere"));
  ASSERT_EQ(codeOf(wrong), ErrorCode::kModule);
  EXPECT_NE(wrong.error().detail.find("line 3; error : Unknown symbol 'nowhere'"), std::string::npos);
  EXPECT_EQ(codeOf(load(one, 99, bytesOf(kPtx))), ErrorCode::kInvalidArgument);
  EXPECT_FALSE(one.runtime.poisonOf(one.rank).has_value());
}

TEST(Kernels, RunInStreamOrderWithTheirParameters) {
  WithModule one;
  const Handle store = one.kernel("store");
  EXPECT_EQ(one.kernel("store"), store);
  Bytes down(8);
  KernelLaunch launch = launchOf({valueOf(one.runtime.bufferAddress(one.buffer)), 42});
  launch.buffers = {one.buffer};
  ASSERT_TRUE(one.runtime.enqueueFill(one.stream, one.buffer, 0, 8, 1));
  ASSERT_TRUE(one.runtime.launchKernel(one.stream, store, launch));
  ASSERT_TRUE(one.runtime.launchKernel(one.stream, one.kernel("nothing"), launchOf({})));
  ASSERT_TRUE(one.runtime.enqueueDownload(one.stream, spanOf(down), one.buffer, 0));
  ASSERT_TRUE(one.synchronize(one.stream));
  EXPECT_EQ(down, Bytes({42, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Kernels, AreNamedInTheErrorWhenTheModuleHasThemNot) {
  WithModule one;
  const auto missing = one.runtime.kernelOf(one.module, "stroe");
  ASSERT_EQ(codeOf(missing), ErrorCode::kInvalidArgument);
  EXPECT_NE(missing.error().detail.find("'stroe'; it has await_flag, complain, nothing, store"), std::string::npos);
  EXPECT_EQ(codeOf(one.runtime.kernelOf(one.stream, "store")), ErrorCode::kInvalidArgument);
}

TEST(Kernels, RefuseLaunchesThatDoNotFit) {
  WithModule one;
  const Handle store = one.kernel("store"), waits = one.kernel("await_flag");
  const auto launched = [&](Handle kernel, auto change) {
    KernelLaunch launch = kernel == store ? launchOf({1, 2}) : awaiting(0, 0);
    change(launch);
    return one.runtime.launchKernel(one.stream, kernel, launch);
  };
  const auto says = [&](ErrorCode code, const std::string& words, Handle kernel, auto change) {
    const Status status = launched(kernel, change);
    ASSERT_EQ(codeOf(status), code) << words;
    EXPECT_NE(status.error().detail.find(words), std::string::npos) << status.error().detail;
    EXPECT_EQ(status.error().rank, 0);
  };
  const auto wrong = ErrorCode::kInvalidArgument, misfit = ErrorCode::kModule;
  says(wrong, "grid[1]", store, [](auto& launch) { launch.grid = {1, 65'536, 1}; });
  says(wrong, "block[2]", store, [](auto& launch) { launch.block = {1, 1, 65}; });
  says(wrong, "block[0]", store, [](auto& launch) { launch.block = {0, 1, 1}; });
  says(wrong, "sharedBytes", store, [](auto& launch) { launch.sharedBytes = -1; });
  says(wrong, "ascend", store, [](auto& launch) { launch.offsets = {8, 0}; });
  says(wrong, "ascend", store, [](auto& launch) { launch.offsets = {0, 16}; });
  says(wrong, "no offsets", store, [](auto& launch) { launch.offsets = {}; });
  says(wrong, "guardOffset", store, [](auto& launch) { launch.guardOffset = 0; });
  says(wrong, "guardOffset", waits, [](auto& launch) { launch.guardOffset = 12; });
  says(misfit, "at most 256 threads", waits, [](auto& launch) { launch.block = {512, 1, 1}; });
  says(misfit, "dynamic shared memory", waits, [](auto& launch) { launch.sharedBytes = (227 << 10) - 1023; });
  says(misfit, "takes 2 parameters; it was given 1", store, [](auto& launch) { launch.offsets = {0}; });
  says(misfit, "reads 8 bytes of parameter 0; it was given 4", store, [](auto& launch) { launch.offsets = {0, 4}; });
  says(misfit, "reads parameter 1 at byte 8; it was given at byte 12; check the type of parameter 0", store,
       [](auto& launch) { launch.offsets = {0, 12}; });
  says(misfit, "reads 8 bytes of parameter 1; it was given 4", store,
       [](auto& launch) { launch.parameters.resize(12); });
  says(misfit, "no room for a KernelGuard in parameter 1", waits, [](auto& launch) { launch.guardOffset = 8; });
  EXPECT_EQ(codeOf(launched(store, [&](auto& launch) { launch.buffers = {one.stream}; })), wrong);
  EXPECT_EQ(one.runtime.queued(one.stream), 0);
}

TEST(Kernels, LaunchWithoutTheDriversTableOnOldDrivers) {
  setenv("FAKE_CUDA_NO_PARAM_INFO", "1", 1);
  WithModule one;
  unsetenv("FAKE_CUDA_NO_PARAM_INFO");
  KernelLaunch launch = launchOf({valueOf(one.runtime.bufferAddress(one.buffer)), 42});
  launch.offsets = {0, 4, 8};
  EXPECT_TRUE(one.runtime.launchKernel(one.stream, one.kernel("store"), launch)) << "not compared";
  launch.parameters.resize(8);
  launch.offsets = {0};
  EXPECT_EQ(codeOf(one.runtime.launchKernel(one.stream, one.kernel("store"), launch)), ErrorCode::kModule)
      << "the driver refuses";
  EXPECT_TRUE(one.synchronize(one.stream));
}

TEST(Modules, AreBusyWhileALaunchOrAGraphUsesThem) {
  WithModule one;
  std::uint64_t flag = 0;
  ASSERT_TRUE(one.runtime.launchKernel(one.stream, one.kernel("await_flag"),
                                       awaiting(reinterpret_cast<std::uint64_t>(&flag), 1)));
  EXPECT_EQ(codeOf(one.runtime.unloadModule(one.module)), ErrorCode::kBusy);
  publish<kSystem>(flag, std::uint64_t{1});
  ASSERT_TRUE(one.synchronize(one.stream));
  const Handle store = one.kernel("store");
  ASSERT_TRUE(one.runtime.beginCapture(one.stream));
  KernelLaunch launch = launchOf({valueOf(one.runtime.bufferAddress(one.buffer)), 7});
  launch.buffers = {one.buffer};
  ASSERT_TRUE(one.runtime.launchKernel(one.stream, store, launch));
  EXPECT_EQ(codeOf(one.runtime.unloadModule(one.module)), ErrorCode::kBusy) << "a capture";
  const Handle graph = valueOf(one.runtime.endCapture(one.stream));
  EXPECT_EQ(codeOf(one.runtime.unloadModule(one.module)), ErrorCode::kBusy) << "a graph";
  EXPECT_EQ(codeOf(one.runtime.freeBuffer(one.buffer)), ErrorCode::kBusy);
  ASSERT_TRUE(one.runtime.launchGraph(graph, one.stream));
  Bytes down(8);
  ASSERT_TRUE(one.runtime.enqueueDownload(one.stream, spanOf(down), one.buffer, 0));
  ASSERT_TRUE(one.synchronize(one.stream));
  EXPECT_EQ(down[0], 7);
  ASSERT_TRUE(one.runtime.freeGraph(graph));
  ASSERT_TRUE(one.runtime.unloadModule(one.module));
  EXPECT_EQ(codeOf(one.runtime.kernelOf(one.module, "store")), ErrorCode::kDisposed);
  EXPECT_EQ(codeOf(one.runtime.launchKernel(one.stream, store, launch)), ErrorCode::kDisposed);
  EXPECT_TRUE(one.runtime.freeBuffer(one.buffer));
}

TEST(Modules, GoWithTheirRank) {
  Harness harness;
  const auto ranks = harness.ranks(2);
  const Handle module = valueOf(load(harness, ranks[1], bytesOf(kPtx)));
  const Handle kernel = valueOf(harness.runtime.kernelOf(module, "nothing"));
  const Handle foreign = valueOf(harness.runtime.createStream(ranks[0]));
  EXPECT_EQ(codeOf(harness.runtime.launchKernel(foreign, kernel, launchOf({}))), ErrorCode::kForeignObject);
  // A module that is still being loaded when its rank goes.
  std::optional<Outcome<Handle>> late;
  harness.runtime.loadModule(ranks[0], bytesOf(kPtx), [&](Outcome<Handle> loaded) { late.emplace(std::move(loaded)); });
  harness.dispose(ranks);
  ASSERT_TRUE(late.has_value());
  EXPECT_EQ(codeOf(*late), ErrorCode::kDisposed);
  EXPECT_EQ(codeOf(harness.runtime.kernelOf(module, "nothing")), ErrorCode::kDisposed);
  EXPECT_EQ(codeOf(load(harness, ranks[0], bytesOf(kPtx))), ErrorCode::kDisposed);
}

TEST(KernelGuard, EndsAWaitAtItsDeadlineAndNamesThePeer) {
  Harness harness;
  const auto ranks = harness.ranks(2, milliseconds(100));
  const Handle module = valueOf(load(harness, ranks[0], bytesOf(kPtx)));
  const Handle kernel = valueOf(harness.runtime.kernelOf(module, "await_flag"));
  const Handle stream = valueOf(harness.runtime.createStream(ranks[0]));
  std::uint64_t flag = 3;
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_TRUE(harness.runtime.launchKernel(stream, kernel, awaiting(reinterpret_cast<std::uint64_t>(&flag), 4)));
  ASSERT_TRUE(harness.runtime.launchKernel(stream, kernel, awaiting(reinterpret_cast<std::uint64_t>(&flag), 5)));
  const Status status = harness.synchronize(stream);
  ASSERT_EQ(codeOf(status), ErrorCode::kTimeout);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, milliseconds(1000)) << "the second wait does not wait";
  EXPECT_EQ(status.error().peer, 1);
  EXPECT_EQ(status.error().op, "kernel");
  EXPECT_EQ(status.error().detail, "rank 0 waited too long in kernel for rank 1");
  EXPECT_EQ(std::get<std::int64_t>(status.error().expected), 4);
  EXPECT_EQ(std::get<std::int64_t>(status.error().seen), 3);
  EXPECT_EQ(codeOf(harness.runtime.launchKernel(stream, kernel, awaiting(0, 0))), ErrorCode::kPoisoned);
  harness.dispose(ranks);
}

TEST(KernelGuard, EndsAWaitWhenThePeerIsAborted) {
  Harness harness;
  const auto ranks = harness.ranks(2, milliseconds(60'000));
  const Handle module = valueOf(load(harness, ranks[0], bytesOf(kPtx)));
  const Handle stream = valueOf(harness.runtime.createStream(ranks[0]));
  std::uint64_t flag = 0;
  ASSERT_TRUE(harness.runtime.launchKernel(stream, valueOf(harness.runtime.kernelOf(module, "await_flag")),
                                           awaiting(reinterpret_cast<std::uint64_t>(&flag), 1)));
  ASSERT_TRUE(harness.runtime.abortRank(ranks[1], "test"));
  const Status status = harness.synchronize(stream);
  ASSERT_EQ(codeOf(status), ErrorCode::kRankLost);
  EXPECT_EQ(status.error().peer, 1);
  harness.dispose(ranks);
}

TEST(KernelGuard, CarriesAKernelsOwnErrorOnceAndTheRankGoesOn) {
  WithModule one;
  const Handle complain = one.kernel("complain");
  for (const auto& [given, expected] :
       {std::pair(ErrorCode::kKernel, ErrorCode::kKernel),
        std::pair(ErrorCode::kInvalidArgument, ErrorCode::kInvalidArgument),
        std::pair(ErrorCode::kOutOfBounds, ErrorCode::kOutOfBounds), std::pair(ErrorCode::kMesh, ErrorCode::kKernel)}) {
    ASSERT_TRUE(one.runtime.launchKernel(one.stream, complain, complaint(given)));
    const Status status = one.synchronize(one.stream);
    ASSERT_EQ(codeOf(status), expected);
    EXPECT_EQ(status.error().detail, "a kernel of rank 0 reported an error about rank 1: it expected 7 and saw 8");
    EXPECT_EQ(std::get<std::int64_t>(status.error().seen), 8);
    EXPECT_TRUE(one.synchronize(one.stream)) << "a record is handed out once";
  }
  EXPECT_FALSE(one.runtime.poisonOf(one.rank).has_value());
}

TEST(KernelGuard, OfAGraphLeadsToTheStreamThatLaunchedIt) {
  WithModule one;
  ASSERT_TRUE(one.runtime.beginCapture(one.stream));
  ASSERT_TRUE(one.runtime.launchKernel(one.stream, one.kernel("complain"), complaint(ErrorCode::kKernel)));
  const Handle graph = valueOf(one.runtime.endCapture(one.stream));
  const Handle launcher = valueOf(one.runtime.createStream(one.rank));
  for (int round = 0; round < 2; round++) {
    ASSERT_TRUE(one.runtime.launchGraph(graph, launcher));
    EXPECT_EQ(codeOf(one.synchronize(launcher)), ErrorCode::kKernel);
    EXPECT_TRUE(one.synchronize(one.stream));
  }
}

TEST(WindowPeers, AreEveryRanksMemoryInATableThatKernelsRead) {
  Harness harness;
  const auto ranks = harness.ranks(3);
  std::vector<Handle> buffers, windows(ranks.size());
  std::size_t made = 0;
  for (std::size_t rank = 0; rank < ranks.size(); rank++) {
    buffers.push_back(valueOf(harness.runtime.allocate(ranks[rank], 256, MemoryKind::kSymmetric)));
    harness.runtime.registerWindow(ranks[rank], buffers[rank], [&, rank](Outcome<Handle> window) {
      windows[rank] = valueOf(window);
      made++;
    });
  }
  harness.until([&] { return made == ranks.size(); });
  for (const Handle window : windows) {
    const WindowPeers peers = valueOf(harness.runtime.windowPeers(window));
    ASSERT_EQ(peers.addresses.size(), ranks.size());
    const auto* table = reinterpret_cast<const std::uint64_t*>(peers.table);
    for (std::size_t rank = 0; rank < ranks.size(); rank++) {
      EXPECT_EQ(peers.addresses[rank], valueOf(harness.runtime.bufferAddress(buffers[rank])));
      EXPECT_EQ(table[rank], peers.addresses[rank]);
    }
  }
  ASSERT_TRUE(harness.runtime.freeWindow(windows[0]));
  EXPECT_EQ(codeOf(harness.runtime.windowPeers(windows[0])), ErrorCode::kDisposed);
  harness.dispose(ranks);
}

TEST(StatusBox, IsClaimedByOneOfManyThreads) {
  for (int round = 0; round < 50; round++) {
    DeviceStatus box;
    std::vector<std::thread> threads;
    for (int writer = 1; writer <= 4; writer++) {
      threads.emplace_back([&box, writer] {
        DeviceStatus record;
        record.code = record.peer = writer;
        record.expected = record.seen = static_cast<std::uint64_t>(writer);
        report(box, record);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(box.code, box.peer);
    EXPECT_EQ(box.expected, static_cast<std::uint64_t>(box.code));
    clear(box);
    EXPECT_TRUE(claim<kDevice>(box.claim));
  }
}

}  // namespace
}  // namespace nccl_ext::test
