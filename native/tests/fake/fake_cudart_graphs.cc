// SPDX-License-Identifier: Apache-2.0
// The fake CUDA runtime's graphs: what a capturing stream was given, run by the stream that launches it.
#include <utility>

#include "tests/fake/fake_cudart_parts.hpp"

using nccl_ext::fake::launch;
using nccl_ext::fake::live;
using nccl_ext::fake::Work;

struct CUgraphExec_st {
  std::vector<Work> work;
};

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const std::lock_guard<std::mutex> lock(stream->mutex);
  stream->recording = new CUgraph_st();
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard<std::mutex> lock(stream->mutex);
  *status = stream->recording == nullptr ? cudaStreamCaptureStatusNone : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard<std::mutex> lock(stream->mutex);
  *graph = std::exchange(stream->recording, nullptr);
  return cudaSuccess;
}
cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  *graph = new CUgraph_st();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  live++;
  *executable = new CUgraphExec_st{graph->work};
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return launch(stream, [work = executable->work] {
    for (const Work& one : work) one();
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  live--;
  return cudaSuccess;
}

}  // extern "C"
