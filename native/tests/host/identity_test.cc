// SPDX-License-Identifier: Apache-2.0
// Who shares a GPU is counted from what ranks say, and whoever does not fit is named on every rank.
#include <gtest/gtest.h>

#include "runtime/identity.hpp"

namespace nccl_ext {
namespace {

std::vector<RankIdentity> ranksOn(std::initializer_list<const char*> gpus) {
  std::vector<RankIdentity> ranks;
  for (const char* gpu : gpus) {
    RankIdentity one;
    one.host = "machine";
    one.gpu = gpu;
    one.multiprocessors = 132;
    one.backend = "1.2.3";
    one.contract = 1;
    one.cudaMajor = 13;
    one.nccl = 23007;
    one.timeoutMs = 1000;
    ranks.push_back(one);
  }
  return ranks;
}

TEST(Identity, TravelsAsBytes) {
  RankIdentity one = ranksOn({"GPU-a"})[0];
  one.mayShareGpu = false;
  one.sms = 12;
  const auto back = decodeIdentity(encode(one));
  ASSERT_TRUE(back);
  EXPECT_EQ(encode(*back), encode(one));
  EXPECT_FALSE(decodeIdentity(Bytes{1, 2, 3}));
}

TEST(Identity, CountsRanksPerGpu) {
  auto ranks = ranksOn({"GPU-a", "GPU-b", "GPU-a", "GPU-a"});
  EXPECT_EQ(ranksOnGpuOf(ranks, 0), 3);
  EXPECT_EQ(ranksOnGpuOf(ranks, 1), 1);
  EXPECT_EQ(smBudgetOf(ranks, 0), 35) << "0.8 x 132 / 3, rounded down";
  EXPECT_EQ(smBudgetOf(ranks, 1), 105);
  EXPECT_FALSE(misfitOf(ranks, 0));
  ranks[3].host = "another machine, whose GPU has the same name";
  EXPECT_EQ(ranksOnGpuOf(ranks, 0), 2);
  // A driver that tells no UUID: nobody is known to share.
  for (RankIdentity& one : ranks) one.gpu = "";
  EXPECT_EQ(ranksOnGpuOf(ranks, 0), 1);
  ranks[0].multiprocessors = 1;
  EXPECT_EQ(smBudgetOf(ranks, 0), 1);
}

TEST(Identity, RefusesMoreSmsThanAGpuHas) {
  auto ranks = ranksOn({"GPU-a", "GPU-a", "GPU-b"});
  for (RankIdentity& one : ranks) one.sms = 66;
  EXPECT_FALSE(misfitOf(ranks, 2));
  EXPECT_EQ(smBudgetOf(ranks, 2), 66);
  for (RankIdentity& one : ranks) one.sms = 67;
  for (int self = 0; self < 3; self++) {
    const auto misfit = misfitOf(ranks, self);
    ASSERT_TRUE(misfit);
    EXPECT_EQ(misfit->code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(misfit->rank, self);
    EXPECT_EQ(misfit->peer, 0);
    EXPECT_NE(misfit->detail.find("ranks 0, 1 ask for 67 + 67 = 134 SMs, more than the 132 of GPU-a"),
              std::string::npos)
        << misfit->detail;
    EXPECT_EQ(std::get<std::int64_t>(misfit->expected), 132);
    EXPECT_EQ(std::get<std::int64_t>(misfit->seen), 134);
  }
}

TEST(Identity, GivesEveryRankItsOwnShare) {
  auto ranks = ranksOn({"GPU-a", "GPU-a", "GPU-a", "GPU-b"});
  ranks[0].sms = 90;
  ranks[1].sms = 7;
  EXPECT_FALSE(misfitOf(ranks, 0)) << "90 + 7 + 35 = 132";
  EXPECT_EQ(smBudgetOf(ranks, 0), 90);
  EXPECT_EQ(smBudgetOf(ranks, 1), 7);
  EXPECT_EQ(smBudgetOf(ranks, 2), 35) << "the default share";
  ranks[1].sms = 8;
  for (int self = 0; self < 4; self++) {
    const auto misfit = misfitOf(ranks, self);
    ASSERT_TRUE(misfit);
    EXPECT_EQ(misfit->code, ErrorCode::kInvalidArgument);
    EXPECT_NE(misfit->detail.find("ranks 0, 1, 2 ask for 90 + 8 + 35 = 133 SMs"), std::string::npos) << misfit->detail;
    EXPECT_NE(misfit->help.find("a rank that asks for nothing has 35"), std::string::npos) << misfit->help;
  }
  ranks[1].sms = 0;
  ranks[0].sms = 0;
  ranks[3].sms = 133;
  const auto alone = misfitOf(ranks, 0);
  ASSERT_TRUE(alone);
  EXPECT_NE(alone->detail.find("rank 3 asks for 133 SMs"), std::string::npos) << alone->detail;
}

TEST(Identity, LetsDefaultSharesCrowdASmallGpu) {
  auto ranks = ranksOn({"GPU-a", "GPU-a", "GPU-a"});
  for (RankIdentity& one : ranks) one.multiprocessors = 2;
  EXPECT_FALSE(misfitOf(ranks, 0));
}

TEST(Identity, RefusesASharedGpuThatTheEnvironmentForbids) {
  auto ranks = ranksOn({"GPU-b", "GPU-a", "GPU-a"});
  ranks[0].mayShareGpu = false;
  EXPECT_FALSE(misfitOf(ranks, 0)) << "alone on its GPU";
  ranks[2].mayShareGpu = false;
  const auto misfit = misfitOf(ranks, 0);
  ASSERT_TRUE(misfit);
  EXPECT_EQ(misfit->code, ErrorCode::kUnsupported);
  EXPECT_EQ(misfit->peer, 2);
}

TEST(Identity, NamesTheFieldAndTheRanksThatDiffer) {
  struct Case {
    void (*change)(RankIdentity&);
    ErrorCode code;
    const char* field;
    const char* seen;
  };
  const Case cases[] = {
      {[](RankIdentity& one) { one.contract = 2; }, ErrorCode::kDisagreement, "contract", "2"},
      {[](RankIdentity& one) { one.backend = "1.2.4"; }, ErrorCode::kDisagreement, "version", "1.2.4"},
      {[](RankIdentity& one) { one.cudaMajor = 12; }, ErrorCode::kDisagreement, "CUDA", "12"},
      {[](RankIdentity& one) { one.nccl = 23104; }, ErrorCode::kNcclVersion, "NCCL", "2.31.4"},
      {[](RankIdentity& one) { one.timeoutMs = 5; }, ErrorCode::kDisagreement, "timeoutMs", "5"},
  };
  for (const Case& one : cases) {
    auto ranks = ranksOn({"GPU-a", "GPU-b", "GPU-c", "GPU-d"});
    one.change(ranks[1]);
    one.change(ranks[3]);
    for (int self = 0; self < 4; self++) {
      const auto misfit = misfitOf(ranks, self);
      ASSERT_TRUE(misfit) << one.field;
      EXPECT_EQ(misfit->code, one.code) << one.field;
      EXPECT_EQ(misfit->peer, 1);
      EXPECT_EQ(misfit->rank, self);
      EXPECT_EQ(std::get<std::string>(misfit->seen), one.seen);
      EXPECT_NE(misfit->detail.find(one.field), std::string::npos) << misfit->detail;
      EXPECT_NE(misfit->detail.find("ranks 1, 3"), std::string::npos) << misfit->detail;
    }
  }
}

}  // namespace
}  // namespace nccl_ext
