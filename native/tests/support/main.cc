// SPDX-License-Identifier: Apache-2.0
// Runs the tests on the fake NCCL, whatever the machine has; the fake driver comes first on LD_LIBRARY_PATH
// (cmake/host-tests.cmake).
#include <gtest/gtest.h>

#include <cstdlib>

// The leak checker of GCC 12 crashes on the thread-local blocks of a process that forked with threads, and without those blocks
// it takes the text of dlerror and the loader's own lists for lost.
extern "C" {
const char* __lsan_default_options();
const char* __lsan_default_suppressions();
const char* __lsan_default_options() {
  return "use_tls=0:print_suppressions=0";
}
const char* __lsan_default_suppressions() {
  return "leak:_dlerror_run\nleak:ld-linux\n";
}
}

int main(int argc, char** argv) {
  setenv("NCCL_EXT_NCCL_LIBRARY", FAKE_NCCL_GOOD, 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
