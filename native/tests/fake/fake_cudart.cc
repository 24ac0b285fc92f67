// SPDX-License-Identifier: Apache-2.0
#include "tests/fake/fake_cudart.hpp"

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/wait.hpp"
#include "tests/fake/fake_driver.hpp"
#include "tests/fake/fake_stream.hpp"

using Work = std::function<void()>;

struct CUstream_st : nccl_ext::fake::StreamFront {
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Work> queue;
  std::vector<Work>* recording = nullptr;
  bool ending = false;
  std::thread thread;
};

struct CUevent_st {
  std::mutex mutex;
  std::condition_variable reachedOne;
  unsigned long recorded = 0;
  unsigned long reached = 0;
  std::chrono::steady_clock::time_point at;
};

struct CUgraph_st {
  std::vector<Work> work;
};

struct CUgraphExec_st {
  std::vector<Work> work;
};

namespace {

constexpr std::size_t kDeviceBytes = std::size_t{1} << 40;
std::atomic<int> live{0};
std::atomic<int> pinnedSoFar{0};
std::mutex pinnedMutex;
std::map<const char*, std::size_t> pinned;  // by first byte
thread_local cudaError_t lastError = cudaSuccess;

cudaError_t answer(cudaError_t result) {
  if (result != cudaSuccess) lastError = result;
  return result;
}

int deviceCount() {
  const char* wanted = std::getenv("FAKE_CUDA_DEVICES");
  return wanted == nullptr ? 1 : std::atoi(wanted);
}

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

void* allocate(std::size_t bytes) {
  live++;
  return std::aligned_alloc(256, (bytes + 255) / 256 * 256);
}

void release(void* address) {
  if (address != nullptr) live--;
  std::free(address);
}

}  // namespace

namespace nccl_ext::fake {

cudaError_t launch(cudaStream_t stream, Work work) {
  const std::lock_guard<std::mutex> lock(stream->mutex);
  if (stream->recording != nullptr)
    stream->recording->push_back(std::move(work));
  else
    stream->queue.push_back(std::move(work));
  stream->wake.notify_one();
  return cudaSuccess;
}

int liveObjects() {
  return live;
}

int pinnedAllocations() {
  return pinnedSoFar;
}

}  // namespace nccl_ext::fake

using nccl_ext::fake::launch;

extern "C" {

cudaError_t cudaGetLastError() {
  return std::exchange(lastError, cudaSuccess);
}
const char* cudaGetErrorName(cudaError_t) {
  return "fakeError";
}
const char* cudaGetErrorString(cudaError_t) {
  return "fake error";
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = deviceCount();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= deviceCount()) return answer(cudaErrorInvalidDevice);
  nccl_ext::fake::driver().setCurrent(device);
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = nccl_ext::fake::driver().current();
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "fake GPU");
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  if (attribute != cudaDevAttrMaxSharedMemoryPerBlockOptin) return answer(cudaErrorInvalidValue);
  *value = 227 << 10;
  return cudaSuccess;
}
// As the fake driver's memory: GPUs 0 and 1 reach each other, others nobody.
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  const int device = nccl_ext::fake::driver().current();
  if (peer > 1 || device > 1 || peer == device) return answer(cudaErrorPeerAccessUnsupported);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = kDeviceBytes;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  if (bytes > kDeviceBytes) return answer(cudaErrorMemoryAllocation);
  *address = allocate(bytes);
  const nccl_ext::fake::Driver& driver = nccl_ext::fake::driver();
  driver.adopt(nccl_ext::fake::Memory::kMalloc, driver.current(), *address, bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void* address) {
  if (address != nullptr) nccl_ext::fake::driver().forget(address);
  release(address);
  return cudaSuccess;
}
// Pages of its own, as the driver's: freed ones must not stay with the heap of some thread.
cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return answer(cudaErrorMemoryAllocation);
  *address = pages;
  live++;
  pinnedSoFar++;
  const std::lock_guard<std::mutex> lock(pinnedMutex);
  pinned[static_cast<const char*>(*address)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* address) {
  const std::lock_guard<std::mutex> lock(pinnedMutex);
  const auto found = pinned.find(static_cast<const char*>(address));
  if (found == pinned.end()) return answer(cudaErrorInvalidValue);
  munmap(address, found->second);
  live--;
  pinned.erase(found);
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  const std::lock_guard<std::mutex> lock(pinnedMutex);
  const auto* byte = static_cast<const char*>(address);
  const auto after = pinned.upper_bound(byte);
  const bool inside = after != pinned.begin() && byte < std::prev(after)->first + std::prev(after)->second;
  attributes->type = inside ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* address, int value, std::size_t bytes) {
  std::memset(address, value, bytes);
  return cudaSuccess;
}

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
// Only ever called for the legacy stream, on which nothing is pending here.
cudaError_t cudaStreamSynchronize(cudaStream_t) {
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

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const std::lock_guard<std::mutex> lock(stream->mutex);
  stream->recording = new std::vector<Work>();
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard<std::mutex> lock(stream->mutex);
  *status = stream->recording == nullptr ? cudaStreamCaptureStatusNone : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard<std::mutex> lock(stream->mutex);
  *graph = new CUgraph_st{std::move(*stream->recording)};
  delete std::exchange(stream->recording, nullptr);
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
