// SPDX-License-Identifier: Apache-2.0
// Users' kernels: modules behind handles, and launches as operations of a stream. A queued launch and a graph hold the
// module's token, so that its code stays while the GPU may run it.
#include <algorithm>
#include <cstring>

#include "runtime/cuda_error.hpp"
#include "runtime/runtime.hpp"

namespace nccl_ext {
namespace {

// A few of the module's kernels, for a name that is none of them.
std::string namesOf(const ModuleState& module) {
  constexpr std::size_t kMost = 8;
  std::string names;
  std::size_t listed = 0;
  for (const auto& [name, kernel] : module.kernels) {
    if (listed++ == kMost) return names + ", ...";
    names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

// Nothing was put on the stream after these.
bool isRefusal(CUresult result) {
  return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES ||
         result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

void Runtime::loadModule(Handle handle, Bytes image, Done<Handle> done) {
  constexpr const char* kOp = "loadModule";
  Outcome<Rank> found = rankOf(handle, kOp);
  if (!found) return done(found.error());
  const Rank rank = found.value();
  if (const auto error = unusable(*rank, kOp)) return done(*error);
  rank->worker->post([this, rank, image = std::move(image), done]() mutable {
    mailbox_.post([this, rank, done, loaded = loadImage(rank->device, std::move(image))] {
      if (!loaded) {
        ErrorRecord error = loaded.error();
        error.rank = rank->rank;
        return done(error);
      }
      const std::shared_ptr<ModuleState>& module = loaded.value();
      if (rank->disposing) {
        reaper_->post([module] { module->loaded = LoadedModule(); });
        return done(disposed(*rank));
      }
      module->owner = rank;
      module->handle = handles_.add(module);
      rank->modules.insert(module.get());
      done(module->handle);
    });
  });
}

Status Runtime::unloadModule(Handle handle) {
  constexpr const char* kOp = "unloadModule";
  Outcome<std::shared_ptr<ModuleState>> found = handles_.find<ModuleState>(handle, kOp);
  if (!found) return found.error();
  const auto& module = found.value();
  RankState& rank = *module->owner;
  for (StreamState* stream : rank.streams) retire(*stream);
  if (module->isBusy()) {
    return fail(ErrorCode::kBusy, kOp, "a launch or a graph still uses a kernel of this module")
        .ofRank(rank.rank)
        .helped("Dispose the graphs that hold its kernels, and synchronize the streams that run them.");
  }
  rank.modules.erase(module.get());
  // Unloading may wait for kernels of the whole device, as freeing memory does.
  reaper_->post([loaded = std::make_shared<LoadedModule>(std::move(module->loaded))] { *loaded = LoadedModule(); });
  releaseModule(*module);
  return ok();
}

// Takes a module's handles away, and with them its state.
void Runtime::releaseModule(ModuleState& module) {
  for (const auto& [name, kernel] : module.kernels) {
    if (kernel->handle != 0) handles_.remove(kernel->handle);
  }
  handles_.remove(module.handle);
}

Outcome<Handle> Runtime::kernelOf(Handle handle, const std::string& name) {
  constexpr const char* kOp = "kernelOf";
  Outcome<std::shared_ptr<ModuleState>> found = handles_.find<ModuleState>(handle, kOp);
  if (!found) return found.error();
  ModuleState& module = *found.value();
  const RankState& rank = *module.owner;
  Outcome<std::shared_ptr<KernelState>> kernel = findKernel(module, rank.device, name);
  if (!kernel) return kernel.error();
  if (!kernel.value()) {
    const std::string has = namesOf(module);
    return fail(ErrorCode::kInvalidArgument, kOp,
                "the module has no kernel named '" + name + "'" + (has.empty() ? "" : "; it has " + has))
        .ofRank(rank.rank)
        .helped("Declare it extern \"C\", or pass its mangled name.");
  }
  KernelState& state = *kernel.value();
  if (state.handle == 0) state.handle = handles_.add(kernel.value());
  return state.handle;
}

KernelGuard Runtime::guardOf(StreamState& stream) const {
  const RankState& rank = *stream.owner;
  KernelGuard guard;
  guard.status = reinterpret_cast<std::uint64_t>(boxOf(stream));
  guard.words = reinterpret_cast<std::uint64_t>(&rank.cells->words());
  guard.timeoutNs = static_cast<std::uint64_t>(std::chrono::nanoseconds(rank.world->timeout).count());
  guard.rank = rank.rank;
  guard.size = rank.world->size;
  return guard;
}

Status Runtime::launchKernel(Handle streamHandle, Handle kernelHandle, KernelLaunch launch) {
  constexpr const char* kOp = "launchKernel";
  Outcome<Stream> found = streamOf(streamHandle, kOp);
  if (!found) return found.error();
  const Stream& stream = found.value();
  const RankState& rank = *stream->owner;
  Outcome<std::shared_ptr<KernelState>> foundKernel = handles_.find<KernelState>(kernelHandle, kOp);
  if (!foundKernel) return foundKernel.error();
  const KernelState& kernel = *foundKernel.value();
  const ModuleState& module = *kernel.module;
  if (module.owner.get() != &rank) {
    return fail(ErrorCode::kForeignObject, kOp,
                "a kernel of rank " + std::to_string(module.owner->rank) + " was launched on a stream of rank " +
                    std::to_string(rank.rank))
        .ofRank(rank.rank)
        .fromPeer(module.owner->rank);
  }
  if (const Status fits = checkLaunch(launch, kernel); !fits) {
    ErrorRecord error = fits.error();
    error.rank = rank.rank;
    return error;
  }
  Operation operation;
  operation.entries = 2;
  operation.keeps.push_back(module.use);
  for (const Handle handle : launch.buffers) {
    Outcome<Buffer> buffer = bufferFor(handle, rank, 0, 0, kOp);
    if (!buffer) return buffer.error();
    operation.buffers.push_back(buffer.value());
  }
  if (const Status admitted = admit(*stream, operation.entries, kOp); !admitted) return admitted;
  if (launch.guardOffset >= 0) {
    const KernelGuard guard = guardOf(*stream);
    std::memcpy(launch.parameters.data() + launch.guardOffset, &guard, sizeof guard);
  }
  const DriverScope scope(rank.device);
  std::size_t bytes = launch.parameters.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, launch.parameters.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  const auto unsignedOf = [](std::int64_t number) { return static_cast<unsigned>(number); };
  const CUresult result = driver().cuLaunchKernel(
      kernel.function, unsignedOf(launch.grid[0]), unsignedOf(launch.grid[1]), unsignedOf(launch.grid[2]),
      unsignedOf(launch.block[0]), unsignedOf(launch.block[1]), unsignedOf(launch.block[2]),
      unsignedOf(launch.sharedBytes), stream->stream.get(), nullptr, launch.parameters.empty() ? nullptr : extra);
  if (isRefusal(result)) {
    return fail(ErrorCode::kModule, kOp, "the driver refuses to launch " + kernel.name + ": " + driverText(result))
        .ofRank(rank.rank);
  }
  return commit(stream, std::move(operation), static_cast<cudaError_t>(result), kOp);
}

}  // namespace nccl_ext
