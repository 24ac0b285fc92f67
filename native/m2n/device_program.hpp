// SPDX-License-Identifier: Apache-2.0
// One rank's side of a transfer in device memory: what its kernels read, and the arguments of their launches.
#pragma once

#include "m2n/bundle_moves.hpp"
#include "m2n/copy_graph.hpp"
#include "m2n/hash_program.hpp"
#include "m2n/prepare_part.hpp"
#include "m2n/shared/transfer_args.hpp"
#include "m2n/stage_copies.hpp"
#include "nccl/send_comm.hpp"
#include "runtime/device_memory.hpp"

namespace nccl_ext {

// A piece of what a rank sends and receives by NCCL (m2n/sent_program.hpp).
struct SentRound {
  TransferArgs pack = {};
  std::vector<Sending> group;
  TransferArgs unpack = {};
};

struct ProgramLimits {
  StageLimits kernels;
  EngineLimits engines;
};

struct DeviceProgram {
  DeviceMemory memory;
  TransferArgs stages[kTransferStages] = {};          // without what belongs to a launch or the rank's host side
  int stageCount = 1;                                 // stage 1 is launched where a rank takes part in it
  std::optional<CopyGraph> engines[kTransferStages];  // what copies in place of a stage's kernel
  // Behind each stage.
  std::vector<SentRound> rounds[kTransferStages];
  DeviceMemory sentMemory, staging;  // what their kernels read; chunks that go and come
  // Of a verified transfer, likewise.
  HashArgs sent[kTransferStages] = {};
  HashArgs received = {};
  std::optional<CompareArgs> compare;
};

// The moves of one stage with addresses; those to receivers that it sends to have no destination.
std::vector<Move> movesOf(const PreparePart& part, const PeerAddresses& peers, int stage);
// The others.
std::vector<Move> mappedMoves(const PreparePart& part, const PeerAddresses& peers, int stage);

// `parts` by rank. ERR_OUT_OF_MEMORY. ERR_UNSUPPORTED: engines alone are asked for and cannot, or are out of reach here.
Outcome<DeviceProgram> loadProgram(const PreparePart& part, const std::vector<PeerPart>& parts,
                                   const PeerAddresses& peers, const ProgramLimits& limits, const NcclApi& api,
                                   int device);

}  // namespace nccl_ext
