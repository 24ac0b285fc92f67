// SPDX-License-Identifier: Apache-2.0
// The driver's graphs, part of the fake libcuda.so.1: nodes that ask, choose and copy.
#include <cuda.h>

#include <cstdint>
#include <cstring>

#include "tests/fake/fake_graph.hpp"
#include "tests/fake/fake_stream.hpp"

namespace {

// Of every graph, so that a kernel finds the one that its handle means.
using Condition = std::shared_ptr<unsigned>;

Condition conditionOf(const CUgraph_st& graph, std::uint64_t handle) {
  for (const Condition& one : graph.conditions) {
    if (reinterpret_cast<std::uint64_t>(one.get()) == handle) return one;
  }
  return nullptr;
}

// nccl_ext_ask(u64 handle, u32 *word) of runtime/graph_condition.cc is the one kernel that graphs hold here.
CUresult addAsk(CUgraph_st& graph, const CUDA_KERNEL_NODE_PARAMS_v3& kernel) {
  const auto* word = *static_cast<const std::uint32_t* const*>(kernel.kernelParams[1]);
  const Condition condition = conditionOf(graph, *static_cast<const std::uint64_t*>(kernel.kernelParams[0]));
  if (!condition) return CUDA_ERROR_INVALID_VALUE;
  graph.work.push_back([condition, word] { *condition = *word == 0 ? 1 : 0; });
  return CUDA_SUCCESS;
}

CUresult addChoice(CUgraph_st& graph, CUDA_CONDITIONAL_NODE_PARAMS& choice) {
  const Condition condition = conditionOf(graph, choice.handle);
  if (!condition || choice.type != CU_GRAPH_COND_TYPE_IF || choice.size != 1) return CUDA_ERROR_INVALID_VALUE;
  const auto body = std::make_shared<CUgraph_st>();
  graph.bodies.push_back(body);
  static thread_local CUgraph out;
  out = body.get();
  choice.phGraph_out = &out;
  graph.work.push_back([condition, body] {
    if (*condition == 0) return;
    for (const auto& work : body->work) work();
  });
  return CUDA_SUCCESS;
}

CUresult addCopy(CUgraph_st& graph, const CUDA_MEMCPY3D& copy) {
  const bool rowsOverlap = copy.Height > 1 && (copy.srcPitch < copy.WidthInBytes || copy.dstPitch < copy.WidthInBytes);
  const bool planesOverlap = copy.Depth > 1 && (copy.srcHeight < copy.Height || copy.dstHeight < copy.Height);
  if (copy.WidthInBytes == 0 || rowsOverlap || planesOverlap || copy.srcMemoryType != CU_MEMORYTYPE_UNIFIED ||
      copy.dstMemoryType != CU_MEMORYTYPE_UNIFIED)
    return CUDA_ERROR_INVALID_VALUE;
  graph.work.push_back([copy] {
    for (std::size_t plane = 0; plane < copy.Depth; plane++) {
      for (std::size_t row = 0; row < copy.Height; row++) {
        std::memcpy(reinterpret_cast<void*>(copy.dstDevice + (plane * copy.dstHeight + row) * copy.dstPitch),
                    reinterpret_cast<const void*>(copy.srcDevice + (plane * copy.srcHeight + row) * copy.srcPitch),
                    copy.WidthInBytes);
      }
    }
  });
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* handle, CUgraph graph, CUcontext, unsigned,
                                        unsigned) {
  graph->conditions.push_back(std::make_shared<unsigned>(0));
  *handle = reinterpret_cast<std::uint64_t>(graph->conditions.back().get());
  return CUDA_SUCCESS;
}

CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode*, const CUgraphEdgeData*, std::size_t,
                           CUgraphNodeParams* parameters) {
  CUresult result = CUDA_ERROR_NOT_SUPPORTED;
  if (parameters->type == CU_GRAPH_NODE_TYPE_KERNEL) result = addAsk(*graph, parameters->kernel);
  if (parameters->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) result = addChoice(*graph, parameters->conditional);
  if (parameters->type == CU_GRAPH_NODE_TYPE_MEMCPY) result = addCopy(*graph, parameters->memcpy.copyParams);
  // Any number but 0: nobody looks behind it.
  *node = reinterpret_cast<CUgraphNode>(graph->work.size());
  return result;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t*, CUgraph* graph,
                                   const CUgraphNode** before, const CUgraphEdgeData** edges, std::size_t* count) {
  *graph = reinterpret_cast<const nccl_ext::fake::StreamFront*>(stream)->recording;
  *status = *graph == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  *before = nullptr;
  *edges = nullptr;
  *count = 0;
  return CUDA_SUCCESS;
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode*, const CUgraphEdgeData*, std::size_t count,
                                              unsigned flags) {
  const bool records = reinterpret_cast<const nccl_ext::fake::StreamFront*>(stream)->recording != nullptr;
  const bool sets = count == 1 && flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES;
  return records && sets ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // extern "C"
