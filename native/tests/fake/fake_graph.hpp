// SPDX-License-Identifier: Apache-2.0
// A graph as both fakes know it: the runtime's records, instantiates and launches it, the driver's adds nodes. Nodes run in the order
// in which they were added, which keeps every dependency.
#pragma once

#include <functional>
#include <memory>
#include <vector>

struct CUgraph_st {
  std::vector<std::function<void()>> work;
  std::vector<std::shared_ptr<CUgraph_st>> bodies;    // of its conditional nodes
  std::vector<std::shared_ptr<unsigned>> conditions;  // whose addresses are their handles
};
