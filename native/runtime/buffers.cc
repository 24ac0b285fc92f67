// SPDX-License-Identifier: Apache-2.0
// Device memory behind handles.
#include <thread>

#include "runtime/runtime.hpp"

namespace nccl_ext {
namespace {

// How long an allocation that finds no memory waits for memory that was freed a moment ago.
constexpr std::chrono::milliseconds kReaperPatience{500};

std::string userOf(const BufferState& buffer) {
  if (buffer.windows > 0) return "a window";
  if (buffer.graphs > 0) return "a graph";
  if (buffer.transfers > 0) return "a transfer";
  return buffer.inFlight > 0 ? "queued work" : "";
}

}  // namespace

Outcome<Handle> Runtime::allocate(Handle handle, std::int64_t bytes, MemoryKind kind) {
  constexpr const char* kOp = "allocate";
  Outcome<Rank> found = rankOf(handle, kOp);
  if (!found) return found.error();
  const Rank& rank = found.value();
  if (bytes < 0)
    return fail(ErrorCode::kInvalidArgument, kOp, "bytes must be an integer from 0 to 2^53 - 1").ofRank(rank->rank);
  const auto size = static_cast<std::size_t>(bytes);
  Outcome<DeviceMemory> memory = DeviceMemory::allocate(*api_, rank->device, size, kind);
  const auto patience = std::chrono::steady_clock::now() + kReaperPatience;
  while (!memory && memory.error().code == ErrorCode::kOutOfMemory && reaper_->pending() > 0 &&
         std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    memory = DeviceMemory::allocate(*api_, rank->device, size, kind);
  }
  if (!memory) {
    ErrorRecord error = memory.error();
    error.rank = rank->rank;
    return error;
  }
  return addBuffer(rank, std::move(memory.value()));
}

Outcome<std::int64_t> Runtime::availableMemoryOf(Handle handle) const {
  Outcome<Rank> found = handles_.find<RankState>(handle, "availableMemoryOf");
  if (!found) return found.error();
  const Outcome<MemoryRoom> room = memoryRoom(found.value()->device);
  if (!room) return room.error();
  return static_cast<std::int64_t>(room.value().free);
}

Handle Runtime::addBuffer(const Rank& rank, DeviceMemory memory) {
  auto buffer = std::make_shared<BufferState>();
  buffer->owner = rank;
  buffer->memory = std::move(memory);
  buffer->handle = handles_.add(buffer);
  rank->buffers.insert(buffer.get());
  allocatedBytes_ += static_cast<std::int64_t>(buffer->memory.ownBytes());
  return buffer->handle;
}

Status Runtime::freeBuffer(Handle handle) {
  constexpr const char* kOp = "freeBuffer";
  Outcome<Buffer> found = handles_.find<BufferState>(handle, kOp);
  if (!found) return found.error();
  const Buffer& buffer = found.value();
  RankState& rank = *buffer->owner;
  for (StreamState* stream : rank.streams) retire(*stream);
  if (const std::string user = userOf(*buffer); !user.empty()) {
    return fail(ErrorCode::kBusy, kOp, user + " still uses this buffer of rank " + std::to_string(rank.rank))
        .ofRank(rank.rank)
        .helped("Free windows, transfers and graphs first, and synchronize the streams that use it.");
  }
  notice(rank);
  handles_.remove(handle);
  rank.buffers.erase(buffer.get());
  const auto bytes = static_cast<std::int64_t>(buffer->memory.ownBytes());
  allocatedBytes_ -= bytes;
  dyingBytes_->fetch_add(bytes);
  buffer->freed = true;
  buffer->exported.reset();
  if (buffer->leaving == 0) letGo(*buffer);
  return ok();
}

// The memory of a buffer that was freed, unless a peer that its rank gave up on may still write to it, or NCCL has not finished with it.
void Runtime::letGo(BufferState& buffer) {
  RankState& rank = *buffer.owner;
  // Without open ranks the workers end the communicators now, and clear `oldMemory`.
  if (!buffer.exposed || !rank.poison || rank.world->open == 0) return reap(buffer);
  rank.oldBytes += static_cast<std::int64_t>(buffer.memory.ownBytes());
  rank.oldMemory.push_back(std::move(buffer.memory));
}

// Freeing may wait for kernels of the whole device, and one of them may wait for work of this very thread.
void Runtime::reap(BufferState& buffer) {
  const auto bytes = static_cast<std::int64_t>(buffer.memory.ownBytes());
  reaper_->post(
      [memory = std::make_shared<DeviceMemory>(std::move(buffer.memory)), dying = dyingBytes_, bytes]() mutable {
        *memory = DeviceMemory();
        dying->fetch_sub(bytes);
      });
}

Outcome<std::uint64_t> Runtime::bufferAddress(Handle handle) const {
  Outcome<Buffer> buffer = handles_.find<BufferState>(handle, "bufferAddress");
  if (!buffer) return buffer.error();
  return reinterpret_cast<std::uint64_t>(buffer.value()->memory.address());
}

MemoryUsage Runtime::memoryUsage() const {
  return {allocatedBytes_, allocatedBytes_ + dyingBytes_->load()};
}

}  // namespace nccl_ext
