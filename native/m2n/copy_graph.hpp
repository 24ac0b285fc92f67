// SPDX-License-Identifier: Apache-2.0
// The copies of a stage as nodes of a graph, which run unless the transfer's execution has failed.
#pragma once

#include "m2n/engine_copies.hpp"
#include "runtime/graph_condition.hpp"
#include "runtime/objects.hpp"

namespace nccl_ext {

class CopyGraph {
 public:
  CopyGraph() = default;
  // `failed`: a word in device memory; where it is not 0 nothing is copied. On the current device, which `condition` is of.
  static Outcome<CopyGraph> make(EngineCopies copies, const std::uint32_t* failed,
                                 std::shared_ptr<const GraphCondition> condition);

  std::uint64_t bytes() const { return copies_.bytes; }
  // Puts the copies on a stream, or into what it captures: a graph in a graph may hold no conditions.
  cudaError_t enqueue(cudaStream_t stream, bool captures) const;

 private:
  EngineCopies copies_;
  const std::uint32_t* failed_ = nullptr;
  std::shared_ptr<const GraphCondition> condition_;
  CudaGraph graph_;
};

}  // namespace nccl_ext
