// SPDX-License-Identifier: Apache-2.0
// A machine with several GPUs, of which only 0 and 1 reach each other, for tests of memory and streams of the wrong one.
#pragma once

#include <cstdlib>
#include <string>

namespace nccl_ext::test {

class Gpus {
 public:
  explicit Gpus(int count) { setenv("FAKE_CUDA_DEVICES", std::to_string(count).c_str(), 1); }
  ~Gpus() { unsetenv("FAKE_CUDA_DEVICES"); }
};

}  // namespace nccl_ext::test
