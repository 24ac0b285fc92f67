// SPDX-License-Identifier: Apache-2.0
// One rank's side of what a transfer sends instead of writing: staging on both sides, and for each round the kernel that
// packs, the group of NCCL, and the kernel that unpacks.
//
// S1 Where two ranks meet (m2n/routes.hpp), the stage's kernel exchanges their arrival, and packing, local moves into staging,
//    is under the grant of the receiver: a peer that does not come is found by the deadline of these kernels, before NCCL
//    waits for it.
// S2 A round of a rank is always the three, empty ones included: TransferCounts::steps tells the host where it is.
// S3 What was received is visible to the kernel that unpacks, and staging may be filled again, by the stream's order alone.
#pragma once

#include "m2n/device_program.hpp"
#include "m2n/sent_chunks.hpp"
#include "m2n/sent_sums.hpp"

namespace nccl_ext {

// Adds the rounds to `program`, whose stages are loaded. ERR_OUT_OF_MEMORY with the sizes.
Status loadSent(DeviceProgram& program, const PreparePart& part, const std::vector<PeerPart>& parts,
                const PeerAddresses& peers, const SentPlan& plan, const StageLimits& limits, const NcclApi& api,
                int device);

}  // namespace nccl_ext
