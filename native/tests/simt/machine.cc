// SPDX-License-Identifier: Apache-2.0
#include "tests/simt/machine.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tests/simt/bulk_engine.hpp"
#include "tests/simt/words.hpp"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace nccl_ext::simt {
namespace {

constexpr std::uint64_t kMostThreads = 24'576;  // at once: each has a stack
constexpr std::uint64_t kTurnNs = 100;

// Ends the thread that failed.
struct Failed {};

}  // namespace

std::string placeOf(const Thread& thread) {
  std::string text = "CTA " + std::to_string(thread.cta->index.x) + ", thread " + std::to_string(thread.index.x);
  if (thread.meeting.what == nullptr) return text;
  const std::string file = thread.meeting.site.file_name();
  return text + ", at " + thread.meeting.what + " (" + file.substr(file.rfind('/') + 1) + ":" +
         std::to_string(thread.meeting.site.line()) + ")";
}

Machine& machine() {
  static Machine one;
  return one;
}

void Machine::reset(std::uint64_t seed, std::uint64_t patience) {
  patience_ = patience;
  random_.seed(seed);
  streams_.clear();
  for (Resident& resident : resident_) {
    for (Warp& warp : resident.cta->warps) {
      for (auto& lane : warp.lanes) keepFiber(std::move(lane->fiber));
    }
  }
  resident_.clear();
  residentThreads_ = 0;
  now_ = 1'000'000 + pick(1'000'000'000);
  still_ = 0;
  constexpr std::uint64_t kEagerness[] = {0, 1, 4, 16};
  eagerness_ = kEagerness[pick(4)];
  problem_.clear();
}

void Machine::enqueue(const Launch& launch, std::function<void()> kernel) {
  streams_[launch.stream].push_back({launch, std::move(kernel)});
}

bool Machine::idle() const {
  return std::all_of(streams_.begin(), streams_.end(), [](const auto& stream) { return stream.second.empty(); });
}

const std::string& Machine::run(std::uint64_t rounds) {
  for (; rounds > 0 && problem_.empty() && !idle(); rounds--) {
    if (round() || !problem_.empty()) continue;
    problem_ = "nothing can go on: " + blockedThreads();
  }
  return problem_;
}

bool Machine::startCtas() {
  bool any = false;
  for (auto& [stream, grids] : streams_) {
    if (grids.empty()) continue;
    Grid& grid = grids.front();
    const std::uint64_t threads = std::uint64_t{grid.launch.block.x} * grid.launch.block.y * grid.launch.block.z;
    while (grid.started < grid.ctas() && (residentThreads_ == 0 || residentThreads_ + threads <= kMostThreads)) {
      startCta(grid);
      any = true;
      if (pick(4) == 0) break;
    }
  }
  return any;
}

void Machine::startCta(Grid& grid) {
  auto cta = std::make_unique<Cta>();
  const dim3& counts = grid.launch.grid;
  const dim3& block = grid.launch.block;
  const auto number = static_cast<unsigned>(grid.started++);
  cta->index = {number % counts.x, number / counts.x % counts.y, number / counts.x / counts.y};
  cta->grid = counts;
  cta->block = block;
  cta->threads = block.x * block.y * block.z;
  cta->warps.resize((cta->threads + 31) / 32);
  if (grid.launch.sharedBytes > 0) cta->shared.variable(nullptr, grid.launch.sharedBytes, 1024);
  for (unsigned i = 0; i < cta->threads; i++) {
    Warp& warp = cta->warps[i / 32];
    auto thread = std::make_unique<Thread>();
    thread->cta = cta.get();
    thread->warp = &warp;
    thread->index = {i % block.x, i / block.x % block.y, i / block.x / block.y};
    thread->lane = i % 32;
    thread->fiber = takeFiber();
    thread->fiber->start([&grid] {
      try {
        grid.kernel();
      } catch (const Failed&) {
      }
    });
    warp.lanes.push_back(std::move(thread));
    warp.ready++;
    warp.present |= std::uint32_t{1} << (i % 32);
  }
  for (Warp& warp : cta->warps) warp.elected = static_cast<std::uint32_t>(pick(warp.lanes.size()));
  residentThreads_ += cta->threads;
  resident_.push_back({std::move(cta), &grid});
}

// Whether anything happened.
bool Machine::round() {
  bool any = startCtas();
  const std::size_t count = resident_.size();
  for (std::size_t i = 0, first = count == 0 ? 0 : pick(count); i < count && problem_.empty(); i++) {
    Cta& cta = *resident_[(first + i) % count].cta;
    const std::size_t warps = cta.warps.size();
    for (std::size_t w = 0, begin = pick(warps); w < warps && problem_.empty(); w++) {
      Warp& warp = cta.warps[(begin + w) % warps];
      if (warp.ready == 0) continue;
      any = true;
      if (pick(8) != 0) runWarp(warp);
    }
    if (eagerness_ > 0) copySome(cta);
  }
  return retire() || any;
}

// Lanes in order, in reverse, or one alone: what no collective orders may come in any order.
void Machine::runWarp(Warp& warp) {
  const std::size_t lanes = warp.lanes.size();
  const std::uint64_t way = pick(16);
  if (way == 0) {
    Thread& thread = *warp.lanes[pick(lanes)];
    if (thread.runs()) resume(thread);
    return;
  }
  const std::size_t first = pick(lanes);
  for (std::size_t i = 0; i < lanes && problem_.empty(); i++) {
    Thread& thread = *warp.lanes[(way % 2 == 0 ? first + i : first + lanes - i) % lanes];
    if (thread.runs()) resume(thread);
  }
}

void Machine::resume(Thread& thread) {
  now_ += kTurnNs;
  if (++still_ > patience_) {
    problem_ = "nothing moves: " + blockedThreads();
    return;
  }
  current_ = &thread;
  threadIdx = thread.index;
  blockIdx = thread.cta->index;
  blockDim = thread.cta->block;
  gridDim = thread.cta->grid;
  thread.fiber->resume();
  current_ = nullptr;
  if (!thread.fiber->ended() || !problem_.empty()) return;
  moved();
  thread.ended = true;
  thread.warp->ready--;
  thread.warp->present &= ~(std::uint32_t{1} << thread.lane);
  thread.cta->ended++;
  std::string text = unfinished(thread);
  if (thread.cta->waiting > 0) text = "the thread has ended, and others wait at the CTA's barrier";
  for (const OpenMeeting& open : thread.warp->open) {
    if ((open.meeting.mask >> thread.lane & 1) != 0)
      text = std::string("the thread has ended, and lanes wait for it at ") + open.meeting.what + " of line " +
             std::to_string(open.meeting.site.line());
  }
  if (!text.empty()) problem_ = placeOf(thread) + ": " + text;
}

bool Machine::retire() {
  bool any = false;
  for (std::size_t i = 0; i < resident_.size() && problem_.empty();) {
    Resident& resident = resident_[i];
    if (resident.cta->ended < resident.cta->threads) {
      i++;
      continue;
    }
    any = true;
    for (const auto& [address, barrier] : resident.cta->mbarriers) {
      if (!barrier.loads.empty())
        problem_ = "CTA " + std::to_string(resident.cta->index.x) + " ended before its bulk loads";
    }
    for (Warp& warp : resident.cta->warps) {
      for (auto& lane : warp.lanes) keepFiber(std::move(lane->fiber));
    }
    residentThreads_ -= resident.cta->threads;
    Grid& grid = *resident.grid;
    std::swap(resident, resident_.back());
    resident_.pop_back();
    if (++grid.ended == grid.ctas()) streams_[grid.launch.stream].pop_front();
  }
  return any;
}

void Machine::yield() {
  if (current_ != nullptr) Fiber::pause();
}

void Machine::fail(const std::string& text) {
  problem_ = placeOf(*current_) + ": " + text;
  throw Failed();
}

void Machine::wake(Thread& thread) {
  thread.meeting.what = nullptr;
  thread.warp->ready++;
}

void Machine::block(const Meeting& meeting) {
  current_->meeting = meeting;
  current_->warp->ready--;
}

std::string Machine::blockedThreads() const {
  std::string text;
  std::size_t listed = 0;
  for (const Resident& resident : resident_) {
    for (const Warp& warp : resident.cta->warps) {
      for (const auto& lane : warp.lanes) {
        if (lane->ended) continue;
        if (++listed > 8) return text + " ...";
        text += (listed > 1 ? "; " : "") + placeOf(*lane);
      }
    }
  }
  return text;
}

}  // namespace nccl_ext::simt
