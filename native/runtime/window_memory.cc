// SPDX-License-Identifier: Apache-2.0
#include "runtime/window_memory.hpp"

#include "runtime/memory_facts.hpp"
#include "runtime/physical_memory.hpp"

namespace nccl_ext {
namespace {

ErrorRecord refused(ErrorCode code, int rank, const std::string& why, const char* op, const char* help) {
  return fail(code, op, "the buffer of rank " + std::to_string(rank) + " " + why).ofRank(rank).helped(help);
}

// NCCL shares it with the peers as exportMemory does, so that is tried.
std::optional<ErrorRecord> wrappedProblem(const DeviceMemory& memory, int rank, const char* op) {
  const DriverScope scope(memory.device());
  const auto address = reinterpret_cast<std::uint64_t>(memory.address());
  const Outcome<MemoryFacts> found = memoryFacts(address, 1, op);
  if (!found)
    return refused(found.error().code, rank, "is gone: " + found.error().detail, op, "Keep its memory alive.");
  const MemoryFacts& facts = found.value();
  if (!facts.virtualMemory)
    return refused(
        ErrorCode::kUnsupported, rank, "is wrapped memory of cudaMalloc or a pool of CUDA's", op,
        "Copy it to a symmetric buffer, or allocate it by ncclMemAlloc or cuMemCreate with POSIX file descriptors "
        "(PyTorch: expandable_segments:True).");
  if (memory.bytes() > facts.reach)
    return refused(ErrorCode::kUnsupported, rank, "is wrapped memory of several allocations", op,
                   "Register memory of one allocation, or copy it to a symmetric buffer.");
  const std::uint64_t offset = address - facts.base;
  if (offset % NCCL_WIN_REQUIRED_ALIGNMENT != 0)
    return refused(ErrorCode::kInvalidArgument, rank,
                   "starts " + std::to_string(offset) +
                       " bytes into its allocation; a window starts at a multiple of " +
                       std::to_string(NCCL_WIN_REQUIRED_ALIGNMENT),
                   op, "Wrap from such a place on, and pass byte offsets from there.");
  const Outcome<Descriptor> shareable = PhysicalMemory::at(address).describe(op);
  if (shareable) return std::nullopt;
  return refused(ErrorCode::kUnsupported, rank, "cannot be seen by peers: " + shareable.error().detail, op,
                 "Copy it to a symmetric buffer.");
}

}  // namespace

std::optional<ErrorRecord> windowProblem(const DeviceMemory& memory, int rank, const char* op) {
  if (memory.origin() == MemoryOrigin::kWrapped) return wrappedProblem(memory, rank, op);
  if (memory.origin() == MemoryOrigin::kImported)
    return refused(ErrorCode::kUnsupported, rank, "is memory of another process, which NCCL cannot share again", op,
                   "Copy it to a symmetric buffer, or register it in the process that allocated it.");
  if (memory.kind() == MemoryKind::kSymmetric) return std::nullopt;
  return fail(ErrorCode::kInvalidArgument, op, "the buffer of rank " + std::to_string(rank) + " is plain memory")
      .ofRank(rank)
      .expecting("symmetric", "plain")
      .helped("Allocate it with kind 'symmetric'.");
}

}  // namespace nccl_ext
