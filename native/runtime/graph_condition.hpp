// SPDX-License-Identifier: Apache-2.0
// Graphs that decide on the device whether a part of them runs: the kernel that asks, and whether the driver has such graphs.
#pragma once

#include <vector>

#include "runtime/module_state.hpp"

namespace nccl_ext {

// Of one GPU. Without `ask`, `why` says what is missing.
class GraphCondition {
 public:
  // For the rank's worker. A driver that cannot is no error.
  static GraphCondition load(int device);

  explicit operator bool() const { return ask_ != nullptr; }
  const std::string& why() const { return why_; }

  // Adds to `graph`, behind `after`: a body that runs when `*word` is 0. `end` is the node that is done when the body is, or
  // was left out. The word lives as long as the graph. `edges`: of `after`, may be null.
  CUresult add(CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData* edges, std::size_t count,
               const std::uint32_t* word, CUgraph& body, CUgraphNode& end) const;

 private:
  LoadedModule module_;
  CUfunction ask_ = nullptr;
  std::string why_;
};

}  // namespace nccl_ext
