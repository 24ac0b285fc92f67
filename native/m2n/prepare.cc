// SPDX-License-Identifier: Apache-2.0
// Meetings, the same on every rank: parts; what is out of bounds or contested; the moves of what is contested, if
// anything is; the last verdict.
#include "m2n/prepare.hpp"

#include <algorithm>
#include <map>

#include "m2n/check_bounds.hpp"
#include "m2n/check_overlap.hpp"
#include "m2n/check_peers.hpp"
#include "runtime/cuda_error.hpp"
#include "runtime/verdict.hpp"
#include "runtime/wire.hpp"

namespace nccl_ext {
namespace {

using Problem = std::optional<ErrorRecord>;

// A preparation that is given up, and whether the ranks did so together.
PrepareAttempt refusal(ErrorRecord error) {
  return {std::move(error), true};
}
PrepareAttempt failure(const ErrorRecord& error) {
  return {error, error.code == ErrorCode::kDisagreement};
}

class Preparing {
 public:
  Preparing(RankState& rank, const PrepareRequest& request) : rank_(rank), request_(request), part_(request.part) {}

  PrepareAttempt run() {
    Problem problem = request_.problem;
    if (!problem) problem = allocateBlock();
    PeerPart shown;
    if (!problem) {
      shown = peerPartOf(part_);
      shown.where = whereabouts();
      shown.memories = request_.memories;
      shown.flags = rank_.world->oneProcess ? exposureOf(*made_->block) : exposureOf(*made_->block, made_->exported);
    }
    shown.problem = problem;
    shown.digest = request_.digest;
    shown.verify = request_.verify;
    Outcome<std::vector<Bytes>> arrived = gather("parts", encode(shown));
    if (!arrived) return failure(arrived.error());
    if (Problem wrong = understand(arrived.value())) return refusal(*wrong);
    if (Problem wrong = disagreement()) return refusal(*wrong);
    if (Problem wrong = together(problemsOf(parts_))) return refusal(*wrong);
    return check();
  }

 private:
  Outcome<std::vector<Bytes>> gather(const char* what, Bytes payload) {
    return rank_.world->meeting->gather(rank_.rank,
                                        {kPrepareOp, std::string(kPrepareOp) + " " + what, std::move(payload)},
                                        Clock::now() + rank_.world->timeout);
  }

  PrepareAttempt check() {
    const Problem outside = boundsProblem(part_, parts_);
    const std::vector<Contest> contests = outside ? std::vector<Contest>() : contestsOn(part_, parts_);
    Writer out;
    out.block(verdictOf(outside)).number(static_cast<std::int64_t>(contestedTensors(contests).size()));
    for (const std::int32_t tensor : contestedTensors(contests)) out.number(tensor);
    Outcome<std::vector<Bytes>> arrived = gather("bounds", out.take());
    if (!arrived) return failure(arrived.error());
    std::vector<Bytes> verdicts;
    std::vector<std::vector<std::int32_t>> asked;
    for (const Bytes& bytes : arrived.value()) {
      Reader in(bytes);
      verdicts.push_back(in.block());
      asked.emplace_back(static_cast<std::size_t>(std::max<std::int64_t>(in.number(), 0)));
      for (std::int32_t& tensor : asked.back()) tensor = static_cast<std::int32_t>(in.number());
    }
    if (Problem wrong = refusalOf(kPrepareOp, verdicts, outside, rank_.rank)) return refusal(*wrong);
    // The same on every rank, so it needs no meeting.
    if (Problem wrong = seenFromHere(peersProblem(parts_))) return refusal(*wrong);
    Problem overlap;
    if (std::any_of(asked.begin(), asked.end(), [](const auto& tensors) { return !tensors.empty(); })) {
      Outcome<std::vector<Bytes>> moves = gather("moves", contestedMoves(part_, asked));
      if (!moves) return failure(moves.error());
      overlap = overlapProblem(part_, contests, moves.value());
    }
    return conclude(overlap);
  }

