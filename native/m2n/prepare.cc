// SPDX-License-Identifier: Apache-2.0
// Meetings, the same on every rank: parts; what is out of bounds or contested; the moves of what is contested, if
// anything is; what cannot be reached; the moves of pairs that send instead, if any does; the last verdict, and when such
// pairs are connected.
#include "m2n/prepare.hpp"

#include <algorithm>

#include "m2n/check_agreement.hpp"
#include "m2n/check_bounds.hpp"
#include "m2n/check_overlap.hpp"
#include "m2n/check_peers.hpp"
#include "m2n/connect_pairs.hpp"
#include "m2n/find_peers.hpp"
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
    shown.path = part_.path;
    Outcome<std::vector<Bytes>> arrived = gather("parts", encode(shown));
    if (!arrived) return failure(arrived.error());
    if (Problem wrong = understand(arrived.value())) return refusal(*wrong);
    if (Problem wrong = agreementProblem(parts_, rank_.rank)) return refusal(*wrong);
    if (Problem wrong = together(problemsOf(parts_))) return refusal(*wrong);
    return check();
  }

 private:
  Outcome<std::vector<Bytes>> gather(const char* what, Bytes payload) {
    return gather(what, std::move(payload), Clock::now() + rank_.world->timeout);
  }
  Outcome<std::vector<Bytes>> gather(const char* what, Bytes payload, Clock::time_point deadline) {
    return rank_.world->meeting->gather(
        rank_.rank, {kPrepareOp, std::string(kPrepareOp) + " " + what, std::move(payload)}, deadline);
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

  // Finds the others, and how to exchange bytes with them.
  PrepareAttempt conclude(Problem problem) {
    const PathChoice choice = *pathChoiceOf(part_.path);
    if (!problem && request_.verify) problem = seenFromHere(hashGroupsProblem(parts_));
    FoundPeers found;
    if (!problem) {
      Outcome<FoundPeers> outcome = findPeers(rank_, parts_, choice);
      if (outcome)
        found = std::move(outcome.value());
      else
        problem = outcome.error();
    }
    Outcome<std::vector<Bytes>> arrived =
        gather("paths", Writer().block(verdictOf(problem)).block(encode(found.unreached)).take());
    if (!arrived) return failure(arrived.error());
    std::vector<Bytes> verdicts;
    std::vector<std::vector<Unreached>> unreached;
    for (const Bytes& bytes : arrived.value()) {
      Reader in(bytes);
      verdicts.push_back(in.block());
      unreached.push_back(decodeUnreached(in.block()));
    }
    if (Problem wrong = refusalOf(kPrepareOp, verdicts, problem, rank_.rank)) return refusal(*wrong);
    found.addresses.routes = Routes(parts_, unreached, choice);
    made_->paths = pathsOf(parts_, found.addresses.routes, rank_.rank);
    made_->holds = std::move(found.holds);
    return found.addresses.routes.anySent() ? loadWithSends(found.addresses) : load(found.addresses, nullptr);
  }

  PrepareAttempt loadWithSends(PeerAddresses& peers) {
    Outcome<std::vector<Bytes>> arrived = gather("sent moves", encodeSentMoves(part_, peers.routes));
    if (!arrived) return failure(arrived.error());
    std::vector<std::vector<SentMove>> moves;
    for (const Bytes& bytes : arrived.value()) moves.push_back(decodeSentMoves(bytes));
    const OpenedSends opened = openSends(rank_);
    if (!opened.status) {
      PrepareAttempt attempt = failure(opened.status.error());
      attempt.awaited = opened.awaited;
      return attempt;
    }
    const SentPlan plan = sentPlanOf(moves, rank_.rank, request_.staging);
    return load(peers, &plan);
  }

  // Everything that may still fail on one rank alone, then the verdict of all. `sent`: none when nobody sends.
  PrepareAttempt load(PeerAddresses& peers, const SentPlan* sent) {
    Problem problem = loadHere(peers, sent);
    Outcome<std::vector<Bytes>> verdicts = gather("verdict", verdictOf(problem));
    if (!verdicts) return failure(verdicts.error());
    if (Problem wrong = refusalOf(kPrepareOp, verdicts.value(), problem, rank_.rank)) return refusal(*wrong);
    if (sent == nullptr) return {made_, false};
    // Ranks without pairs wait as long as the others may take to connect theirs.
    const Clock::time_point deadline = connectDeadline(rank_);
    const Status connected = connectPairs(rank_, made_->program, deadline);
    // Those that NCCL lets wait for it come to no meeting.
    if (!connected && connected.error().code != ErrorCode::kAborted) return {connected.error(), false, true};
    Outcome<std::vector<Bytes>> all = gather("connected", {}, deadline + rank_.world->timeout);
    // Of one that was stopped the others know why.
    if (!all) return failure(all.error());
    if (!connected) return failure(connected.error());
    return {made_, false};
  }

  ProgramLimits limits() const {
    return {{smsOf(rank_.smBudget, request_.sms), rank_.bulkCopies}, {engines(), mostUnasked(), rank_.condition}};
  }

  // Who names a number of SMs, of the transfer or of the rank, wants the kernel. Where ranks share a GPU, graphs of copies take
  // hardware queues in which kernels of another rank stand.
  Engines engines() const {
    if (request_.sms) return *request_.sms == 0 ? Engines::kAlone : Engines::kNever;
    return rank_.smsAsked == 0 && rank_.ranksOnGpu == 1 ? Engines::kUnasked : Engines::kNever;
  }

  // What the slowest link moves in half of the time for which a stage may seem to stand still.
  std::uint64_t mostUnasked() const {
    constexpr std::int64_t kBytesPerMs = 5'000'000;
    return static_cast<std::uint64_t>(rank_.world->timeout.count() * kBytesPerMs);
  }

  // Of the first pair of this rank that sends.
  std::string whySent() const {
    for (const TransferPath& path : made_->paths) {
      if (!path.why.empty()) return path.why;
    }
    return "";
  }

  Problem loadHere(PeerAddresses& peers, const SentPlan* sent) {
    const NcclApi& api = *rank_.world->api;
    if (sent != nullptr && part_.verify) {
      Outcome<ArrivingSums> sums = allocateSums(parts_, peers.routes, rank_.rank, api, rank_.device);
      if (!sums) return sums.error();
      made_->sums = std::move(sums.value().memory);
      peers.sums = sums.value().at;
    }
    Outcome<DeviceProgram> program = loadProgram(part_, parts_, peers, limits(), api, rank_.device);
    if (!program) return program.error();
    made_->program = std::move(program.value());
    for (TransferPath& path : made_->paths) {
      if ((made_->program.engines[0] || made_->program.engines[1]) && std::string(path.path) == "mapped" &&
          std::string(path.direction) == "send")
        path.path = "copy-engine";
    }
    if (sent == nullptr) return std::nullopt;
    if (engines() == Engines::kAlone && !(sent->streams[0].empty() && sent->streams[1].empty())) {
      return fail(ErrorCode::kUnsupported, kPrepareOp,
                  "copy engines alone (sms: 0) cannot pack what rank " + std::to_string(rank_.rank) +
                      " sends or receives")
          .ofRank(rank_.rank)
          .helped("Leave out sms, or give the transfer some. " + whySent());
    }
    const Status loaded = loadSent(made_->program, part_, parts_, peers, *sent, limits().kernels, api, rank_.device);
    return loaded ? Problem() : Problem(loaded.error());
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
