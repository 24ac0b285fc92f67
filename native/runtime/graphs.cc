// SPDX-License-Identifier: Apache-2.0
// Graphs: what a stream records, launched as one operation. A graph has an error box of its own, because it may be
// launched on another stream than the one that recorded it; the launching stream's synchronize looks into it.
#include <algorithm>

#include "m2n/prepared_transfer.hpp"
#include "runtime/cuda_error.hpp"
#include "runtime/runtime.hpp"

namespace nccl_ext {

void Capture::release() {
  for (const auto& buffer : buffers) buffer->graphs--;
  buffers.clear();
  keeps.clear();
  transfers.clear();
  records.clear();
  awaits.clear();
}

Status Runtime::beginCapture(Handle handle) {
  constexpr const char* kOp = "beginCapture";
  Outcome<Stream> found = streamOf(handle, kOp);
  if (!found) return found.error();
  StreamState& stream = *found.value();
  RankState& rank = *stream.owner;
  if (stream.capture)
    return fail(ErrorCode::kInvalidState, kOp, "the stream already records a graph").ofRank(rank.rank);
  if (stream.shared) {
    if (Status refused = refuseForeignCapture(stream.stream.get(), rank, kOp); !refused) return refused;
  }
  DeviceStatus* box = rank.cells->take();
  if (box == nullptr)
    return fail(ErrorCode::kOutOfMemory, kOp, "no pinned memory for the graph's error record").ofRank(rank.rank);
  const DeviceGuard guard(rank.device);
  // Relaxed: other ranks' calls on this thread are none of the capture's business.
  const cudaError_t result = cudaStreamBeginCapture(stream.stream.get(), cudaStreamCaptureModeRelaxed);
  if (result != cudaSuccess) {
    rank.cells->give(box);
    return cudaFailure(result, kOp, kOp).ofRank(rank.rank);
  }
  stream.capture.emplace();
  stream.capture->box = box;
  return ok();
}

Outcome<Handle> Runtime::endCapture(Handle handle) {
  constexpr const char* kOp = "endCapture";
  // A poisoned rank must get out of its capture too.
  Outcome<Stream> found = handles_.find<StreamState>(handle, kOp);
  if (!found) return found.error();
  StreamState& stream = *found.value();
  const Rank rank = stream.owner;
  if (!stream.capture) return fail(ErrorCode::kInvalidState, kOp, "the stream records no graph").ofRank(rank->rank);
  // The box goes back when the last launch is done with it.
  const std::shared_ptr<GraphState> graph(new GraphState(), [](GraphState* dying) {
    dying->content.release();
    if (dying->content.box != nullptr) dying->owner->cells->give(dying->content.box);
    delete dying;
  });
  graph->owner = rank;
  graph->content = std::move(*stream.capture);
  stream.capture.reset();
  const DeviceGuard guard(rank->device);
  cudaGraph_t recorded = nullptr;
  cudaError_t result = cudaStreamEndCapture(stream.stream.get(), &recorded);
  cudaGraphExec_t executable = nullptr;
  if (result == cudaSuccess) result = cudaGraphInstantiate(&executable, recorded, 0);
  if (recorded != nullptr) (void)cudaGraphDestroy(recorded);
  if (result != cudaSuccess)
    return cudaFailure(result, kOp, "the recorded operations make no graph").ofRank(rank->rank);
  graph->graph.reset(executable);
  // Brings it to the device now rather than with the first launch.
  (void)cudaGraphUpload(executable, stream.stream.get());
  graph->handle = handles_.add(graph);
  rank->graphs.insert(graph.get());
  return graph->handle;
}

Status Runtime::launchGraph(Handle graphHandle, Handle streamHandle) {
  constexpr const char* kOp = "launchGraph";
  Outcome<Stream> found = streamOf(streamHandle, kOp);
  if (!found) return found.error();
  const Stream& stream = found.value();
  RankState& rank = *stream->owner;
  Outcome<std::shared_ptr<GraphState>> foundGraph = handles_.find<GraphState>(graphHandle, kOp);
  if (!foundGraph) return foundGraph.error();
  const auto& graph = foundGraph.value();
  if (graph->owner.get() != &rank) {
    return fail(ErrorCode::kForeignObject, kOp,
                "a graph of rank " + std::to_string(graph->owner->rank) + " was launched on a stream of rank " +
                    std::to_string(rank.rank))
        .ofRank(rank.rank)
        .fromPeer(graph->owner->rank);
  }
  if (stream->capture)
    return fail(ErrorCode::kInvalidState, kOp, "the stream records a graph; a graph cannot hold another one")
        .ofRank(rank.rank);
  if (const Status refused = refuseSends(rank, graph->content.transfers, kOp); !refused) return refused;
  if (const Status admitted = admit(*stream, 3, kOp); !admitted) return admitted;
  const DeviceGuard guard(rank.device);
  const bool barrier = graph->content.hasBarrier;
  cudaError_t result = awaitTurns(*stream, graph->content.transfers);
  if (result == cudaSuccess && barrier && rank.barrierStream != stream.get())
    result = cudaStreamWaitEvent(stream->stream.get(), rank.lastBarrier.get(), 0);
  if (result == cudaSuccess) result = cudaGraphLaunch(graph->graph.get(), stream->stream.get());
  if (result == cudaSuccess && barrier) {
    result = cudaEventRecord(rank.lastBarrier.get(), stream->stream.get());
    rank.barrierStream = stream.get();
  }
  auto& launched = stream->launched;
  if (std::find(launched.begin(), launched.end(), graph) == launched.end()) launched.push_back(graph);
  Operation operation;
  operation.entries = 3;
  operation.graph = graph;
  for (const auto& records : graph->content.records)
    operation.records.push_back(records->last = std::make_shared<EventRecord>());
  bool lost = false;
  for (const auto& records : graph->content.awaits) {
    if (!records->last) continue;
    operation.awaits.push_back(records->last);
    lost = lost || records->last->lost;
  }
  const Status status = commit(stream, std::move(operation), result, kOp);
  if (lost) failWaits();
  takeTurns(*stream, graph->content.transfers);
  for (const auto& transfer : graph->content.transfers) {
    // Without one of its groups the peers would wait in theirs.
    if (!status && transfer->watch) poison(rank, status.error());
    watchSends(transfer);
  }
  return status;
}

Status Runtime::freeGraph(Handle handle) {
  constexpr const char* kOp = "freeGraph";
  Outcome<std::shared_ptr<GraphState>> found = handles_.find<GraphState>(handle, kOp);
  if (!found) return found.error();
  const auto graph = found.value();
  RankState& rank = *graph->owner;
  for (StreamState* stream : rank.streams) retire(*stream);
  if (graph->inFlight > 0) {
    return fail(ErrorCode::kBusy, kOp, "a launch of the graph has not finished")
        .ofRank(rank.rank)
        .helped("Synchronize the streams that launched it.");
  }
  graph->content.release();
  rank.graphs.erase(graph.get());
  handles_.remove(handle);
  return ok();
}

}  // namespace nccl_ext
