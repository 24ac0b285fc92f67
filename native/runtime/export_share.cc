// SPDX-License-Identifier: Apache-2.0
// Which way memory can be shared is decided by what it is, not by who made it: NCCL, PyTorch and others use several kinds.
#include <unistd.h>

#include <atomic>

#include "runtime/ipc_memory.hpp"
#include "runtime/memory_facts.hpp"
#include "runtime/memory_share.hpp"
#include "runtime/physical_memory.hpp"

namespace nccl_ext {
namespace {

Outcome<Exported> exportVirtual(const MemoryFacts& facts, MemoryShare share, const char* op) {
  if (static_cast<std::uint64_t>(share.byteOffset + share.bytes) > facts.bytes) {
    return fail(ErrorCode::kUnsupported, op,
                "the buffer spans several allocations; the first one ends after " +
                    std::to_string(static_cast<std::int64_t>(facts.bytes) - share.byteOffset) + " bytes of it")
        .helped(
            "Wrap and share each part by itself, or allocate it in one piece (PyTorch: without expandable_segments, "
            "or with larger segments).");
  }
  Outcome<Descriptor> descriptor = PhysicalMemory::at(facts.base).describe(op);
  if (!descriptor) return descriptor.error();
  share.kind = ShareKind::kDescriptor;
  share.descriptor = descriptor.value().get();
  share.processId = getpid();
  share.allocationBytes = static_cast<std::int64_t>(facts.bytes);
  return Exported{std::move(share), std::move(descriptor.value()), nullptr};
}

}  // namespace

std::int64_t nextExportSerial() {
  static std::atomic<std::int64_t> last{0};
  return ++last;
}

Outcome<Exported> exportShare(const DeviceMemory& memory, const char* op) {
  if (memory.origin() == MemoryOrigin::kImported)
    return fail(ErrorCode::kUnsupported, op, "the buffer is memory of another process and cannot be shared again")
        .helped("Share it from the process that allocated it.");
  const DriverScope scope(memory.device());
  const auto address = reinterpret_cast<std::uint64_t>(memory.address());
  Outcome<MemoryFacts> found = memoryFacts(address, 1, op);
  if (!found) return found.error();
  const MemoryFacts& facts = found.value();
  MemoryShare share;
  share.byteOffset = static_cast<std::int64_t>(address - facts.base);
  share.bytes = static_cast<std::int64_t>(memory.bytes());
  if (facts.virtualMemory) return exportVirtual(facts, std::move(share), op);
  if (facts.managed || !facts.ipc)
    return fail(ErrorCode::kUnsupported, op,
                facts.managed ? "managed memory cannot be shared with another process"
                              : "the memory comes from a pool (cudaMallocAsync), which CUDA IPC cannot share")
        .helped("Allocate it with comm.allocate or cudaMalloc.");
  Outcome<IpcExport> made = exportIpc(facts.base, op);
  if (!made) return made.error();
  share.kind = ShareKind::kIpc;
  share.handle = std::move(made.value().handle);
  return Exported{std::move(share), Descriptor(), std::move(made.value().hold)};
}

}  // namespace nccl_ext
