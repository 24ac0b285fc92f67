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
#include "runtime/runtime.hpp"

namespace nccl_ext {
namespace {

constexpr std::size_t kLeastStaging = 4u << 20;
constexpr std::size_t kMostStaging = 64u << 20;
// Pieces of one copy: few enough that it leaves the stream's launch queue room.
constexpr std::size_t kPreferredPieces = 128;

// What one host function copies.
struct HostMove {
  void* destination;
  const void* source;
  std::size_t bytes;
};

void CUDART_CB runHostMove(void* data) {
  const auto* move = static_cast<const HostMove*>(data);
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
  if (const Status admitted = admit(*stream.value(), 1, kOp); !admitted) return admitted;
  const DeviceGuard guard(rank.device);
  cudaError_t result = cudaSuccess;
  if (bytes > 0) {
    result = cudaMemcpyAsync(target, origin, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice,
                             stream.value()->stream.get());
  }
  Operation operation;
  operation.entries = 1;
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
  const DeviceGuard guard(rank.device);
  cudaError_t result = cudaSuccess;
  if (bytes > 0) {
    result = cudaMemsetAsync(buffer.value()->at(static_cast<std::size_t>(offset)), value,
                             static_cast<std::size_t>(bytes), stream.value()->stream.get());
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
  const cudaMemcpyKind kind = up ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
  const DeviceGuard guard(rank.device);

  Operation operation;
  operation.entries = 1;
  operation.buffers = {buffer.value()};
  operation.keeps.push_back(host.keep);
  if (host.bytes == 0 || isPinned(host)) {
    if (const Status admitted = admit(*stream, 1, op); !admitted) return admitted;
    cudaError_t result = cudaSuccess;
    if (host.bytes > 0)
      result = up ? cudaMemcpyAsync(device, memory, host.bytes, kind, stream->stream.get())
                  : cudaMemcpyAsync(memory, device, host.bytes, kind, stream->stream.get());
    return commit(stream, std::move(operation), result, op);
  }

  Outcome<std::shared_ptr<Staging>> staged = stagingFor(*stream, host.bytes);
  if (!staged) return staged.error();
  auto* pinned = static_cast<std::uint8_t*>(staged.value()->memory.get());
  const std::size_t piece = staged.value()->bytes;
  const auto moves = std::make_shared<std::vector<HostMove>>();
  for (std::size_t at = 0; at < host.bytes; at += piece) {
    const std::size_t bytes = std::min(piece, host.bytes - at);
    moves->push_back(up ? HostMove{pinned, memory + at, bytes} : HostMove{memory + at, pinned, bytes});
  }
  operation.entries = static_cast<int>(2 * moves->size());
  operation.keeps.push_back(staged.value());
  operation.keeps.push_back(moves);
  if (const Status admitted = admit(*stream, operation.entries, op); !admitted) return admitted;
  cudaError_t result = cudaSuccess;
  std::uint8_t* next = device;
  for (HostMove& move : *moves) {
    if (result == cudaSuccess && up) result = cudaLaunchHostFunc(stream->stream.get(), runHostMove, &move);
    if (result == cudaSuccess)
      result = up ? cudaMemcpyAsync(next, pinned, move.bytes, kind, stream->stream.get())
                  : cudaMemcpyAsync(pinned, next, move.bytes, kind, stream->stream.get());
    if (result == cudaSuccess && !up) result = cudaLaunchHostFunc(stream->stream.get(), runHostMove, &move);
    next += move.bytes;
  }
  return commit(stream, std::move(operation), result, op);
}

// The stream's pinned memory, larger for a large copy. Work in flight holds the one that it uses.
Outcome<std::shared_ptr<Staging>> Runtime::stagingFor(StreamState& stream, std::size_t bytes) {
  const std::size_t wanted = std::clamp((bytes + kPreferredPieces - 1) / kPreferredPieces, kLeastStaging, kMostStaging);
  // A graph may run on another stream at the same time: what it copies through is its own.
  const bool shared = !stream.capture;
  if (shared && stream.staging && stream.staging->bytes >= wanted) return stream.staging;
  Outcome<PinnedMemory> memory = allocatePinned(shared ? wanted : std::min(wanted, bytes));
  if (!memory) return memory.error();
  auto staging = std::make_shared<Staging>();
  staging->memory = std::move(memory.value());
  staging->bytes = shared ? wanted : std::min(wanted, bytes);
  if (shared) stream.staging = staging;
  return staging;
}

}  // namespace nccl_ext
