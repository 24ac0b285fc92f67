// SPDX-License-Identifier: Apache-2.0
#include "m2n/device_program.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "m2n/program_image.hpp"
#include "runtime/cuda_error.hpp"

namespace nccl_ext {
namespace {

using Ranks = std::set<std::int32_t>;

// Bytes for the device, in sections that begin at multiples of 128.
class Layout {
 public:
  std::size_t add(const void* data, std::size_t bytes) {
    const std::size_t at = (bytes_.size() + 127) / 128 * 128;
    bytes_.resize(at + bytes);
    if (bytes > 0) std::memcpy(bytes_.data() + at, data, bytes);
    return at;
  }
  std::size_t add(const Ranks& ranks) {
    const std::vector<std::int32_t> list(ranks.begin(), ranks.end());
    return add(list.data(), list.size() * sizeof(std::int32_t));
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Of one stage, without the rank itself. Where a pair sends, an arrival says only that the sender is there; a pair that does not
// meet exchanges nothing here.
struct StagePeers {
  Ranks receivers, senders;
  bool others = false;  // something else than granting is done in this stage
};

StagePeers peersOf(const PreparePart& part, const Routes& routes, int stage) {
  StagePeers peers;
  const MoveTable& sends = part.program->sends;
  for (std::size_t move = 0; move < sends.length; move++) {
    if (sends.stage[move] != stage || isEmptyMove(sends, move)) continue;
    peers.others = true;
    if (sends.peer[move] != part.rank && routes.meet(part.rank, sends.peer[move]))
      peers.receivers.insert(sends.peer[move]);
  }
  const auto& expected = stage == 0 ? part.program->receivePeers : part.program->forwardPeers;
  for (const std::int32_t sender : expected) {
    if (sender == part.rank) continue;
    peers.others = true;
    if (routes.meet(sender, part.rank)) peers.senders.insert(sender);
  }
  return peers;
}

std::uint64_t addressOf(const PreparePart& part, const Bindings& bindings, std::int32_t tensor) {
  const BoundTensor& binding = bindings[static_cast<std::size_t>(tensor)];
  return part.memories[static_cast<std::size_t>(binding.memory)].address +
         static_cast<std::uint64_t>(binding.byteOffset);
}

// Where the lists of a verified transfer lie.
struct HashLayout {
  struct List {
    std::size_t movesAt = 0, firstTilesAt = 0;
    std::size_t moves = 0;
    std::uint32_t tiles = 0;
  };
  List sent[kTransferStages], received;
  std::size_t checksAt = 0, sumsAt = 0, takenAt = 0;
  std::size_t sentGroups = 0, receivedGroups = 0;
};

HashLayout::List layList(Layout& layout, const HashList& list) {
  return {layout.add(list.moves.data(), list.moves.size() * sizeof(HashMove)),
          layout.add(list.firstTiles.data(), list.firstTiles.size() * sizeof(std::uint32_t)), list.moves.size(),
          list.tiles};
}

HashLayout layHashes(Layout& layout, const PreparePart& part, const std::vector<PeerPart>& parts,
                     const PeerAddresses& peers, int sms) {
  const PeerPart& self = parts[static_cast<std::size_t>(part.rank)];
  HashLayout out;
  for (int stage = 0; stage < kTransferStages; stage++) out.sent[stage] = layList(layout, sentHashes(part, stage, sms));
  out.received = layList(layout, receivedHashes(part, sms));
  const std::vector<HashCheck> checks = checksOf(part, parts, peers);
  out.checksAt = layout.add(checks.data(), checks.size() * sizeof(HashCheck));
  out.sentGroups = self.sent.size();
  out.receivedGroups = checks.size();
  const std::vector<std::uint64_t> sums(2 * checks.size());
  out.sumsAt = layout.add(sums.data(), sums.size() * sizeof(std::uint64_t));
  const HashTaken taken[kHashes];
  out.takenAt = layout.add(taken, sizeof taken);
  return out;
}

// `block`: this rank's control block, where peers read its sums.
void placeHashes(DeviceProgram& program, const HashLayout& at, std::byte* base, std::uint64_t block) {
  const TransferArgs& stage = program.stages[0];
  CompareArgs compare = {};
  compare.checks = reinterpret_cast<const HashCheck*>(base + at.checksAt);
  compare.received = {reinterpret_cast<std::uint64_t*>(base + at.sumsAt),
                      static_cast<std::uint32_t>(at.receivedGroups)};
  compare.sent = {reinterpret_cast<std::uint64_t*>(block + sumsOffset(stage.size)),
                  static_cast<std::uint32_t>(at.sentGroups)};
  compare.taken = reinterpret_cast<HashTaken*>(base + at.takenAt);
  compare.state = stage.state;
  const auto argsOf = [&](const HashLayout::List& list, int number, const HashSums& into, int begun) {
    HashArgs args = {};
    args.moves = reinterpret_cast<const HashMove*>(base + list.movesAt);
    args.firstTiles = reinterpret_cast<const std::uint32_t*>(base + list.firstTilesAt);
    args.taken = compare.taken + number;
    args.moveCount = static_cast<std::uint32_t>(list.moves);
    args.tiles = list.tiles;
    args.into = into;
    args.begun = begun;
    args.state = stage.state;
    return args;
  };
  for (int number = 0; number < kTransferStages; number++)
    program.sent[number] = argsOf(at.sent[number], number, compare.sent, 1);
  program.received = argsOf(at.received, kTransferStages, compare.received, 0);
  program.compare = compare;
}

}  // namespace

std::vector<Move> movesOf(const PreparePart& part, const PeerAddresses& peers, int stage) {
  const MoveTable& sends = part.program->sends;
  std::vector<Move> moves;
  for (std::size_t index = 0; index < sends.length; index++) {
    if (sends.stage[index] != stage || isEmptyMove(sends, index)) continue;
    Move move;
    move.peer = sends.peer[index];
    move.tensor = sends.tensor[index];
    move.transform = sends.transform[index];
    move.source = addressOf(part, stage == 0 ? part.sources : part.destinations, sends.sourceTensor[index]) +
                  static_cast<std::uint64_t>(sends.sourceOffset[index]);
    move.destination =
        peers.destinations[static_cast<std::size_t>(move.peer)][static_cast<std::size_t>(sends.tensor[index])] +
        static_cast<std::uint64_t>(sends.destinationOffset[index]);
    move.inner = static_cast<std::uint64_t>(sends.inner[index]);
    for (std::size_t loop = 0; loop < kMoveLoops; loop++) {
      const std::size_t at = index * kMoveLoops + loop;
      move.counts[loop] = static_cast<std::uint64_t>(sends.counts[at]);
      move.sourceStrides[loop] = sends.sourceStrides[at];
      move.destinationStrides[loop] = sends.destinationStrides[at];
    }
    // A cast to the same dtype is a copy, NaN payloads and all.
    if (move.transform != 0 && (move.transform - 1) / 32 == (move.transform - 1) % 32) {
      move.inner *= kDTypeBytes[(move.transform - 1) % 32];
      move.transform = 0;
    }
    moves.push_back(move);
  }
  return moves;
}

std::vector<Move> mappedMoves(const PreparePart& part, const PeerAddresses& peers, int stage) {
  std::vector<Move> moves = movesOf(part, peers, stage);
  const auto isSent = [&](const Move& move) { return peers.routes.isSent(part.rank, move.peer); };
  moves.erase(std::remove_if(moves.begin(), moves.end(), isSent), moves.end());
  return moves;
}

Outcome<DeviceProgram> loadProgram(const PreparePart& part, const std::vector<PeerPart>& parts,
                                   const PeerAddresses& peers, const ProgramLimits& limits, const NcclApi& api,
                                   int device) {
  const TransferState state;
  const StagePeers stages[kTransferStages] = {peersOf(part, peers.routes, 0), peersOf(part, peers.routes, 1)};
  Ranks grantees = stages[0].senders;
  grantees.insert(stages[1].senders.begin(), stages[1].senders.end());

  Layout layout;
  const std::size_t stateAt = layout.add(&state, sizeof state);
  const std::size_t controlsAt = layout.add(peers.controls.data(), peers.controls.size() * sizeof(std::uint64_t));
  const std::size_t granteesAt = layout.add(grantees);
  std::size_t receiversAt[kTransferStages], sendersAt[kTransferStages], imageAt[kTransferStages];
  ProgramImage images[kTransferStages];
  StageMoves moves;
  for (int stage = 0; stage < kTransferStages; stage++)
    moves[static_cast<std::size_t>(stage)] = mappedMoves(part, peers, stage);
  Outcome<StageCopies> engines = stageCopiesOf(part.rank, moves, limits.engines);
  if (!engines) return engines.error();
  StageCopies& copies = engines.value();
  for (int stage = 0; stage < kTransferStages; stage++) {
    receiversAt[stage] = layout.add(stages[stage].receivers);
    sendersAt[stage] = layout.add(stages[stage].senders);
    const auto at = static_cast<std::size_t>(stage);
    images[stage] = imageOf(bundleMoves(copies[at] ? std::vector<Move>() : moves[at], limits.kernels));
    imageAt[stage] = layout.add(images[stage].bytes.data(), images[stage].bytes.size());
  }

  HashLayout hashes;
  if (part.verify) hashes = layHashes(layout, part, parts, peers, limits.kernels.ctas);

  Outcome<DeviceMemory> memory = DeviceMemory::allocate(api, device, layout.bytes().size(), MemoryKind::kPlain);
  if (!memory) return memory.error();
  const DeviceGuard guard(device);
  DeviceProgram program;
  program.memory = std::move(memory.value());
  auto* base = static_cast<std::byte*>(program.memory.address());
  const cudaError_t copied = program.memory.write(layout.bytes().data(), layout.bytes().size());
  if (copied != cudaSuccess) return cudaFailure(copied, kPrepareOp, "the transfer's program").ofRank(part.rank);

  const auto ranksAt = [base](std::size_t at) { return reinterpret_cast<const std::int32_t*>(base + at); };
  program.stageCount = stages[1].others ? 2 : 1;
  for (int stage = 0; stage < kTransferStages; stage++) {
    TransferArgs& args = program.stages[stage];
    args.work = workAt(images[stage], base + imageAt[stage]);
    args.controls = reinterpret_cast<TransferCell* const*>(base + controlsAt);
    args.grantees = ranksAt(granteesAt);
    args.receivers = ranksAt(receiversAt[stage]);
    args.senders = ranksAt(sendersAt[stage]);
    args.state = reinterpret_cast<TransferState*>(base + stateAt);
    args.granteeCount = static_cast<std::int32_t>(grantees.size());
    args.receiverCount = static_cast<std::int32_t>(stages[stage].receivers.size());
    args.senderCount = static_cast<std::int32_t>(stages[stage].senders.size());
    args.rank = part.rank;
    args.size = static_cast<std::int32_t>(peers.controls.size());
    args.stage = stage;
    args.step = stage;
    args.counted = 1;
    args.last = stage + 1 == program.stageCount ? 1 : 0;
    std::optional<EngineCopies>& engineCopies = copies[static_cast<std::size_t>(stage)];
    if (!engineCopies) continue;
    Outcome<CopyGraph> graph = CopyGraph::make(std::move(*engineCopies), &args.state->failed, limits.engines.condition);
    if (!graph) {
      ErrorRecord error = graph.error();
      error.rank = part.rank;
      return error;
    }
    program.engines[stage].emplace(std::move(graph.value()));
  }
  if (part.verify) placeHashes(program, hashes, base, peers.controls[static_cast<std::size_t>(part.rank)]);
  return program;
}

}  // namespace nccl_ext
