// SPDX-License-Identifier: Apache-2.0
// Transfers: the m2n calls of the contract (core/src/contract/m2n.ts) on handles.
//
// Executions of one transfer follow one another, whatever streams they are on; those of several go side by side as long as
// their CTAs fit into the rank's SM budget together, because kernels that wait must all be resident. Where they do not fit,
// ranks must enqueue them in the same order.
#include <algorithm>
#include <new>

#include "m2n/launch_execution.hpp"
#include "m2n/prepared_transfer.hpp"
#include "runtime/cuda_error.hpp"
#include "runtime/runtime.hpp"

namespace nccl_ext {
namespace {

ErrorRecord invalid(const RankState& rank, std::string detail) {
  return fail(ErrorCode::kInvalidArgument, kPrepareOp, std::move(detail)).ofRank(rank.rank);
}

std::optional<ErrorRecord> smsProblem(const RankState& rank, const std::optional<int>& sms) {
  if (!sms || (*sms >= 0 && *sms <= rank.smBudget)) return std::nullopt;
  const std::string most = std::to_string(rank.smBudget);
  return fail(ErrorCode::kInvalidArgument, kPrepareOp,
              "sms must be an integer from 0 to " + most + ", the SMs that rank " + std::to_string(rank.rank) +
                  " may hold, not " + std::to_string(*sms))
      .ofRank(rank.rank)
      .expecting(static_cast<std::int64_t>(rank.smBudget), static_cast<std::int64_t>(*sms))
      .helped("Ask for fewer, or give the rank more when the world is made.");
}

}  // namespace

// The buffers of one side, each once in the part's memories.
std::optional<ErrorRecord> Runtime::resolveBindings(const RankState& rank, const std::string& name,
                                                    const TensorBindings& bindings, PreparePart& part,
                                                    Bindings& resolved) const {
  for (std::size_t tensor = 0; tensor < bindings.buffer.size(); tensor++) {
    BoundTensor& binding = resolved.emplace_back();
    if (bindings.buffer[tensor] == 0) continue;
    const std::string what = name + "[" + std::to_string(tensor) + "]";
    Outcome<Buffer> found = bufferFor(bindings.buffer[tensor], rank, 0, 0, kPrepareOp);
    if (!found) {
      ErrorRecord error = found.error();
      error.rank = rank.rank;
      if (error.code != ErrorCode::kForeignObject) error.detail = what + ": " + error.detail;
      return error;
    }
    const Buffer& buffer = found.value();
    binding.byteOffset = tensor < bindings.byteOffset.size() ? bindings.byteOffset[tensor] : 0;
    if (binding.byteOffset < 0) return invalid(rank, what + " has byte offset " + std::to_string(binding.byteOffset));
    const auto [known, added] =
        part.memoryOf.try_emplace(buffer.get(), static_cast<std::int32_t>(part.memories.size()));
    binding.memory = known->second;
    if (!added) continue;
    part.buffers.push_back(buffer);
    part.memories.push_back(
        {reinterpret_cast<std::uint64_t>(buffer->memory.address()), static_cast<std::int64_t>(buffer->memory.bytes())});
  }
  return std::nullopt;
}

// What the rank brings, or in it why it cannot take part.
std::shared_ptr<PrepareRequest> Runtime::prepareRequest(const RankState& rank, PrepareConfig config) const {
  auto request = std::make_shared<PrepareRequest>();
  request->digest = config.program.digest;
  request->verify = config.verify;
  request->sms = config.sms;
  request->problem = programProblem(config.program, config.verify, rank.rank, rank.world->size);
  if (!request->problem) request->problem = smsProblem(rank, config.sms);
  PreparePart& part = request->part;
  part.rank = rank.rank;
  part.verify = config.verify;
  if (!config.path.empty()) part.path = config.path;
  request->staging = config.staging;
  if (!request->problem && !pathChoiceOf(part.path))
    request->problem = invalid(rank, "path must be auto, mapped or sendrecv, got " + part.path);
  part.program = std::make_shared<const TransferProgram>(std::move(config.program));
  if (!request->problem) request->problem = resolveBindings(rank, "sources", config.sources, part, part.sources);
  if (!request->problem)
    request->problem = resolveBindings(rank, "destinations", config.destinations, part, part.destinations);
  if (request->problem) part.buffers.clear();
  for (const Buffer& buffer : part.buffers) {
    const DeviceMemory& memory = buffer->memory;
    // Sharing is the owner's thread's: it leaves a descriptor in the buffer.
    request->memories.push_back(rank.world->oneProcess ? exposureOf(memory) : exposureOf(memory, buffer->exported));
  }
  return request;
}

void Runtime::prepareTransfer(Handle handle, PrepareConfig config, Done<Handle> done) {
  Outcome<Rank> found = rankOf(handle, kPrepareOp);
  if (!found) return done(found.error());
  const Rank rank = found.value();
  if (const auto error = unusable(*rank, kPrepareOp)) return done(*error);
  const std::shared_ptr<PrepareRequest> request = prepareRequest(*rank, std::move(config));
  DeviceStatus* cell = rank->cells->take();
  if (cell == nullptr && !request->problem) {
    request->problem = ErrorRecord(
        fail(ErrorCode::kOutOfMemory, kPrepareOp, "no pinned memory for the transfer's counts").ofRank(rank->rank));
  }
  for (const Buffer& buffer : request->part.buffers) buffer->transfers++;  // busy from here on
  rank->preparing++;
  rank->worker->post([this, rank, request, cell, done] {
    mailbox_.post([this, rank, request, cell, done, attempt = nccl_ext::prepareTransfer(*rank, *request)] {
      const auto& made = attempt.result;
      rank->preparing--;
      if (!made || rank->disposing) {
        for (const Buffer& buffer : request->part.buffers) buffer->transfers--;
        if (cell != nullptr) rank->cells->give(cell);
        if (made) reaper_->post([kept = made.value()] { *kept = Preparation(); });
        if (!made && !attempt.refused) poison(*rank, made.error());
        if (attempt.awaited) abortWaits(*rank, made.error());
        return done(made ? disposed(*rank) : made.error());
      }
      auto transfer = std::make_shared<PreparedTransfer>();
      static_assert(sizeof(TransferCounts) == sizeof(DeviceStatus));
      transfer->counts = new (cell) TransferCounts();
      transfer->owner = rank;
      transfer->made = made.value();
      transfer->buffers = request->part.buffers;
      transfer->sms = smsOf(rank->smBudget, request->sms);
      const DeviceProgram& program = transfer->made->program;
      for (const TransferArgs& stage : program.stages) transfer->ctas = std::max(transfer->ctas, stage.work.ctas);
      if (!program.rounds[0].empty() || !program.rounds[1].empty()) {
        // NCCL takes what it may, and its groups of one rank must follow each other as on the others.
        transfer->ctas = rank->smBudget;
        transfer->watch =
            std::make_shared<SentWatch>(program, *transfer->counts, rank->cells->words(), rank->world->timeout);
      }
      for (const Buffer& buffer : transfer->buffers) buffer->exposed = true;
      transfer->handle = handles_.add(transfer);
      rank->transfers.insert(transfer.get());
      done(transfer->handle);
    });
  });
}

Status Runtime::enqueueTransfer(Handle handle, Handle streamHandle) {
  Outcome<Stream> foundStream = streamOf(streamHandle, kTransferOp);
  if (!foundStream) return foundStream.error();
  const Stream& stream = foundStream.value();
  RankState& rank = *stream->owner;
  Outcome<std::shared_ptr<PreparedTransfer>> found = handles_.find<PreparedTransfer>(handle, kTransferOp);
  if (!found) return found.error();
  PreparedTransfer& transfer = *found.value();
  if (transfer.disposing)
    return fail(ErrorCode::kDisposed, kTransferOp, "the transfer is being disposed").ofRank(rank.rank);
  if (transfer.owner.get() != &rank) {
    return fail(ErrorCode::kForeignObject, kTransferOp,
                "a transfer of rank " + std::to_string(transfer.owner->rank) + " was passed to transfer on rank " +
                    std::to_string(rank.rank))
        .ofRank(rank.rank)
        .fromPeer(transfer.owner->rank)
        .helped("Pass objects of the rank that owns the stream.");
  }
  if (const Status refused = refuseSends(rank, {found.value()}, kTransferOp); !refused) return refused;
  const int entries = entriesOf(transfer.made->program);
  if (const Status admitted = admit(*stream, entries, kTransferOp); !admitted) return admitted;
  const DeviceGuard guard(rank.device);
  cudaError_t result = stream->capture ? cudaSuccess : awaitTurns(*stream, {found.value()});
  const LaunchPlace place{transfer.counts, boxOf(*stream), &rank.cells->words(),
                          static_cast<std::uint64_t>(std::chrono::nanoseconds(rank.world->timeout).count()),
                          rank.sends};
  Status launched = result == cudaSuccess ? launchExecution(transfer.made->program, place, transfer.sms,
                                                            stream->stream.get(), stream->capture.has_value())
                                          : Status(cudaFailure(result, kTransferOp, kTransferOp).ofRank(rank.rank));
  Operation operation;
  operation.entries = entries;
  if (stream->capture) {
    // The launch orders the graph after this rank's other transfers.
    stream->capture->transfers.push_back(found.value());
    operation.keeps.push_back(transfer.graphUse);
    return commit(stream, std::move(operation), launched, kTransferOp);
  }
  const Status status = commit(stream, std::move(operation), launched, kTransferOp);
  takeTurns(*stream, {found.value()});
  // A part of it may run: without the rest the peers wait in vain, and the next one would go by the grants of this one.
  if (!status) poison(rank, status.error());
  watchSends(found.value());
  return status;
}

// Preparing connects pairs of ranks by a group of NCCL on the rank's worker: one of this thread would wait for it, and come before it
// on one rank and behind it on another.
Status Runtime::refuseSends(const RankState& rank, const std::vector<std::shared_ptr<PreparedTransfer>>& next,
                            const char* op) {
  const bool sends = std::any_of(next.begin(), next.end(), [](const auto& one) { return one->watch != nullptr; });
  if (!sends || rank.preparing == 0) return ok();
  return fail(ErrorCode::kBusy, op,
              "rank " + std::to_string(rank.rank) +
                  " prepares a transfer, and this one sends through NCCL, where all ranks need one order")
      .ofRank(rank.rank)
      .helped("Await prepareTransfer first.");
}

// Holds the stream back until executions that must be over first are.
cudaError_t Runtime::awaitTurns(StreamState& stream, const std::vector<std::shared_ptr<PreparedTransfer>>& next) {
  if (next.empty()) return cudaSuccess;
  RankState& rank = *stream.owner;
  for (StreamState* other : rank.streams) retire(*other);
  int ctas = 0, beside = 0;
  for (const auto& transfer : next) ctas = std::max(ctas, transfer->ctas);
  for (const PreparedTransfer* other : rank.transfers) beside += other->isInFlightBeside(stream) ? other->ctas : 0;
  const bool crowded = ctas + beside > rank.smBudget;
  cudaError_t result = cudaSuccess;
  for (const PreparedTransfer* other : rank.transfers) {
    const bool same = std::any_of(next.begin(), next.end(), [other](const auto& one) { return one.get() == other; });
    if (result == cudaSuccess && (same || crowded) && other->isInFlightBeside(stream))
      result = cudaStreamWaitEvent(stream.stream.get(), other->stream->mark(other->ticket), 0);
  }
  return result;
}

// Notes that the stream's latest operation executes these.
void Runtime::takeTurns(StreamState& stream, const std::vector<std::shared_ptr<PreparedTransfer>>& transfers) {
  for (const auto& transfer : transfers) {
    transfer->stream = &stream;
    transfer->ticket = stream.enqueued;
    transfer->uses[stream.handle] = stream.enqueued;
  }
}

void Runtime::forgetTurns(const StreamState& stream) {
  for (PreparedTransfer* transfer : stream.owner->transfers) {
    if (transfer->stream == &stream) transfer->stream = nullptr;
    transfer->uses.erase(stream.handle);
  }
}

TransferProgress Runtime::progressOf(Handle handle) const {
  const auto found = handles_.find<PreparedTransfer>(handle, "progressOf");
  if (!found) return {};
  TransferCounts& counts = *found.value()->counts;
  return {static_cast<std::int64_t>(peek<kSystem>(counts.written)),
          static_cast<std::int64_t>(peek<kSystem>(counts.completed))};
}

std::vector<TransferPath> Runtime::pathsOf(Handle handle) const {
  const auto found = handles_.find<PreparedTransfer>(handle, "pathsOf");
  return found ? found.value()->made->paths : std::vector<TransferPath>();
}

void Runtime::disposeTransfer(Handle handle, DoneStatus done) {
  constexpr const char* kOp = "disposeTransfer";
  Outcome<std::shared_ptr<PreparedTransfer>> found = handles_.find<PreparedTransfer>(handle, kOp);
  if (!found) return done(found.error());
  const std::shared_ptr<PreparedTransfer> transfer = found.value();
  if (transfer->graphUse.use_count() > 1) {
    return done(fail(ErrorCode::kBusy, kOp,
                     "a graph of rank " + std::to_string(transfer->owner->rank) + " still uses this transfer")
                    .ofRank(transfer->owner->rank)
                    .helped("Free the graph first."));
  }
  transfer->disposeWaiters.push_back(std::move(done));
  if (std::exchange(transfer->disposing, true)) return;
  // Held by the callbacks: the last one that runs frees the transfer.
  const auto freeing = std::make_shared<int>(1);
  const auto passed = [this, transfer, freeing] {
    if (--*freeing == 0) freeTransfer(transfer);
  };
  for (const auto& [streamHandle, ticket] : transfer->uses) {
    // A stream that was freed has finished.
    const auto stream = handles_.find<StreamState>(streamHandle, kOp);
    if (!stream) continue;
    ++*freeing;
    whenFinished(stream.value(), ticket, passed);
  }
  passed();
}

void Runtime::freeTransfer(const std::shared_ptr<PreparedTransfer>& transfer) {
  const Rank rank = transfer->owner;
  if (rank->transfers.erase(transfer.get()) > 0) releaseTransfer(*transfer, true);
  for (const DoneStatus& waiter : std::exchange(transfer->disposeWaiters, {})) waiter(ok());
}

// Takes a transfer's handle away, and with it what it holds. `drained`: none of the rank's kernels uses it any more.
void Runtime::releaseTransfer(PreparedTransfer& transfer, bool drained) {
  RankState& rank = *transfer.owner;
  poller_.forget(&transfer);
  for (const Buffer& buffer : transfer.buffers) buffer->transfers--;
  transfer.buffers.clear();
  const std::shared_ptr<Preparation> made = std::move(transfer.made);
  if (drained) {
    rank.cells->give(reinterpret_cast<DeviceStatus*>(transfer.counts));
    reaper_->post([made] { *made = Preparation(); });
  } else {
    rank.oldHolds.push_back(made);
  }
  handles_.remove(transfer.handle);
}

}  // namespace nccl_ext
