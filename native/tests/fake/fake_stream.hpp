// SPDX-License-Identifier: Apache-2.0
// The front of a fake stream, by which the fake driver, a library of its own, puts work on the fake runtime's streams.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

#include "tests/fake/fake_graph.hpp"

namespace nccl_ext::fake {

struct StreamFront {
  cudaError_t (*launch)(cudaStream_t stream, std::function<void()> work) = nullptr;
  CUgraph_st* recording = nullptr;  // what it captures; its owner's thread alone captures and asks
};

}  // namespace nccl_ext::fake
