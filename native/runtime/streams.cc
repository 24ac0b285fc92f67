// SPDX-License-Identifier: Apache-2.0
// Streams: made, freed and waited for, and the barrier, which runs on them.
#include <utility>

#include "runtime/barrier.hpp"
#include "runtime/cuda_error.hpp"
#include "runtime/process.hpp"
#include "runtime/runtime.hpp"

namespace nccl_ext {

Outcome<Handle> Runtime::createStream(Handle handle) {
  constexpr const char* kOp = "createStream";
  Outcome<Rank> found = rankOf(handle, kOp);
  if (!found) return found.error();
  const Rank& rank = found.value();
  if (Status refused = refuseMoreStreams(*rank, kOp); !refused) return refused.error();
  const DeviceGuard guard(rank->device);
  cudaStream_t raw = nullptr;
  const cudaError_t result = cudaStreamCreateWithFlags(&raw, cudaStreamNonBlocking);
  if (result != cudaSuccess) return cudaFailure(result, kOp, "a stream").ofRank(rank->rank);
  return addStream(rank, CudaStream(raw), kOp);
}

Status Runtime::refuseMoreStreams(const RankState& rank, const char* op) const {
  // More streams share a hardware queue, where a waiting kernel blocks another's peer.
  const auto most = static_cast<std::size_t>(queuesPerDevice());
  std::size_t onDevice = 0;
  for (const Rank& other : ranks_) onDevice += other->device == rank.device ? other->streams.size() : 0;
  if (onDevice < most) return ok();
  return fail(ErrorCode::kUnsupported, op,
              "GPU " + std::to_string(rank.device) + " already has " + std::to_string(onDevice) +
                  " streams of this process")
      .ofRank(rank.rank)
      .expecting(static_cast<std::int64_t>(most), static_cast<std::int64_t>(onDevice + 1))
      .helped("Dispose streams that are not used any more.");
}

Outcome<Handle> Runtime::addStream(const Rank& rank, CudaStream cuda, const char* op) {
  auto stream = std::make_shared<StreamState>();
  stream->stream = std::move(cuda);
  stream->shared = !stream->stream.get_deleter().owned;
  stream->owner = rank;
  stream->marks.resize(kMaxQueuedOperations);
  stream->box = rank->cells->take();
  if (stream->box == nullptr)
    return fail(ErrorCode::kOutOfMemory, op, "no pinned memory for the stream's error record").ofRank(rank->rank);
  if (const Status staged = giveStaging(*stream); !staged) {
    rank->cells->give(stream->box);
    ErrorRecord error = staged.error();
    error.rank = rank->rank;
    return error;
  }
  stream->handle = handles_.add(stream);
  rank->streams.insert(stream.get());
  return stream->handle;
}

Status Runtime::freeStream(Handle handle) {
  constexpr const char* kOp = "freeStream";
  Outcome<Stream> found = handles_.find<StreamState>(handle, kOp);
  if (!found) return found.error();
  const Stream& stream = found.value();
  RankState& rank = *stream->owner;
  retire(*stream);
  if (!stream->queue.empty() || stream->capture) {
    return fail(ErrorCode::kBusy, kOp, "the stream still has unfinished work")
        .ofRank(rank.rank)
        .helped("Synchronize it, then dispose it again.");
  }
  // Its box goes, and with it why the rank failed.
  notice(rank);
  poller_.forget(stream.get());
  if (rank.barrierStream == stream.get()) rank.barrierStream = nullptr;
  forgetTurns(*stream);
  rank.streams.erase(stream.get());
  rank.cells->give(stream->box);
  if (stream->staging) rank.spareStaging.push_back(std::exchange(stream->staging, nullptr));
  handles_.remove(handle);
  return ok();
}

int Runtime::queued(Handle handle) {
  Outcome<Stream> stream = handles_.find<StreamState>(handle, "queued");
  if (!stream) return 0;
  retire(*stream.value());
  return static_cast<int>(stream.value()->queue.size());
}

void Runtime::synchronize(Handle handle, DoneStatus done) {
  constexpr const char* kOp = "synchronize";
  Outcome<Stream> found = handles_.find<StreamState>(handle, kOp);
  if (!found) return done(found.error());
  const Stream stream = found.value();
  if (stream->capture) {
    return done(fail(ErrorCode::kInvalidState, kOp, "the stream records a graph")
                    .ofRank(stream->owner->rank)
                    .helped("End the capture first."));
  }
  whenFinished(stream, stream->enqueued, [this, stream, done] {
    const auto error = takeError(*stream);
    done(error ? Status(*error) : ok());
  });
}

Status Runtime::enqueueHostCall(Handle handle) {
  constexpr const char* kOp = "callHost";
  Outcome<Stream> stream = streamOf(handle, kOp);
  if (!stream) return stream.error();
  return fail(ErrorCode::kUnsupported, kOp, "the GPU backends run no JavaScript in stream order")
      .ofRank(stream.value()->owner->rank)
      .helped("Launch a kernel of your own with kernel.launch, or synchronize the stream first.");
}

Status Runtime::enqueueBarrier(Handle handle) {
  constexpr const char* kOp = "barrier";
  Outcome<Stream> found = streamOf(handle, kOp);
  if (!found) return found.error();
  const Stream& stream = found.value();
  RankState& rank = *stream->owner;
  const World& world = *rank.world;
  if (world.size > 1 && !rank.control.reachable) {
    return fail(ErrorCode::kUnsupported, kOp, "the ranks span more than one NVLink domain; this barrier serves one")
        .ofRank(rank.rank);
  }
  if (const Status admitted = admit(*stream, 3, kOp); !admitted) return admitted;
  const DeviceGuard guard(rank.device);
  if (world.size == 1) return commit(stream, {}, cudaSuccess, kOp);
  BarrierArgs args;
  args.peers = rank.control.peerTable();
  args.own = static_cast<BarrierFlag*>(rank.control.flags.address());
  args.epoch = rank.control.epoch(world.size);
  args.status = boxOf(*stream);
  args.words = &rank.cells->words();
  args.timeoutNs = static_cast<std::uint64_t>(std::chrono::nanoseconds(world.timeout).count());
  args.rank = rank.rank;
  args.size = world.size;
  if (stream->capture) {
    // The launch orders the graph after this rank's other barriers.
    stream->capture->hasBarrier = true;
    return commit(stream, {}, launchBarrier(args, stream->stream.get()), kOp);
  }
  cudaError_t result = cudaSuccess;
  if (rank.barrierStream != stream.get()) result = cudaStreamWaitEvent(stream->stream.get(), rank.lastBarrier.get(), 0);
  if (result == cudaSuccess) result = launchBarrier(args, stream->stream.get());
  if (result == cudaSuccess) result = cudaEventRecord(rank.lastBarrier.get(), stream->stream.get());
  rank.barrierStream = stream.get();
  return commit(stream, {}, result, kOp);
}

}  // namespace nccl_ext