  // Everything that may still fail on one rank alone, then the verdict of all.
  PrepareAttempt conclude(Problem problem) {
    if (!problem && request_.verify) problem = seenFromHere(hashGroupsProblem(parts_));
    PeerAddresses peers;
    if (!problem) problem = findPeers(peers);
    if (!problem) {
      Outcome<DeviceProgram> program = loadProgram(part_, parts_, peers, limits(), *rank_.world->api, rank_.device);
      if (program)
        made_->program = std::move(program.value());
      else
        problem = program.error();
    }
    Outcome<std::vector<Bytes>> verdicts = gather("verdict", verdictOf(problem));
    if (!verdicts) return failure(verdicts.error());
    if (Problem wrong = refusalOf(kPrepareOp, verdicts.value(), problem, rank_.rank)) return refusal(*wrong);
    return {made_, false};
  }

  // Who names a number of SMs wants the kernel.
  ProgramLimits limits() const {
    const EngineUse engines = !request_.sms        ? EngineUse::kWhereBetter
                              : *request_.sms == 0 ? EngineUse::kAlways
                                                   : EngineUse::kNever;
    return {{smsOf(rank_.smBudget, request_.sms), rank_.bulkCopies}, engines, rank_.condition};
  }

  // Cleared before any peer knows where it is.
  Problem allocateBlock() {
    const DeviceGuard guard(rank_.device);
    const std::size_t groups = request_.verify ? hashGroupsOf(part_.program->sends).size() : 0;
    const std::size_t bytes = blockBytes(rank_.world->size, groups);
    Outcome<DeviceMemory> memory = DeviceMemory::allocate(
        *rank_.world->api, rank_.device, bytes, rank_.world->oneProcess ? MemoryKind::kPlain : MemoryKind::kSymmetric);
    if (!memory) return memory.error();
    cudaError_t result = cudaMemset(memory.value().address(), 0, bytes);
    // cudaMemset returns before the memory is set.
    if (result == cudaSuccess) result = cudaStreamSynchronize(cudaStreamLegacy);
    if (result != cudaSuccess)
      return cudaFailure(result, kPrepareOp, "clearing the transfer's flags").ofRank(rank_.rank);
    const auto block = std::make_shared<const DeviceMemory>(std::move(memory.value()));
    lend(block);
    made_->block = block;
    return std::nullopt;
  }

  Problem understand(const std::vector<Bytes>& arrived) {
    for (std::size_t peer = 0; peer < arrived.size(); peer++) {
      std::optional<PeerPart> part = decodePeerPart(arrived[peer]);
      if (!part) {
        return fail(ErrorCode::kBackendVersion, kPrepareOp,
                    "rank " + std::to_string(peer) + " runs another version of nccl-ext than rank " +
                        std::to_string(rank_.rank))
            .ofRank(rank_.rank)
            .fromPeer(static_cast<int>(peer));
      }
      parts_.push_back(std::move(*part));
    }
    return std::nullopt;
  }

  // The first rank that differs from the most common plan is at fault.
  Problem disagreement() const {
    std::map<std::string, int> votes;
    std::vector<std::string> plans;
    for (const PeerPart& part : parts_) {
      plans.push_back(part.digest + (part.verify ? ", verified" : ""));
      votes[plans.back()]++;
    }
    if (votes.size() == 1) return std::nullopt;
    std::string common = plans[0];
    for (const std::string& plan : plans) {
      if (votes[plan] > votes[common]) common = plan;
    }
    std::vector<int> others;
    for (std::size_t rank = 0; rank < plans.size(); rank++) {
      if (plans[rank] != common) others.push_back(static_cast<int>(rank));
    }
    return fail(ErrorCode::kDisagreement, kPrepareOp,
                rankNames(others) + " and the others hold different values of plan digest in " + kPrepareOp)
        .ofRank(rank_.rank)
        .fromPeer(others[0])
        .expecting(common, plans[static_cast<std::size_t>(others[0])])
        .helped("Every rank must pass the same plan digest.");
  }

