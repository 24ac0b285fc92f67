// SPDX-License-Identifier: Apache-2.0
// Every way in which a driver can be missing is told apart, and its GPUs are described.
#include "runtime/driver.hpp"

#include <gtest/gtest.h>

#include "runtime/probe_devices.hpp"

namespace nccl_ext {
namespace {

TEST(Driver, IsFound) {
  const Outcome<DriverFacts> driver = probeDriver(13, FAKE_CUDA_GOOD);
  ASSERT_TRUE(driver) << driver.error().detail;
  EXPECT_EQ(driver.value().cudaVersion, 13000);
  EXPECT_GE(driver.value().devices, 1);
}

TEST(Driver, IsMissing) {
  const Outcome<DriverFacts> driver = probeDriver(13, "/nowhere/libcuda.so.1");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, ErrorCode::kDriverMissing);
  EXPECT_NE(driver.error().detail.find("/nowhere/libcuda.so.1"), std::string::npos);
  EXPECT_NE(driver.error().help.find("580"), std::string::npos);
}

TEST(Driver, IsTooOld) {
  const Outcome<DriverFacts> driver = probeDriver(13, FAKE_CUDA_OLD);
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, ErrorCode::kDriverTooOld);
  EXPECT_EQ(std::get<std::string>(driver.error().seen), "12.4");
  EXPECT_TRUE(probeDriver(12, FAKE_CUDA_OLD)) << "the same driver runs CUDA 12";
}

TEST(Driver, FindsNoGpu) {
  const Outcome<DriverFacts> driver = probeDriver(13, FAKE_CUDA_NO_GPU);
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, ErrorCode::kDriverMissing);
  EXPECT_NE(driver.error().detail.find("no GPU"), std::string::npos);
}

TEST(Driver, IsAnotherLibrary) {
  const Outcome<DriverFacts> driver = probeDriver(13, FAKE_NCCL_GOOD);
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, ErrorCode::kDriverMissing);
}

TEST(ProbeDevices, DescribesEach) {
  const std::vector<ProbedDevice> devices = probeDevices(3, FAKE_CUDA_GOOD);
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[1].index, 1);
  EXPECT_EQ(devices[1].name, "Fake GPU 1");
  EXPECT_EQ(devices[1].uuid, "GPU-01112131-4151-6171-8191-a1b1c1d1e1f1");
  EXPECT_EQ(devices[1].computeCapability, "9.0");
  EXPECT_EQ(devices[1].multiprocessors, 132);
  EXPECT_EQ(devices[1].memoryBytes, std::uint64_t{80} << 30);
  EXPECT_EQ(devices[0].peers, std::vector<int>{1});
  EXPECT_EQ(devices[1].peers, std::vector<int>{0});
  EXPECT_TRUE(devices[2].peers.empty());
}

TEST(ProbeDevices, LeavesOutWhatTheDriverDoesNotTell) {
  const std::vector<ProbedDevice> devices = probeDevices(1, FAKE_NCCL_GOOD);
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].name, "");
  EXPECT_EQ(devices[0].uuid, "");
  EXPECT_EQ(devices[0].computeCapability, "");
  EXPECT_EQ(devices[0].memoryBytes, 0u);
}

}  // namespace
}  // namespace nccl_ext
