// SPDX-License-Identifier: Apache-2.0
// Events. While a stream records a graph, records and waits become nodes of their own (the External flags), so that
// each launch records and waits anew, as on the embedded backend.
#include "runtime/cuda_error.hpp"
#include "runtime/runtime.hpp"

namespace nccl_ext {

Outcome<Handle> Runtime::createEvent(Handle handle) {
  constexpr const char* kOp = "createEvent";
  Outcome<Rank> found = rankOf(handle, kOp);
  if (!found) return found.error();
  const Rank& rank = found.value();
  const DeviceGuard guard(rank->device);
  cudaEvent_t raw = nullptr;
  const cudaError_t result = cudaEventCreateWithFlags(&raw, cudaEventDefault);
  if (result != cudaSuccess) return cudaFailure(result, kOp, "an event").ofRank(rank->rank);
  auto event = std::make_shared<EventState>();
  event->owner = rank;
  event->event = std::make_shared<CudaEvent>(raw);
  event->handle = handles_.add(event);
  rank->events.insert(event.get());
  return event->handle;
}

Status Runtime::freeEvent(Handle handle) {
  Outcome<std::shared_ptr<EventState>> found = handles_.find<EventState>(handle, "freeEvent");
  if (!found) return found.error();
  // Queued work that refers to the event is not disturbed: CUDA keeps what it needs, and graphs share ours.
  found.value()->owner->events.erase(found.value().get());
  handles_.remove(handle);
  return ok();
}

Status Runtime::recordEvent(Handle eventHandle, Handle streamHandle) {
  constexpr const char* kOp = "recordEvent";
  Outcome<Stream> stream = streamOf(streamHandle, kOp);
  if (!stream) return stream.error();
  Outcome<std::shared_ptr<EventState>> event = handles_.find<EventState>(eventHandle, kOp);
  if (!event) return event.error();
  RankState& rank = *stream.value()->owner;
  if (event.value()->owner.get() != &rank) {
    return fail(ErrorCode::kForeignObject, kOp,
                "an event of rank " + std::to_string(event.value()->owner->rank) +
                    " cannot be recorded on a stream of rank " + std::to_string(rank.rank))
        .ofRank(rank.rank)
        .fromPeer(event.value()->owner->rank);
  }
  if (const Status admitted = admit(*stream.value(), 1, kOp); !admitted) return admitted;
  const DeviceGuard guard(rank.device);
  const unsigned flags = stream.value()->capture ? cudaEventRecordExternal : cudaEventRecordDefault;
  const cudaError_t result = cudaEventRecordWithFlags(event.value()->event->get(), stream.value()->stream.get(), flags);
  event.value()->recorded = true;
  Operation operation;
  operation.entries = 1;
  operation.keeps.push_back(event.value()->event);
  const std::shared_ptr<EventRecords>& records = event.value()->records;
  if (stream.value()->capture)
    stream.value()->capture->records.push_back(records);
  else
    operation.records.push_back(records->last = std::make_shared<EventRecord>());
  return commit(stream.value(), std::move(operation), result, kOp);
}

Status Runtime::waitEvent(Handle streamHandle, Handle eventHandle) {
  constexpr const char* kOp = "waitEvent";
  Outcome<Stream> stream = streamOf(streamHandle, kOp);
  if (!stream) return stream.error();
  Outcome<std::shared_ptr<EventState>> event = handles_.find<EventState>(eventHandle, kOp);
  if (!event) return event.error();
  RankState& rank = *stream.value()->owner;
  if (event.value()->owner->world->root() != rank.world->root()) {
    return fail(ErrorCode::kForeignObject, kOp, "the event belongs to another world than the stream")
        .ofRank(rank.rank)
        .fromPeer(event.value()->owner->rank);
  }
  if (const Status admitted = admit(*stream.value(), 1, kOp); !admitted) return admitted;
  const DeviceGuard guard(rank.device);
  cudaError_t result = cudaSuccess;
  if (event.value()->recorded) {
    const unsigned flags = stream.value()->capture ? cudaEventWaitExternal : cudaEventWaitDefault;
    result = cudaStreamWaitEvent(stream.value()->stream.get(), event.value()->event->get(), flags);
  }
  Operation operation;
  operation.entries = 1;
  operation.keeps.push_back(event.value()->event);
  const std::shared_ptr<EventRecords>& records = event.value()->records;
  // Of a rank's own work its kernels know.
  const bool others = event.value()->owner.get() != &rank;
  const bool now = others && !stream.value()->capture && records->last;
  if (others && stream.value()->capture) stream.value()->capture->awaits.push_back(records);
  if (now) operation.awaits.push_back(records->last);
  const Status status = commit(stream.value(), std::move(operation), result, kOp);
  if (now && records->last->lost) failWaits();
  return status;
}

Outcome<bool> Runtime::queryEvent(Handle handle) const {
  Outcome<std::shared_ptr<EventState>> event = handles_.find<EventState>(handle, "queryEvent");
  if (!event) return event.error();
  if (!event.value()->recorded) return true;
  const cudaError_t result = cudaEventQuery(event.value()->event->get());
  if (result == cudaSuccess) return true;
  if (result != cudaErrorNotReady)
    return cudaFailure(result, "queryEvent", "work before the event failed").ofRank(event.value()->owner->rank);
  (void)cudaGetLastError();
  return false;
}

void Runtime::synchronizeEvent(Handle handle, DoneStatus done) {
  Outcome<std::shared_ptr<EventState>> found = handles_.find<EventState>(handle, "synchronizeEvent");
  if (!found) return done(found.error());
  const auto event = found.value();
  if (!event->recorded) return done(ok());
  poller_.watch(event.get(), [this, event, done] {
    const cudaError_t result = cudaEventQuery(event->event->get());
    if (result == cudaErrorNotReady) return false;
    Status status = ok();
    if (result != cudaSuccess)
      status = cudaFailure(result, "synchronizeEvent", "work before the event failed").ofRank(event->owner->rank);
    mailbox_.post([done, event, status] { done(status); });
    return true;
  });
}

Outcome<double> Runtime::elapsedMs(Handle startHandle, Handle endHandle) const {
  constexpr const char* kOp = "elapsedMs";
  Outcome<std::shared_ptr<EventState>> start = handles_.find<EventState>(startHandle, kOp);
  if (!start) return start.error();
  Outcome<std::shared_ptr<EventState>> end = handles_.find<EventState>(endHandle, kOp);
  if (!end) return end.error();
  const int rank = end.value()->owner->rank;
  for (const auto& event : {start.value(), end.value()}) {
    const cudaError_t reached = event->recorded ? cudaEventQuery(event->event->get()) : cudaErrorNotReady;
    if (reached == cudaSuccess) continue;
    (void)cudaGetLastError();
    return fail(ErrorCode::kInvalidState, kOp, "both events must have been recorded and reached")
        .ofRank(rank)
        .helped("Synchronize the stream, or the later event, first.");
  }
  float milliseconds = 0;
  const cudaError_t result =
      cudaEventElapsedTime(&milliseconds, start.value()->event->get(), end.value()->event->get());
  if (result != cudaSuccess) return cudaFailure(result, kOp, "the time between two events").ofRank(rank);
  return static_cast<double>(milliseconds);
}

}  // namespace nccl_ext
