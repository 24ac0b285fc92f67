// SPDX-License-Identifier: Apache-2.0
// How a rank's kernels get at memory of another rank: by its address within a process, through a mapping of shared memory
// within a machine.
#pragma once

#include <map>
#include <memory>

#include "m2n/exposure.hpp"

namespace nccl_ext {

// Memory of other processes that a rank has open, by what its owner calls it; opened once however many transfers use it.
using Mappings = std::map<std::string, std::weak_ptr<const DeviceMemory>>;

// Which rank wants which memory of which rank.
struct Wish {
  int rank = 0;
  int device = 0;
  int peer = 0;
  const Whereabouts& owner;
  const Exposure& memory;
};

struct Reached {
  std::uint64_t address = 0;
  std::shared_ptr<const void> hold;  // goes as slowly as a free; empty where the owner alone frees it
};

// On the rank's worker. ERR_UNSUPPORTED: no way there, and why.
Outcome<Reached> reach(const Wish& wish, Mappings& mappings);

// Lets ranks of this process that reach `block` by its address hold it too: they may write to it after its owner has left.
void lend(const std::shared_ptr<const DeviceMemory>& block);

}  // namespace nccl_ext
