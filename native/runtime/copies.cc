// SPDX-License-Identifier: Apache-2.0
// Copies and fills on a stream.
//
// A copy from or to pageable memory makes CUDA wait for the stream on the calling thread, which here is the thread that
// must also feed the peers. So such a copy goes through pinned memory of ours in pieces: a host function moves a piece
// between the caller's memory and the pinned one, and a copy engine between that and the device, all in stream order.
// Memory that is pinned already is copied directly.
#include <algorithm>
#include <cstring>

#include "runtime/cuda_error.hpp"
#include "runtime/moves.hpp"
#include "runtime/runtime.hpp"

namespace nccl_ext {
namespace {

// Up to here a copy within the device is a kernel, which leaves memory alone behind a failure; larger ones are the
// driver's, which are faster.
constexpr std::size_t kMostGuardedCopy = 1u << 20;
// Kernels move vectors of this size.
constexpr std::size_t kVectorBytes = 16;

// What one host function copies, unless its rank has failed.
struct HostMove {
  Guard guard;
  void* destination;
  const void* source;
  std::size_t bytes;
};

void CUDART_CB runHostMove(void* data) {
  const auto* move = static_cast<const HostMove*>(data);
  if (const ErrorCode reason = skipReason(move->guard); reason != ErrorCode::kNone)
    return reportSkipped(move->guard, reason, Skipped::kUntouched);
  std::memcpy(move->destination, move->source, move->bytes);
}

bool isPinned(const HostSpan& host) {
  const auto* last = static_cast<const std::uint8_t*>(host.data) + host.bytes - 1;
  for (const void* address : {static_cast<const void*>(host.data), static_cast<const void*>(last)}) {
    cudaPointerAttributes attributes;
    if (cudaPointerGetAttributes(&attributes, address) != cudaSuccess) {
      (void)cudaGetLastError();
      return false;
    }
    if (attributes.type != cudaMemoryTypeHost) return false;
  }
  return true;
}

}  // namespace

Status Runtime::enqueueCopy(Handle streamHandle, Handle destination, std::int64_t destinationOffset, Handle source,
                            std::int64_t sourceOffset, std::int64_t bytes) {
  constexpr const char* kOp = "copy";
  Outcome<Stream> stream = streamOf(streamHandle, kOp);
  if (!stream) return stream.error();
  RankState& rank = *stream.value()->owner;
  Outcome<Buffer> to = bufferFor(destination, rank, destinationOffset, bytes, kOp);
  if (!to) return to.error();
  Outcome<Buffer> from = bufferFor(source, rank, sourceOffset, bytes, kOp);
  if (!from) return from.error();
  // By address: memory that was wrapped may be a buffer's too.
  std::uint8_t* target = to.value()->at(static_cast<std::size_t>(destinationOffset));
  const std::uint8_t* origin = from.value()->at(static_cast<std::size_t>(sourceOffset));
  if (target < origin + bytes && origin < target + bytes) {
    return fail(ErrorCode::kOverlap, kOp, "source and destination of a copy overlap").ofRank(rank.rank);
  }
  if (const Status admitted = admit(*stream.value(), 2, kOp); !admitted) return admitted;
  const DeviceGuard current(rank.device);
  const Guard guard = guardFor(*stream.value(), DeviceOp::kCopy);
  const cudaStream_t raw = stream.value()->stream.get();
  const auto size = static_cast<std::size_t>(bytes);
  cudaError_t result = cudaSuccess;
  if (size > kMostGuardedCopy) {
    result = cudaMemcpyAsync(target, origin, size, cudaMemcpyDeviceToDevice, raw);
    if (result == cudaSuccess) result = launchNote(guard, raw);
  } else if (size > 0) {
    result = launchCopy(guard, target, origin, size, raw);
  }
  Operation operation;
  operation.entries = 2;
  operation.buffers = {to.value(), from.value()};
  return commit(stream.value(), std::move(operation), result, kOp);
}

Status Runtime::enqueueFill(Handle streamHandle, Handle handle, std::int64_t offset, std::int64_t bytes, int value) {
  constexpr const char* kOp = "fill";
  Outcome<Stream> stream = streamOf(streamHandle, kOp);
  if (!stream) return stream.error();
  RankState& rank = *stream.value()->owner;
  Outcome<Buffer> buffer = bufferFor(handle, rank, offset, bytes, kOp);
  if (!buffer) return buffer.error();
  if (value < 0 || value > 255)
    return fail(ErrorCode::kInvalidArgument, kOp,
                "value is " + std::to_string(value) + "; it must be an integer from 0 to 255")
        .ofRank(rank.rank);
  if (const Status admitted = admit(*stream.value(), 1, kOp); !admitted) return admitted;
  const DeviceGuard current(rank.device);
  cudaError_t result = cudaSuccess;
  if (bytes > 0) {
    result =
        launchFill(guardFor(*stream.value(), DeviceOp::kFill), buffer.value()->at(static_cast<std::size_t>(offset)),
                   value, static_cast<std::size_t>(bytes), stream.value()->stream.get());
  }
  Operation operation;
  operation.entries = 1;
  operation.buffers = {buffer.value()};
  return commit(stream.value(), std::move(operation), result, kOp);
}

Status Runtime::enqueueUpload(Handle stream, Handle buffer, std::int64_t offset, HostSpan host) {
  return enqueueHostCopy(stream, buffer, offset, std::move(host), Direction::kUpload);
}

Status Runtime::enqueueDownload(Handle stream, HostSpan host, Handle buffer, std::int64_t offset) {
  return enqueueHostCopy(stream, buffer, offset, std::move(host), Direction::kDownload);
}

Status Runtime::enqueueHostCopy(Handle streamHandle, Handle handle, std::int64_t offset, HostSpan host,
                                Direction direction) {
  const bool up = direction == Direction::kUpload;
  const char* op = up ? "upload" : "download";
  Outcome<Stream> found = streamOf(streamHandle, op);
  if (!found) return found.error();
  const Stream& stream = found.value();
  RankState& rank = *stream->owner;
  Outcome<Buffer> buffer = bufferFor(handle, rank, offset, static_cast<std::int64_t>(host.bytes), op);
  if (!buffer) return buffer.error();
  std::uint8_t* device = buffer.value()->at(static_cast<std::size_t>(offset));
  auto* memory = static_cast<std::uint8_t*>(host.data);
  const DeviceGuard current(rank.device);
  const Guard guard = guardFor(*stream, up ? DeviceOp::kUpload : DeviceOp::kDownload);
  const cudaStream_t raw = stream->stream.get();

  Operation operation;
  operation.entries = 2;
  operation.buffers = {buffer.value()};
  operation.keeps.push_back(host.keep);
  if (host.bytes == 0 || isPinned(host)) {
    if (const Status admitted = admit(*stream, 2, op); !admitted) return admitted;
    cudaError_t result = cudaSuccess;
    if (host.bytes > 0) {
      result = up ? cudaMemcpyAsync(device, memory, host.bytes, cudaMemcpyHostToDevice, raw)
                  : cudaMemcpyAsync(memory, device, host.bytes, cudaMemcpyDeviceToHost, raw);
      if (result == cudaSuccess) result = launchNote(guard, raw);
    }
    return commit(stream, std::move(operation), result, op);
  }

  Outcome<std::shared_ptr<Staging>> staged = stagingFor(*stream, host.bytes);
  if (!staged) return staged.error();
  // Aligned as the device's side is, for the kernel; all pieces but the last are whole vectors.
  const std::size_t over = reinterpret_cast<std::uintptr_t>(device) % kVectorBytes;
  auto* pinned = static_cast<std::uint8_t*>(staged.value()->memory.get()) + over;
  const std::size_t piece = staged.value()->bytes - kVectorBytes;
  const auto moves = std::make_shared<std::vector<HostMove>>();
  for (std::size_t at = 0; at < host.bytes; at += piece) {
    const std::size_t bytes = std::min(piece, host.bytes - at);
    moves->push_back(up ? HostMove{guard, pinned, memory + at, bytes} : HostMove{guard, memory + at, pinned, bytes});
  }
  operation.entries = static_cast<int>(2 * moves->size());
  operation.keeps.push_back(staged.value());
  operation.keeps.push_back(moves);
  if (const Status admitted = admit(*stream, operation.entries, op); !admitted) return admitted;
  cudaError_t result = cudaSuccess;
  std::uint8_t* next = device;
  for (HostMove& move : *moves) {
    if (result == cudaSuccess && up) result = cudaLaunchHostFunc(raw, runHostMove, &move);
    if (result == cudaSuccess)
      result = up ? launchCopy(guard, next, pinned, move.bytes, raw)
                  : cudaMemcpyAsync(pinned, next, move.bytes, cudaMemcpyDeviceToHost, raw);
    if (result == cudaSuccess && !up) result = cudaLaunchHostFunc(raw, runHostMove, &move);
    next += move.bytes;
  }
  return commit(stream, std::move(operation), result, op);
}

// What a stream begins with: pinned memory cannot be had on the data path, where it may wait for a kernel that spins.
Status Runtime::giveStaging(StreamState& stream) {
  auto& spare = stream.owner->spareStaging;
  if (!spare.empty()) {
    stream.staging = std::move(spare.back());
    spare.pop_back();
    return ok();
  }
  Outcome<std::shared_ptr<Staging>> staging = Staging::allocate(kStagingBytes);
  if (!staging) return staging.error();
  stream.staging = std::move(staging.value());
  return ok();
}

// The stream's own. A graph may run on another stream at the same time: what it copies through is made while it is
// recorded, no larger than needed.
Outcome<std::shared_ptr<Staging>> Runtime::stagingFor(StreamState& stream, std::size_t bytes) {
  if (stream.capture) {
    const std::size_t vectors = (bytes + kVectorBytes - 1) / kVectorBytes + 1;
    return Staging::allocate(std::min(kStagingBytes, vectors * kVectorBytes));
  }
  if (!stream.staging) {
    if (const Status given = giveStaging(stream); !given) return given.error();
  }
  return stream.staging;
}

Outcome<std::shared_ptr<Staging>> Staging::allocate(std::size_t bytes) {
  Outcome<PinnedMemory> memory = allocatePinned(bytes);
  if (!memory) return memory.error();
  auto staging = std::make_shared<Staging>();
  staging->memory = std::move(memory.value());
  staging->bytes = bytes;
  return staging;
}

Guard Runtime::guardFor(StreamState& stream, DeviceOp op) const {
  return {boxOf(stream), &stream.owner->cells->words(), op};
}

}  // namespace nccl_ext
