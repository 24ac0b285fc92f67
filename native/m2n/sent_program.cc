// SPDX-License-Identifier: Apache-2.0
#include "m2n/sent_program.hpp"

#include <algorithm>

#include "m2n/program_image.hpp"
#include "m2n/sent_chunks.hpp"
#include "runtime/cuda_error.hpp"

namespace nccl_ext {
namespace {

// A round before its images are on the device.
struct Draft {
  ProgramImage pack, unpack;
  std::size_t packAt = 0, unpackAt = 0;
  std::vector<Sending> group;
};

std::size_t layImage(std::vector<std::byte>& bytes, const ProgramImage& image) {
  const std::size_t at = (bytes.size() + 127) / 128 * 128;
  bytes.resize(at);
  bytes.insert(bytes.end(), image.bytes.begin(), image.bytes.end());
  return at;
}

// A kernel that only copies: it neither grants nor waits for arrivals.
TransferArgs copying(TransferArgs args, const TransferWork& work, bool counted) {
  args.work = work;
  args.granteeCount = args.receiverCount = args.senderCount = 0;
  args.counted = counted ? 1 : 0;
  args.last = 0;
  return args;
}

void numberSteps(DeviceProgram& program) {
  std::int32_t step = 0;
  TransferArgs* last = nullptr;
  const auto number = [&](TransferArgs& args) {
    args.step = step++;
    args.watched = 1;
    args.last = 0;
    last = &args;
  };
  for (int stage = 0; stage < program.stageCount; stage++) {
    number(program.stages[stage]);
    for (SentRound& round : program.rounds[stage]) {
      number(round.pack);
      number(round.unpack);
    }
  }
  last->last = 1;
}

}  // namespace

Status loadSent(DeviceProgram& program, const PreparePart& part, const std::vector<PeerPart>& parts,
                const PeerAddresses& peers, const SentPlan& plan, const StageLimits& limits, const NcclApi& api,
                int device) {
  std::vector<SentSide> sending[kTransferStages], receiving[kTransferStages];
  std::uint64_t sendBytes = 0, receiveBytes = 0;
  for (int stage = 0; stage < kTransferStages; stage++) {
    sending[stage] = sendingSides(part, peers, plan, stage);
    receiving[stage] = receivingSides(part, plan, stage);
    sendBytes = std::max(sendBytes, placeSides(sending[stage]));
    receiveBytes = std::max(receiveBytes, placeSides(receiving[stage]));
  }
  Outcome<DeviceMemory> staging =
      DeviceMemory::allocate(api, device, static_cast<std::size_t>(sendBytes + receiveBytes), MemoryKind::kPlain);
  if (!staging) return staging.error();
  const auto sendBase = reinterpret_cast<std::uint64_t>(staging.value().address());
  const std::uint64_t receiveBase = sendBase + sendBytes;

  std::vector<std::byte> bytes;
  std::vector<Draft> drafts[kTransferStages];
  for (int stage = 0; stage < kTransferStages; stage++) {
    std::uint64_t rounds = 0;
    for (const auto* sides : {&sending[stage], &receiving[stage]}) {
      for (const SentSide& side : *sides) rounds = std::max(rounds, side.stream.rounds());
    }
    for (std::uint64_t round = 0; round < rounds; round++) {
      Draft& draft = drafts[stage].emplace_back();
      std::vector<Move> packed, unpacked;
      for (const SentSide& side : sending[stage]) {
        const std::int32_t peer = side.stream.receiver;
        chunkMoves(side, round, sendBase + side.staging, true, peers.routes.meet(part.rank, peer) ? peer : part.rank,
                   packed);
        if (const std::uint64_t size = roundBytes(side, round); size > 0)
          draft.group.push_back({peer, true, sendBase + side.staging, size});
        if (part.verify && round == 0) sendSums(draft.group, parts, peers, part.rank, side.stream, stage);
      }
      for (const SentSide& side : receiving[stage]) {
        chunkMoves(side, round, receiveBase + side.staging, false, part.rank, unpacked);
        if (const std::uint64_t size = roundBytes(side, round); size > 0)
          draft.group.push_back({side.stream.sender, false, receiveBase + side.staging, size});
        if (part.verify && round == 0) sendSums(draft.group, parts, peers, part.rank, side.stream, stage);
      }
      draft.pack = imageOf(bundleMoves(packed, limits));
      draft.unpack = imageOf(bundleMoves(unpacked, limits));
      draft.packAt = layImage(bytes, draft.pack);
      draft.unpackAt = layImage(bytes, draft.unpack);
    }
  }

  Outcome<DeviceMemory> memory = DeviceMemory::allocate(api, device, bytes.size(), MemoryKind::kPlain);
  if (!memory) return memory.error();
  const DeviceGuard guard(device);
  auto* base = static_cast<std::byte*>(memory.value().address());
  // None on a rank between others that send: it has no rounds.
  const cudaError_t copied = memory.value().write(bytes.data(), bytes.size());
  if (copied != cudaSuccess) return cudaFailure(copied, kPrepareOp, "the transfer's rounds").ofRank(part.rank);
  for (int stage = 0; stage < kTransferStages; stage++) {
    for (Draft& draft : drafts[stage]) {
      SentRound& round = program.rounds[stage].emplace_back();
      round.pack = copying(program.stages[stage], workAt(draft.pack, base + draft.packAt), true);
      round.unpack = copying(program.stages[stage], workAt(draft.unpack, base + draft.unpackAt), false);
      round.group = std::move(draft.group);
    }
  }
  program.staging = std::move(staging.value());
  program.sentMemory = std::move(memory.value());
  numberSteps(program);
  return ok();
}

}  // namespace nccl_ext
