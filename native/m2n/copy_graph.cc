// SPDX-License-Identifier: Apache-2.0
#include "m2n/copy_graph.hpp"

#include "m2n/prepare_part.hpp"
#include "runtime/cuda_error.hpp"

namespace nccl_ext {
namespace {

CUDA_MEMCPY3D parametersOf(const EngineCopy& copy) {
  CUDA_MEMCPY3D parameters = {};
  // The driver finds out which GPU an address belongs to; the nodes run on this rank's.
  parameters.srcMemoryType = parameters.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  parameters.srcDevice = copy.source;
  parameters.dstDevice = copy.destination;
  parameters.srcPitch = copy.sourcePitch;
  parameters.dstPitch = copy.destinationPitch;
  parameters.srcHeight = copy.sourceHeight;
  parameters.dstHeight = copy.destinationHeight;
  parameters.WidthInBytes = copy.width;
  parameters.Height = copy.rows;
  parameters.Depth = copy.planes;
  return parameters;
}

// One after the other: a single copy fills a link, and branches of a graph take hardware queues in which kernels of other ranks stand.
CUresult addCopies(CUgraph body, const EngineCopies& copies) {
  CUgraphNodeParams node = {};
  node.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  CUresult result = driver().cuCtxGetCurrent(&node.memcpy.copyCtx);
  CUgraphNode last = nullptr;
  for (std::size_t i = 0; i < copies.copies.size() && result == CUDA_SUCCESS; i++) {
    node.memcpy.copyParams = parametersOf(copies.copies[i]);
    const CUgraphNode before = last;
    result = driver().cuGraphAddNode_v2(&last, body, &before, nullptr, before == nullptr ? 0 : 1, &node);
  }
  return result;
}

// The driver's results are the runtime's by number.
cudaError_t asRuntime(CUresult result) {
  return static_cast<cudaError_t>(result);
}

}  // namespace

Outcome<CopyGraph> CopyGraph::make(EngineCopies copies, const std::uint32_t* failed,
                                   std::shared_ptr<const GraphCondition> condition) {
  CopyGraph made;
  made.copies_ = std::move(copies);
  made.failed_ = failed;
  made.condition_ = std::move(condition);
  cudaGraph_t graph = nullptr;
  cudaError_t result = cudaGraphCreate(&graph, 0);
  if (result != cudaSuccess) return cudaFailure(result, kPrepareOp, "a graph of copies");
  CUgraph body = nullptr;
  CUgraphNode end = nullptr;
  result = asRuntime(made.condition_->add(graph, nullptr, nullptr, 0, failed, body, end));
  if (result == cudaSuccess) result = asRuntime(addCopies(body, made.copies_));
  cudaGraphExec_t executable = nullptr;
  if (result == cudaSuccess) result = cudaGraphInstantiate(&executable, graph, 0);
  (void)cudaGraphDestroy(graph);
  // To the device now rather than with the first launch, when a peer may spin.
  if (result == cudaSuccess) result = cudaGraphUpload(executable, cudaStreamLegacy);
  if (result == cudaSuccess) result = cudaStreamSynchronize(cudaStreamLegacy);
  if (executable != nullptr) made.graph_.reset(executable);
  if (result != cudaSuccess) return cudaFailure(result, kPrepareOp, "a graph of copies");
  return made;
}

cudaError_t CopyGraph::enqueue(cudaStream_t stream, bool captures) const {
  if (!captures) return cudaGraphLaunch(graph_.get(), stream);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph graph = nullptr, body = nullptr;
  const CUgraphNode* before = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  std::size_t count = 0;
  CUgraphNode end = nullptr;
  CUresult result = driver().cuStreamGetCaptureInfo_v3(stream, &status, nullptr, &graph, &before, &edges, &count);
  if (result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_ACTIVE) result = CUDA_ERROR_ILLEGAL_STATE;
  if (result == CUDA_SUCCESS) result = condition_->add(graph, before, edges, count, failed_, body, end);
  if (result == CUDA_SUCCESS) result = addCopies(body, copies_);
  if (result == CUDA_SUCCESS) {
    result =
        driver().cuStreamUpdateCaptureDependencies_v2(stream, &end, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
  }
  return asRuntime(result);
}

}  // namespace nccl_ext
