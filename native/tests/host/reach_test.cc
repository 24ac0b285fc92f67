// SPDX-License-Identifier: Apache-2.0
// What a rank keeps open of another process's memory: once for all transfers that use it, and never for what came after it.
#include "m2n/reach.hpp"

#include "runtime/cuda_error.hpp"
#include "tests/fake/fake_driver.hpp"
#include "tests/support/one_rank.hpp"

namespace nccl_ext::test {
namespace {

// Memory of "another process" of this machine, as it shows it.
struct Shown {
  Shown(OneRank& one, std::int64_t serial)
      : buffer(valueOf(one.runtime.allocate(one.rank, 1000, MemoryKind::kSymmetric))) {
    memory.bytes = 1000;
    memory.share = valueOf(one.runtime.exportMemory(buffer));
    memory.serial = serial;
  }
  Wish wish() const { return {0, 0, 1, owner, memory}; }

  Handle buffer;
  Whereabouts owner{whereabouts().host, "another process"};
  Exposure memory;
};

class Reach : public testing::Test {
 protected:
  void SetUp() override { fake::driver().pretendOtherProcess(true); }
  void TearDown() override { fake::driver().pretendOtherProcess(false); }

  OneRank one;
  Mappings mappings;
};

TEST_F(Reach, OpensTheSameMemoryOnce) {
  const Shown shown(one, 1);
  const Reached first = valueOf(reach(shown.wish(), mappings)), second = valueOf(reach(shown.wish(), mappings));
  EXPECT_EQ(first.hold, second.hold);
  EXPECT_EQ(first.address, second.address);
}

// A freed buffer's address and the number of its descriptor go to the next one, while a transfer here still holds the old one.
TEST_F(Reach, OpensMemoryThatTookTheOldOnesPlace) {
  Shown shown(one, 1);
  const Reached old = valueOf(reach(shown.wish(), mappings));
  shown.memory.serial = 2;
  const Reached next = valueOf(reach(shown.wish(), mappings));
  EXPECT_NE(old.hold, next.hold);
}

TEST_F(Reach, ForgetsWhatNobodyHolds) {
  const Shown shown(one, 1), other(one, 2);
  EXPECT_TRUE(reach(shown.wish(), mappings));
  const Reached kept = valueOf(reach(other.wish(), mappings));
  EXPECT_EQ(mappings.size(), 1u);
}

}  // namespace
}  // namespace nccl_ext::test
