// SPDX-License-Identifier: Apache-2.0
#include "tests/simt/bulk_engine.hpp"

#include <cstring>
#include <iterator>
#include <utility>

#include "tests/simt/machine.hpp"

namespace nccl_ext::simt {
namespace {

constexpr std::int64_t kMostBytes = (1 << 20) - 1;  // that an mbarrier counts

Cta& cta() {
  return *machine().current()->cta;
}

Mbarrier& barrierAt(std::uint32_t address) {
  const auto found = cta().mbarriers.find(address);
  if (found == cta().mbarriers.end()) machine().fail("an mbarrier that nobody has initialised");
  return found->second;
}

void endPhase(Mbarrier& barrier) {
  if (!barrier.arrived || barrier.bytes != 0) return;
  barrier.arrived = false;
  barrier.phase++;
}

void check(std::uint64_t global, std::uint32_t shared, std::uint32_t bytes) {
  if (global % 16 != 0) machine().fail("a bulk copy from or to global memory at no multiple of 16");
  if (shared % 16 != 0) machine().fail("a bulk copy from or to shared memory at no multiple of 16");
  if (bytes % 16 != 0 || bytes == 0) machine().fail("a bulk copy of " + std::to_string(bytes) + " bytes");
}

void make(Cta& cta, Mbarrier& barrier, std::size_t number) {
  std::swap(barrier.loads[number], barrier.loads.back());
  const BulkLoad load = std::move(barrier.loads.back());
  barrier.loads.pop_back();
  const void* from = load.early.empty() ? reinterpret_cast<const void*>(load.from) : load.early.data();
  std::memcpy(cta.shared.at(load.to, load.bytes), from, load.bytes);
  barrier.bytes -= load.bytes;
  endPhase(barrier);
  machine().moved();
}

void read(const Cta& cta, BulkStore& store) {
  if (store.isRead) return;
  std::memcpy(store.bytes.data(), cta.shared.at(store.from, store.bytes.size()), store.bytes.size());
  store.isRead = true;
}

void make(const Cta& cta, BulkStore& store) {
  if (store.isMade) return;
  read(cta, store);
  std::memcpy(reinterpret_cast<void*>(store.to), store.bytes.data(), store.bytes.size());
  store.isMade = true;
  machine().moved();
}

// A step of one store of the thread: read or made.
void step(const Cta& cta, std::vector<BulkStore>& stores) {
  if (stores.empty()) return;
  BulkStore& store = stores[machine().pick(stores.size())];
  if (!store.isRead)
    read(cta, store);
  else
    make(cta, store);
}

}  // namespace

void copySome(Cta& cta) {
  Machine& one = machine();
  if (cta.mbarriers.empty() || one.pick(16) >= one.eagerness()) return;
  auto barrier = std::next(cta.mbarriers.begin(), static_cast<std::ptrdiff_t>(one.pick(cta.mbarriers.size())));
  if (!barrier->second.loads.empty()) make(cta, barrier->second, one.pick(barrier->second.loads.size()));
  Warp& warp = cta.warps[one.pick(cta.warps.size())];
  Thread& thread = *warp.lanes[warp.elected];
  step(cta, thread.open);
  step(cta, thread.late);
  if (!thread.groups.empty()) step(cta, thread.groups[one.pick(thread.groups.size())]);
}

std::string unfinished(const Thread& thread) {
  for (const auto& group : thread.groups) {
    if (!group.empty()) return "the thread has ended and has not waited for its bulk stores";
  }
  if (!thread.late.empty()) return "the thread has ended and has waited for its bulk stores to be read, not made";
  return thread.open.empty() ? "" : "the thread has ended with bulk stores of an open group";
}

std::uint32_t sharedAddress(const void* place) {
  const std::uint32_t address = cta().shared.addressOf(place);
  if (address == 0) machine().fail("the shared address of something that is not in shared memory");
  return address;
}

void* sharedPlace(std::uint32_t address, std::size_t bytes) {
  void* place = cta().shared.at(address, bytes);
  if (place == nullptr) machine().fail("shared memory out of bounds, or across two variables");
  return place;
}

void initialise(std::uint32_t barrier) {
  if (barrier % 8 != 0) machine().fail("an mbarrier at no multiple of 8");
  if (!cta().mbarriers.emplace(barrier, Mbarrier()).second) machine().fail("an mbarrier that is initialised twice");
  fillWithGarbage(sharedPlace(barrier, 8), 8);
}

void expect(std::uint32_t address, std::uint32_t bytes) {
  Mbarrier& barrier = barrierAt(address);
  barrier.bytes += bytes;
  if (barrier.bytes > kMostBytes) machine().fail("more bytes than an mbarrier counts");
}

void arrive(std::uint32_t address) {
  Mbarrier& barrier = barrierAt(address);
  if (barrier.arrived) machine().fail("a second arrival in one phase of an mbarrier");
  barrier.arrived = true;
  endPhase(barrier);
  machine().moved();
}

bool tryWait(std::uint32_t address, std::uint32_t parity) {
  Mbarrier& barrier = barrierAt(address);
  const auto over = [&] { return barrier.phase % 2 != parity; };
  if (machine().pick(4) == 0) machine().yield();
  if (!over()) {
    for (std::uint64_t count = machine().pick(3); count > 0 && !barrier.loads.empty(); count--)
      make(cta(), barrier, machine().pick(barrier.loads.size()));
    machine().yield();
  }
  return over();
}

void load(std::uint32_t to, std::uint64_t from, std::uint32_t bytes, std::uint32_t address) {
  check(from, to, bytes);
  Mbarrier& barrier = barrierAt(address);
  void* place = sharedPlace(to, bytes);
  BulkLoad load{from, to, bytes, {}};
  const auto* source = reinterpret_cast<const std::byte*>(from);
  if (machine().pick(2) == 0) load.early.assign(source, source + bytes);
  fillWithGarbage(place, bytes);
  barrier.loads.push_back(std::move(load));
  if (machine().eagerness() == 16) make(cta(), barrier, barrier.loads.size() - 1);
}

void store(std::uint64_t to, std::uint32_t from, std::uint32_t bytes) {
  check(to, from, bytes);
  sharedPlace(from, bytes);
  machine().current()->open.push_back({to, from, std::vector<std::byte>(bytes)});
}

void commitGroup() {
  Thread& thread = *machine().current();
  thread.groups.push_back(std::move(thread.open));
  thread.open.clear();
}

void waitGroups(std::size_t pending, bool onlyRead) {
  Thread& thread = *machine().current();
  if (machine().pick(4) == 0) machine().yield();
  for (; thread.groups.size() > pending; thread.groups.pop_front()) {
    for (BulkStore& store : thread.groups.front()) {
      read(cta(), store);
      thread.late.push_back(std::move(store));
    }
  }
  if (onlyRead) return;
  for (BulkStore& store : thread.late) make(cta(), store);
  thread.late.clear();
}

}  // namespace nccl_ext::simt