  static std::vector<Bytes> problemsOf(const std::vector<PeerPart>& parts) {
    std::vector<Bytes> verdicts;
    for (const PeerPart& part : parts) verdicts.push_back(verdictOf(part.problem));
    return verdicts;
  }

  Problem together(const std::vector<Bytes>& verdicts) const {
    return refusalOf(kPrepareOp, verdicts, parts_[static_cast<std::size_t>(rank_.rank)].problem, rank_.rank);
  }

  // A problem that all ranks found, as this one reports it: its own as it is.
  Problem seenFromHere(const Problem& problem) const {
    if (!problem || problem->rank == rank_.rank) return problem;
    std::vector<Bytes> verdicts(parts_.size());
    verdicts[static_cast<std::size_t>(problem->rank)] = verdictOf(problem);
    return refusalOf(kPrepareOp, verdicts, std::nullopt, rank_.rank);
  }

  // Control blocks of all with whom this rank has business, and the destinations that it writes.
  Problem findPeers(PeerAddresses& peers) {
    const std::size_t size = parts_.size();
    peers.controls.resize(size);
    peers.destinations.resize(size);
    const PeerPart& self = parts_[static_cast<std::size_t>(rank_.rank)];
    std::vector<bool> known(size, false);
    for (const auto* lists : {self.expected, self.receivers}) {
      for (int stage = 0; stage < kTransferStages; stage++) {
        for (const std::int32_t peer : lists[stage]) known[static_cast<std::size_t>(peer)] = true;
      }
    }
    for (std::size_t peer = 0; peer < size; peer++) {
      const bool own = static_cast<int>(peer) == rank_.rank;
      if (own) {
        peers.controls[peer] = self.flags.address;
      } else if (known[peer]) {
        Outcome<std::uint64_t> address = addressOf(static_cast<int>(peer), parts_[peer].flags);
        if (!address) return address.error();
        peers.controls[peer] = address.value();
      }
      if (Problem problem = findDestinations(static_cast<int>(peer), peers.destinations[peer])) return problem;
    }
    return std::nullopt;
  }

  Problem findDestinations(int peer, std::vector<std::uint64_t>& addresses) {
    const PeerPart& owner = parts_[static_cast<std::size_t>(peer)];
    addresses.assign(owner.destinations.size(), 0);
    std::map<std::int32_t, std::uint64_t> reached;  // by memory
    for (const WrittenExtent& written : parts_[static_cast<std::size_t>(rank_.rank)].written) {
      if (written.receiver != peer) continue;
      const BoundTensor& binding = owner.destinations[static_cast<std::size_t>(written.tensor)];
      const Exposure& memory = owner.memories[static_cast<std::size_t>(binding.memory)];
      auto found = reached.find(binding.memory);
      if (found == reached.end()) {
        Outcome<std::uint64_t> address =
            peer == rank_.rank ? Outcome<std::uint64_t>(memory.address) : addressOf(peer, memory);
        if (!address) return address.error();
        found = reached.emplace(binding.memory, address.value()).first;
      }
      addresses[static_cast<std::size_t>(written.tensor)] =
          found->second + static_cast<std::uint64_t>(binding.byteOffset);
    }
    return std::nullopt;
  }

  Outcome<std::uint64_t> addressOf(int peer, const Exposure& memory) {
    const Wish wish{rank_.rank, rank_.device, peer, parts_[static_cast<std::size_t>(peer)].where, memory};
    Outcome<Reached> reached = reach(wish, rank_.mappings);
    if (!reached) return reached.error();
    if (reached.value().hold) made_->holds.push_back(reached.value().hold);
    return reached.value().address;
  }

  RankState& rank_;
  const PrepareRequest& request_;
  const PreparePart& part_;
  std::vector<PeerPart> parts_;  // by rank
  std::shared_ptr<Preparation> made_ = std::make_shared<Preparation>();
};

}  // namespace

PrepareAttempt prepareTransfer(RankState& rank, const PrepareRequest& request) {
  return Preparing(rank, request).run();
}

}  // namespace nccl_ext
