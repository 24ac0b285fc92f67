// SPDX-License-Identifier: Apache-2.0
// The fake CUDA runtime's events: counters of records, which streams reach and wait for.
#include <chrono>

#include "runtime/wait.hpp"
#include "tests/fake/fake_cudart_parts.hpp"

using nccl_ext::fake::answer;
using nccl_ext::fake::launch;
using nccl_ext::fake::live;

struct CUevent_st {
  std::mutex mutex;
  std::condition_variable reachedOne;
  unsigned long recorded = 0;
  unsigned long reached = 0;
  std::chrono::steady_clock::time_point at;
};

namespace {

void reach(CUevent_st* event, unsigned long number) {
  const std::lock_guard<std::mutex> lock(event->mutex);
  event->reached = number;
  event->at = std::chrono::steady_clock::now();
  event->reachedOne.notify_all();
}

unsigned long countRecord(CUevent_st* event) {
  const std::lock_guard<std::mutex> lock(event->mutex);
  return ++event->recorded;
}

void await(CUevent_st* event, unsigned long number) {
  std::unique_lock<std::mutex> lock(event->mutex);
  nccl_ext::waitUntilTrue(event->reachedOne, lock, [&] { return event->reached >= number; });
}

unsigned long recordsOf(CUevent_st* event) {
  const std::lock_guard<std::mutex> lock(event->mutex);
  return event->recorded;
}

}  // namespace

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  live++;
  *event = new CUevent_st();
  return cudaSuccess;
}
// A real event outlives its handle while work refers to it; here it is leaked to its stream's last use by waiting.
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  await(event, recordsOf(event));
  delete event;
  live--;
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags == cudaEventRecordExternal) return launch(stream, [=] { reach(event, countRecord(event)); });
  const unsigned long number = countRecord(event);
  return launch(stream, [=] { reach(event, number); });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  if (flags == cudaEventWaitExternal) return launch(stream, [=] { await(event, recordsOf(event)); });
  const unsigned long number = recordsOf(event);
  return launch(stream, [=] { await(event, number); });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard<std::mutex> lock(event->mutex);
  return event->reached >= event->recorded ? cudaSuccess : answer(cudaErrorNotReady);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  *milliseconds = std::chrono::duration<float, std::milli>(end->at - start->at).count();
  return cudaSuccess;
}

}  // extern "C"
