// SPDX-License-Identifier: Apache-2.0
#include "runtime/graph_condition.hpp"

#include <cstring>

namespace nccl_ext {
namespace {

constexpr int kOldestDriver = 12'040;
constexpr const char* kAskName = "nccl_ext_ask";

// if_zero(handle, word): the condition is whether the word is 0. As PTX, because drivers before CUDA 12.4 would refuse
// a whole module that calls cudaGraphSetConditional, which they alone can resolve.
constexpr const char* kAskPtx = R"(.version 8.3
.target sm_80
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry nccl_ext_ask(.param .u64 handle_param, .param .u64 word_param)
{
  .reg .pred %isZero;
  .reg .b32 %word, %value;
  .reg .b64 %handle, %address;
  ld.param.u64 %handle, [handle_param];
  ld.param.u64 %address, [word_param];
  cvta.to.global.u64 %address, %address;
  ld.global.u32 %word, [%address];
  setp.eq.u32 %isZero, %word, 0;
  selp.u32 %value, 1, 0, %isZero;
  {
    .param .b64 handle;
    .param .b32 value;
    st.param.b64 [handle], %handle;
    st.param.b32 [value], %value;
    call.uni cudaGraphSetConditional, (handle, value);
  }
  ret;
}
)";

}  // namespace

GraphCondition GraphCondition::load(int device) {
  GraphCondition condition;
  const DriverApi& api = driver();
  const bool has = api.cuGraphConditionalHandleCreate != nullptr && api.cuGraphAddNode_v2 != nullptr &&
                   api.cuStreamGetCaptureInfo_v3 != nullptr && api.cuStreamUpdateCaptureDependencies_v2 != nullptr;
  int version = 0;
  if (!has || api.cuDriverGetVersion(&version) != CUDA_SUCCESS || version < kOldestDriver) {
    condition.why_ = "the driver is older than CUDA 12.4";
    return condition;
  }
  const DriverScope scope(device);
  CUmodule module = nullptr;
  CUresult result = api.cuModuleLoadDataEx(&module, kAskPtx, 0, nullptr, nullptr);
  if (result == CUDA_SUCCESS) {
    condition.module_ = LoadedModule(device, module);
    result = api.cuModuleGetFunction(&condition.ask_, module, kAskName);
  }
  // Now rather than at the first launch, where a peer may spin.
  if (result == CUDA_SUCCESS && api.cuFuncLoad != nullptr) result = api.cuFuncLoad(condition.ask_);
  if (result == CUDA_SUCCESS) return condition;
  condition.ask_ = nullptr;
  condition.why_ = "the driver refuses the kernel of conditional graphs: " + driverText(result);
  return condition;
}

CUresult GraphCondition::add(CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData* edges, std::size_t count,
                             const std::uint32_t* word, CUgraph& body, CUgraphNode& end) const {
  const DriverApi& api = driver();
  CUcontext context = nullptr;
  CUgraphConditionalHandle handle = 0;
  CUresult result = api.cuCtxGetCurrent(&context);
  if (result == CUDA_SUCCESS)
    result = api.cuGraphConditionalHandleCreate(&handle, graph, context, 0, CU_GRAPH_COND_ASSIGN_DEFAULT);
  if (result != CUDA_SUCCESS) return result;
  auto address = reinterpret_cast<std::uint64_t>(word);
  void* parameters[] = {&handle, &address};
  CUgraphNodeParams ask = {};
  ask.type = CU_GRAPH_NODE_TYPE_KERNEL;
  ask.kernel.func = ask_;
  ask.kernel.gridDimX = ask.kernel.gridDimY = ask.kernel.gridDimZ = 1;
  ask.kernel.blockDimX = ask.kernel.blockDimY = ask.kernel.blockDimZ = 1;
  ask.kernel.kernelParams = parameters;
  CUgraphNode asked = nullptr;
  result = api.cuGraphAddNode_v2(&asked, graph, after, edges, count, &ask);
  if (result != CUDA_SUCCESS) return result;
  CUgraphNodeParams choice = {};
  choice.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  choice.conditional.handle = handle;
  choice.conditional.type = CU_GRAPH_COND_TYPE_IF;
  choice.conditional.size = 1;
  choice.conditional.ctx = context;
  result = api.cuGraphAddNode_v2(&end, graph, &asked, nullptr, 1, &choice);
  if (result == CUDA_SUCCESS) body = choice.conditional.phGraph_out[0];
  return result;
}

}  // namespace nccl_ext
