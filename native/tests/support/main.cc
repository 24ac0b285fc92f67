// SPDX-License-Identifier: Apache-2.0
// Runs the tests on the fake NCCL, whatever the machine has; the fake driver comes first on LD_LIBRARY_PATH
// (cmake/host-tests.cmake).
#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  setenv("NCCL_EXT_NCCL_LIBRARY", FAKE_NCCL_GOOD, 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
