// SPDX-License-Identifier: Apache-2.0
// Users' kernels on the fake driver: stream order, and which launches are refused and in which words.
#include "tests/support/kernels.hpp"

namespace nccl_ext::test {
namespace {

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

}  // namespace
}  // namespace nccl_ext::test
