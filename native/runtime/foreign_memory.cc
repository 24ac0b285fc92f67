// SPDX-License-Identifier: Apache-2.0
// Memory that this runtime did not allocate, and how its own goes to other processes.
#include "runtime/memory_facts.hpp"
#include "runtime/runtime.hpp"

namespace nccl_ext {
namespace {

ErrorRecord withRank(ErrorRecord error, const RankState& rank) {
  error.rank = rank.rank;
  return error;
}

}  // namespace

Outcome<Handle> Runtime::wrapMemory(Handle handle, std::uint64_t address, std::int64_t bytes) {
  constexpr const char* kOp = "wrapMemory";
  Outcome<Rank> found = rankOf(handle, kOp);
  if (!found) return found.error();
  const Rank& rank = found.value();
  if (address == 0)
    return fail(ErrorCode::kInvalidArgument, kOp, "address must be a bigint above 0, and is null")
        .ofRank(rank->rank)
        .helped("Pass the device address of memory that lives; a tensor without elements has none.");
  if (bytes < 0)
    return fail(ErrorCode::kInvalidArgument, kOp, "bytes must be an integer from 0 to 2^53 - 1").ofRank(rank->rank);
  const DriverScope scope(rank->device);
  const auto size = static_cast<std::uint64_t>(bytes);
  const Outcome<MemoryFacts> facts = memoryFacts(address, size, kOp);
  if (!facts) return withRank(facts.error(), *rank);
  if (facts.value().device != rank->device) {
    return fail(ErrorCode::kInvalidArgument, kOp,
                addressText(address) + " is memory of GPU " + std::to_string(facts.value().device) + "; rank " +
                    std::to_string(rank->rank) + " is on GPU " + std::to_string(rank->device))
        .ofRank(rank->rank)
        .expecting(static_cast<std::int64_t>(rank->device), static_cast<std::int64_t>(facts.value().device))
        .helped("Wrap it on a rank of that GPU, or copy it to this one.");
  }
  if (facts.value().reach < size) {
    return fail(ErrorCode::kOutOfBounds, kOp,
                std::to_string(bytes) + " bytes from " + addressText(address) +
                    " on leave their allocation, which ends " + "after " + std::to_string(facts.value().reach))
        .ofRank(rank->rank)
        .expecting(static_cast<std::int64_t>(facts.value().reach), bytes)
        .helped("Pass the bytes of one allocation: elements times their size.");
  }
  return addBuffer(rank, DeviceMemory::foreign(MemoryOrigin::kWrapped, rank->device, reinterpret_cast<void*>(address),
                                               static_cast<std::size_t>(bytes), nullptr));
}

Outcome<MemoryShare> Runtime::exportMemory(Handle handle) {
  constexpr const char* kOp = "exportMemory";
  Outcome<Buffer> found = handles_.find<BufferState>(handle, kOp);
  if (!found) return found.error();
  BufferState& buffer = *found.value();
  if (!buffer.exported) {
    Outcome<Exported> exported = exportShare(buffer.memory, kOp);
    if (!exported) return withRank(exported.error(), *buffer.owner);
    buffer.exported.emplace(std::move(exported.value()));
  }
  return buffer.exported->share;
}

Outcome<Handle> Runtime::importMemory(Handle handle, const MemoryShare& share) {
  constexpr const char* kOp = "importMemory";
  Outcome<Rank> found = rankOf(handle, kOp);
  if (!found) return found.error();
  const Rank& rank = found.value();
  Outcome<DeviceMemory> memory = openShare(share, rank->device, kOp);
  if (!memory) return withRank(memory.error(), *rank);
  return addBuffer(rank, std::move(memory.value()));
}

}  // namespace nccl_ext
