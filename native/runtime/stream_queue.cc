// SPDX-License-Identifier: Apache-2.0
// The queue of a stream: how an operation is admitted, marked and retired, and who is told that it has finished.
//
// Every operation is followed by a CUDA event in its place of the queue; an operation has finished when its event has.
// Nothing polls on its own: the queue is looked at when it is needed, and the poller watches what somebody waits for.
#include <algorithm>

#include "runtime/cuda_error.hpp"
#include "runtime/runtime.hpp"
#include "runtime/status_text.hpp"

namespace nccl_ext {
namespace {

// CUDA's launch queue holds 1024 entries and then blocks the caller.
constexpr int kMaxEntries = 900;
// Keeps host memory from piling up on a stream that is never synchronized.
constexpr std::size_t kRetireAt = 64;

}  // namespace

// Whether the stream takes an operation of `entries` launches; nothing is changed when it does not.
Status Runtime::admit(StreamState& stream, int entries, const char* op) {
  if (stream.capture) return ok();
  if (stream.shared) {
    if (Status refused = refuseForeignCapture(stream.stream.get(), *stream.owner, op); !refused) return refused;
  }
  if (stream.queue.size() >= kRetireAt || stream.entries + entries > kMaxEntries) retire(stream);
  const bool full = stream.queue.size() >= kMaxQueuedOperations;
  if (full || (!stream.queue.empty() && stream.entries + entries > kMaxEntries)) {
    const std::string held = full ? std::to_string(kMaxQueuedOperations) + " unfinished operations"
                                  : "unfinished copies that fill CUDA's launch queue";
    return fail(ErrorCode::kQueueFull, op,
                "the stream of rank " + std::to_string(stream.owner->rank) + " already holds " + held)
        .ofRank(stream.owner->rank)
        .expecting(static_cast<std::int64_t>(kMaxQueuedOperations), static_cast<std::int64_t>(stream.queue.size() + 1))
        .helped("Await synchronize() before enqueueing more, or record a graph.");
  }
  CudaEvent& mark = stream.marks[(stream.enqueued + 1) % kMaxQueuedOperations];
  if (mark) return ok();
  const DeviceGuard guard(stream.owner->device);
  cudaEvent_t raw = nullptr;
  const cudaError_t result = cudaEventCreateWithFlags(&raw, cudaEventDisableTiming);
  if (result != cudaSuccess) return cudaFailure(result, op, "an event").ofRank(stream.owner->rank);
  mark.reset(raw);
  return ok();
}

// Marks an operation that admit() let in and whose launches gave `result`. What it uses is held either way: a part of a
// failed operation may run.
Status Runtime::commit(const Stream& stream, Operation operation, cudaError_t result, const char* op) {
  const Status launched =
      result == cudaSuccess ? ok() : Status(cudaFailure(result, op, op).ofRank(stream->owner->rank));
  return commit(stream, std::move(operation), launched, op);
}

Status Runtime::commit(const Stream& stream, Operation operation, Status status, const char* op) {
  RankState& rank = *stream->owner;
  if (stream->capture) {
    Capture& capture = *stream->capture;
    for (const auto& buffer : operation.buffers) buffer->graphs++;
    capture.buffers.insert(capture.buffers.end(), operation.buffers.begin(), operation.buffers.end());
    capture.keeps.insert(capture.keeps.end(), operation.keeps.begin(), operation.keeps.end());
    return status;
  }
  operation.ticket = ++stream->enqueued;
  for (const auto& buffer : operation.buffers) buffer->inFlight++;
  if (operation.graph) operation.graph->inFlight++;
  stream->entries += operation.entries;
  const cudaError_t marked = cudaEventRecord(stream->mark(operation.ticket), stream->stream.get());
  stream->queue.push_back(std::move(operation));
  if (marked != cudaSuccess) failStream(*stream, cudaFailure(marked, op, op).ofRank(rank.rank));
  return status;
}

// Takes what has finished off the queue, and tells who waited for it.
void Runtime::retire(StreamState& stream) {
  while (!stream.queue.empty()) {
    const cudaError_t result = cudaEventQuery(stream.mark(stream.queue.front().ticket));
    if (result == cudaErrorNotReady) {
      (void)cudaGetLastError();
      break;
    }
    if (result != cudaSuccess)
      return failStream(stream,
                        cudaFailure(result, "synchronize", "work on the GPU failed").ofRank(stream.owner->rank));
    const Operation done = std::move(stream.queue.front());
    stream.queue.pop_front();
    stream.entries -= done.entries;
    for (const auto& buffer : done.buffers) buffer->inFlight--;
    if (done.graph) done.graph->inFlight--;
  }
  const std::uint64_t finished = stream.finished();
  std::vector<std::pair<std::uint64_t, std::function<void()>>> waiters;
  waiters.swap(stream.waiters);
  for (auto& waiter : waiters) {
    if (waiter.first <= finished)
      waiter.second();
    else
      stream.waiters.push_back(std::move(waiter));
  }
}

// After an error that CUDA does not recover from, the queue will never finish.
void Runtime::failStream(StreamState& stream, const ErrorRecord& error) {
  if (!stream.error) stream.error = error;
  poison(*stream.owner, error);
  if (loseRecordsOf(stream)) failWaits();
  std::deque<Operation> dropped;
  dropped.swap(stream.queue);
  stream.entries = 0;
  for (const Operation& operation : dropped) {
    for (const auto& buffer : operation.buffers) buffer->inFlight--;
    if (operation.graph) operation.graph->inFlight--;
  }
  retire(stream);
}

// The first error since the last call, which this one clears.
std::optional<ErrorRecord> Runtime::takeError(StreamState& stream) {
  std::optional<ErrorRecord> first = std::move(stream.error);
  stream.error.reset();
  const int rank = stream.owner->rank;
  const auto take = [&](DeviceStatus& box) {
    if (observe<kSystem>(box.code) == 0) return;
    notice(*stream.owner);
    const auto& poisoned = stream.owner->poison;
    ErrorRecord record = poisoned ? recordOf(box, rank, poisoned->detail) : recordOf(box, rank);
    if (poisoned && record.code == ErrorCode::kPoisoned) {
      record.peer = poisoned->peer;
      // No other stream has the record of what a host call found out, and this was enqueued before it did.
      if (!stream.owner->poisonedByKernel) record.code = poisoned->code;
    }
    clear(box);
    if (poisons(record)) poison(*stream.owner, record, true);
    if (!first) first = record;
  };
  take(*stream.box);
  for (const auto& graph : stream.launched) take(*graph->content.box);
  const auto idle = [](const std::shared_ptr<GraphState>& graph) { return graph->inFlight == 0; };
  stream.launched.erase(std::remove_if(stream.launched.begin(), stream.launched.end(), idle), stream.launched.end());
  return first;
}

void Runtime::whenFinished(const Stream& stream, std::uint64_t ticket, std::function<void()> settle) {
  retire(*stream);
  if (stream->finished() >= ticket) return settle();
  stream->waiters.emplace_back(ticket, std::move(settle));
  poller_.watch(stream.get(), [this, event = stream->mark(ticket), weak = std::weak_ptr<StreamState>(stream)] {
    if (cudaEventQuery(event) == cudaErrorNotReady) return false;
    mailbox_.post([this, weak] {
      if (const Stream alive = weak.lock()) retire(*alive);
    });
    return true;
  });
}

DeviceStatus* Runtime::boxOf(StreamState& stream) const {
  return stream.capture ? stream.capture->box : stream.box;
}

}  // namespace nccl_ext
