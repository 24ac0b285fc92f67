// SPDX-License-Identifier: Apache-2.0
// CUDA threads, warps and CTAs as the machine keeps them.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "tests/simt/fiber.hpp"
#include "tests/simt/shared_memory.hpp"

namespace nccl_ext::simt {

using Site = std::source_location;

struct Cta;
struct Warp;

// Where a thread waits for others: what all of them must have come to.
struct Meeting {
  const char* what = nullptr;  // null: it waits for nobody
  std::uint32_t mask = 0;      // lanes; 0: the CTA
  Site site;
  std::uint64_t brought = 0;
};

// A store of the bulk copy engine, which reads shared memory some time after it began, and writes some time after that.
struct BulkStore {
  std::uint64_t to;
  std::uint32_t from;
  std::vector<std::byte> bytes;
  bool isRead = false, isMade = false;
};

struct Thread {
  std::unique_ptr<Fiber> fiber;
  Cta* cta = nullptr;
  Warp* warp = nullptr;
  uint3 index{};
  std::uint32_t lane = 0;
  Meeting meeting;
  bool ended = false;
  std::array<std::uint64_t, 32>
      heard{};  // what the lanes of its last meeting brought; of a CTA: [0] the least, [1] the greatest
  const void* lastRead = nullptr;  // word that it read last by an atomic, and what it held
  std::uint64_t lastSeen = 0;
  std::vector<BulkStore> open;                // stores of its unfinished group
  std::deque<std::vector<BulkStore>> groups;  // the oldest first
  std::vector<BulkStore> late;                // of groups that it has waited for to be read

  bool runs() const { return !ended && meeting.what == nullptr; }
};

// Lanes that have come to a meeting of their mask.
struct OpenMeeting {
  Meeting meeting;
  std::uint32_t came;
};

struct Warp {
  std::vector<std::unique_ptr<Thread>> lanes;
  std::uint32_t ready = 0;    // lanes that run
  std::uint32_t elected = 0;  // always the same lane of a warp, whichever
  std::uint32_t present = 0;  // lanes that have not ended
  std::uint32_t atCta = 0;    // lanes that wait at the CTA's barrier
  std::vector<OpenMeeting> open;
};

struct BulkLoad {
  std::uint64_t from;
  std::uint32_t to;
  std::uint32_t bytes;
  std::vector<std::byte> early;  // what lay there when the load began, of a load that reads then
};

struct Mbarrier {
  std::uint64_t phase = 0;
  std::int64_t bytes = 0;  // expected and not come
  bool arrived = false;    // the phase's one arrival
  std::vector<BulkLoad> loads;
};

struct Cta {
  uint3 index{};
  dim3 block, grid;
  std::vector<Warp> warps;
  std::uint32_t threads = 0, ended = 0, waiting = 0;  // waiting at the CTA's barrier,
  Meeting meeting;                                    // which is here
  std::uint64_t least = 0, greatest = 0;              // that they brought
  SharedMemory shared;
  std::map<std::uint32_t, Mbarrier> mbarriers;  // by address
};

// "CTA 2, thread 33 at transfer.cu:12"
std::string placeOf(const Thread& thread);

}  // namespace nccl_ext::simt
