// SPDX-License-Identifier: Apache-2.0
// The fake CUDA runtime's streams: each a thread that runs what was put on it, in order.
#include <cstring>

#include "runtime/wait.hpp"
#include "tests/fake/fake_cudart_parts.hpp"
#include "tests/fake/fake_driver.hpp"

using nccl_ext::fake::launch;
using nccl_ext::fake::live;
using nccl_ext::fake::Work;

namespace {

std::atomic<int> launchesBeforeFailure{-1};  // below 0: none fails

void runStream(CUstream_st* stream) {
  std::unique_lock<std::mutex> lock(stream->mutex);
  for (;;) {
    nccl_ext::waitUntilTrue(stream->wake, lock, [&] { return stream->ending || !stream->queue.empty(); });
    if (stream->queue.empty()) return;
    const Work work = std::move(stream->queue.front());
    stream->queue.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

}  // namespace

void nccl_ext::fake::failLaunchAfter(int launches) {
  launchesBeforeFailure = launches;
}

cudaError_t nccl_ext::fake::launch(cudaStream_t stream, Work work) {
  if (launchesBeforeFailure >= 0 && launchesBeforeFailure-- == 0) return answer(cudaErrorLaunchOutOfResources);
  const std::lock_guard<std::mutex> lock(stream->mutex);
  if (stream->recording != nullptr)
    stream->recording->work.push_back(std::move(work));
  else
    stream->queue.push_back(std::move(work));
  stream->wake.notify_one();
  return cudaSuccess;
}

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  live++;
  *stream = new CUstream_st();
  (*stream)->launch = launch;
  (*stream)->thread = std::thread(runStream, *stream);
  nccl_ext::fake::driver().adoptStream(*stream, nccl_ext::fake::driver().current(), false);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  nccl_ext::fake::driver().forgetStream(stream);
  {
    const std::lock_guard<std::mutex> lock(stream->mutex);
    stream->ending = true;
  }
  stream->wake.notify_one();
  stream->thread.join();
  delete stream;
  live--;
  return cudaSuccess;
}
// Only ever called for the legacy stream.
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  nccl_ext::fake::finishCopies();
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  return launch(stream, [=] { std::memcpy(to, from, bytes); });
}
cudaError_t cudaMemsetAsync(void* address, int value, std::size_t bytes, cudaStream_t stream) {
  return launch(stream, [=] { std::memset(address, value, bytes); });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return launch(stream, [=] { function(data); });
}

}  // extern "C"
