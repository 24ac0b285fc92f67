// SPDX-License-Identifier: Apache-2.0
#include "m2n/reach.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <mutex>

#include "m2n/prepare_part.hpp"
#include "runtime/cuda_error.hpp"
#include "runtime/memory_facts.hpp"

namespace nccl_ext {
namespace {

// Blocks that were lent, by address.
struct Lent {
  std::mutex mutex;
  std::map<std::uint64_t, std::weak_ptr<const DeviceMemory>> blocks;
};

Lent& lent() {
  static Lent all;
  return all;
}

std::shared_ptr<const void> lentAt(std::uint64_t address) {
  const std::lock_guard<std::mutex> lock(lent().mutex);
  const auto found = lent().blocks.find(address);
  return found == lent().blocks.end() ? nullptr : found->second.lock();
}

Failure unreachable(const Wish& wish, const std::string& why) {
  return fail(ErrorCode::kUnsupported, kPrepareOp,
              "rank " + std::to_string(wish.rank) + " cannot write to memory of rank " + std::to_string(wish.peer) +
                  ": " + why)
      .ofRank(wish.rank)
      .fromPeer(wish.peer);
}

// Virtual memory is mapped for each GPU by itself, allocation by allocation.
Status openMappings(const Wish& wish) {
  const std::uint64_t end = wish.memory.address + static_cast<std::uint64_t>(wish.memory.bytes);
  for (std::uint64_t at = wish.memory.address; at < end;) {
    const Outcome<MemoryFacts> facts = memoryFacts(at, 1, kPrepareOp);
    if (!facts) return facts.error();
    CUmemAccessDesc access = {};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = wish.device;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    const CUresult result = driver().cuMemSetAccess(facts.value().base, facts.value().bytes, &access, 1);
    if (result != CUDA_SUCCESS) {
      return unreachable(wish, "GPU " + std::to_string(wish.device) + " gets no access to memory of GPU " +
                                   std::to_string(wish.memory.device) + " (" + driverText(result) + ")")
          .helped("`nvidia-smi topo -p2p r` shows which GPUs reach each other.");
    }
    at = facts.value().base + facts.value().bytes;
  }
  return ok();
}

// Memory of another GPU of this process.
Status openPeer(const Wish& wish) {
  const DriverScope scope(wish.memory.device);
  const Outcome<MemoryFacts> facts = memoryFacts(wish.memory.address, 1, kPrepareOp);
  if (!facts) return facts.error();
  if (facts.value().virtualMemory) return openMappings(wish);
  const DeviceGuard guard(wish.device);
  const cudaError_t result = cudaDeviceEnablePeerAccess(wish.memory.device, 0);
  if (result == cudaErrorPeerAccessAlreadyEnabled) (void)cudaGetLastError();
  if (result == cudaSuccess || result == cudaErrorPeerAccessAlreadyEnabled) return ok();
  return unreachable(wish, ErrorRecord(cudaFailure(result, kPrepareOp, "peer access")).detail)
      .helped("`nvidia-smi topo -p2p r` shows which GPUs reach each other.");
}

std::string nameOf(const Wish& wish) {
  return wish.owner.process + " " + std::to_string(wish.memory.serial);
}

Outcome<Reached> open(const Wish& wish, Mappings& mappings) {
  if (wish.owner.host != whereabouts().host) {
    return unreachable(wish, "it is on another machine");
  }
  if (!wish.memory.share) return unreachable(wish, wish.memory.why);
  for (auto mapping = mappings.begin(); mapping != mappings.end();)
    mapping = mapping->second.expired() ? mappings.erase(mapping) : std::next(mapping);
  const std::string name = nameOf(wish);
  std::shared_ptr<const DeviceMemory> memory;
  if (const auto found = mappings.find(name); found != mappings.end()) memory = found->second.lock();
  if (!memory) {
    Outcome<DeviceMemory> opened = openShare(*wish.memory.share, wish.device, kPrepareOp);
    if (!opened) {
      ErrorRecord error = unreachable(wish, opened.error().detail);
      error.help = opened.error().help;
      return error;
    }
    memory = std::make_shared<const DeviceMemory>(std::move(opened.value()));
    mappings[name] = memory;
  }
  return Reached{reinterpret_cast<std::uint64_t>(memory->address()), memory};
}

}  // namespace

Outcome<Reached> reach(const Wish& wish, Mappings& mappings) {
  if (wish.memory.bytes == 0) return Reached{wish.memory.address, nullptr};
  if (wish.owner.process != whereabouts().process) return open(wish, mappings);
  if (wish.memory.device != wish.device) {
    if (Status opened = openPeer(wish); !opened) return opened.error();
  }
  return Reached{wish.memory.address, lentAt(wish.memory.address)};
}

void lend(const std::shared_ptr<const DeviceMemory>& block) {
  const std::lock_guard<std::mutex> lock(lent().mutex);
  auto& blocks = lent().blocks;
  for (auto known = blocks.begin(); known != blocks.end();)
    known = known->second.expired() ? blocks.erase(known) : std::next(known);
  blocks[reinterpret_cast<std::uint64_t>(block->address())] = block;
}

}  // namespace nccl_ext
