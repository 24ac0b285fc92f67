// SPDX-License-Identifier: Apache-2.0
// Users' modules on the fake driver: what is refused and in which words, and how long they live.
#include <cuda_runtime_api.h>
#include <elf.h>

#include "runtime/module_image.hpp"
#include "tests/support/kernels.hpp"

namespace nccl_ext::test {
namespace {

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

TEST(Modules, HaveTheStacksOfTheirKernelsBeforeAnyIsLaunched) {
  OneRank one;
  const auto limit = [] {
    std::size_t bytes = 0;
    EXPECT_EQ(cudaDeviceGetLimit(&bytes, cudaLimitStackSize), cudaSuccess);
    return bytes;
  };
  const std::size_t before = limit();
  (void)valueOf(load(one, one.rank, bytesOf(".version 8.4\n//kernel nothing 1024 0 stack 64\n")));
  EXPECT_EQ(limit(), before) << "a smaller stack takes none away";
  const std::string larger = std::to_string(before + 512);
  (void)valueOf(load(one, one.rank, bytesOf(".version 8.4\n//kernel nothing 1024 0 stack " + larger + "\n")));
  EXPECT_EQ(limit(), before + 512);
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

}  // namespace
}  // namespace nccl_ext::test
