// SPDX-License-Identifier: Apache-2.0
// Every way in which a driver can be missing is told apart.
#include "runtime/driver.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace nccl_ext
