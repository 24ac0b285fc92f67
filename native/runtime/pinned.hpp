// SPDX-License-Identifier: Apache-2.0
// Small cells of pinned memory that kernels and the host both see. Pages are allocated ahead: page-locking while a peer
// spins on the GPU may wait for it.
#pragma once

#include <memory>
#include <vector>

#include "runtime/error.hpp"
#include "runtime/shared/status.hpp"

namespace nccl_ext {

// Frees memory of cudaHostAlloc.
struct PinnedDelete {
  void operator()(void* address) const;
};
using PinnedMemory = std::unique_ptr<void, PinnedDelete>;

// Zeroed, visible to all devices at the same address. ERR_OUT_OF_MEMORY with the size.
Outcome<PinnedMemory> allocatePinned(std::size_t bytes);

// Status boxes and the words of one rank.
class PinnedCells {
 public:
  // The first page. ERR_OUT_OF_MEMORY.
  static Outcome<std::unique_ptr<PinnedCells>> create();
  ~PinnedCells();

  // Ends every wait on the devices of this process with ERR_ABORTED. Runs when the process exits: CUDA's own end waits
  // for kernels, and after process.exit() nothing else stopped them (seen: exit took the barrier's whole deadline).
  static void stopAll();

  RankWords& words() { return *words_; }
  // A cleared box; null when no page can be had.
  DeviceStatus* take();
  void give(DeviceStatus* box);

 private:
  PinnedCells() = default;
  Status addPage();

  std::vector<PinnedMemory> pages_;
  std::vector<DeviceStatus*> free_;
  RankWords* words_ = nullptr;
};

}  // namespace nccl_ext
