// SPDX-License-Identifier: Apache-2.0
// A call that the fake NCCL refuses one rank.
#pragma once

#include <cstdlib>

namespace nccl_ext::test {

// "register 1", "connect 0", "split 2".
struct FailingNccl {
  explicit FailingNccl(const char* call) { setenv("FAKE_NCCL_FAILS", call, 1); }
  ~FailingNccl() { unsetenv("FAKE_NCCL_FAILS"); }
};

}  // namespace nccl_ext::test
