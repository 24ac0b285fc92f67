// SPDX-License-Identifier: Apache-2.0
#include "runtime/pinned.hpp"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_set>

#include "runtime/cuda_error.hpp"

namespace nccl_ext {
namespace {

constexpr std::size_t kBoxesPerPage = 256;

// The words of all ranks of the process.
struct LiveWords {
  std::mutex mutex;
  std::unordered_set<RankWords*> all;
};

// Made by the first rank, when CUDA has started, so that it runs before CUDA ends; never destroyed, because ranks may
// outlive static objects.
LiveWords& liveWords() {
  static LiveWords& live = *[] {
    auto* made = new LiveWords();
    (void)std::atexit(PinnedCells::stopAll);
    return made;
  }();
  return live;
}

}  // namespace

void PinnedDelete::operator()(void* address) const {
  (void)cudaFreeHost(address);
}

Outcome<PinnedMemory> allocatePinned(std::size_t bytes) {
  void* address = nullptr;
  const cudaError_t result = cudaHostAlloc(&address, bytes, cudaHostAllocPortable | cudaHostAllocMapped);
  if (result != cudaSuccess)
    return cudaFailure(result, "allocate", std::to_string(bytes) + " bytes of pinned host memory");
  std::memset(address, 0, bytes);
  return PinnedMemory(address);
}

Outcome<std::unique_ptr<PinnedCells>> PinnedCells::create() {
  std::unique_ptr<PinnedCells> cells(new PinnedCells());
  const Status added = cells->addPage();
  if (!added) return added.error();
  // The first box's place holds the words: both are one cache line.
  static_assert(sizeof(RankWords) == sizeof(DeviceStatus));
  cells->words_ = new (cells->free_.back()) RankWords();
  cells->free_.pop_back();
  LiveWords& live = liveWords();
  const std::lock_guard<std::mutex> lock(live.mutex);
  live.all.insert(cells->words_);
  return cells;
}

PinnedCells::~PinnedCells() {
  LiveWords& live = liveWords();
  const std::lock_guard<std::mutex> lock(live.mutex);
  live.all.erase(words_);
}

void PinnedCells::stopAll() {
  LiveWords& live = liveWords();
  const std::lock_guard<std::mutex> lock(live.mutex);
  for (RankWords* words : live.all) {
    if (peek<kSystem>(words->stop) == 0) publish<kSystem>(words->stop, static_cast<std::int32_t>(ErrorCode::kAborted));
  }
}

DeviceStatus* PinnedCells::take() {
  if (free_.empty() && !addPage()) return nullptr;
  DeviceStatus* box = free_.back();
  free_.pop_back();
  return new (box) DeviceStatus();
}

void PinnedCells::give(DeviceStatus* box) {
  free_.push_back(box);
}

Status PinnedCells::addPage() {
  Outcome<PinnedMemory> page = allocatePinned(kBoxesPerPage * sizeof(DeviceStatus));
  if (!page) return page.error();
  auto* boxes = static_cast<DeviceStatus*>(page.value().get());
  for (std::size_t i = 0; i < kBoxesPerPage; i++) free_.push_back(boxes + i);
  pages_.push_back(std::move(page.value()));
  return ok();
}

}  // namespace nccl_ext
