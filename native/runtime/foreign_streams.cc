// SPDX-License-Identifier: Apache-2.0
// Streams that others know: theirs that are wrapped, and ours whose address was given away. Whoever else has one may
// record a CUDA graph with it, and then our work would be recorded instead of run.
#include "runtime/cuda_error.hpp"
#include "runtime/driver_api.hpp"
#include "runtime/runtime.hpp"

namespace nccl_ext {
namespace {

// CUDA's own numbers for its default streams.
const char* defaultStream(std::uint64_t address) {
  if (address == 0) return "NULL, the default stream,";
  if (address == reinterpret_cast<std::uint64_t>(cudaStreamLegacy)) return "1, the default stream,";
  if (address == reinterpret_cast<std::uint64_t>(cudaStreamPerThread)) return "2, the default stream of each thread,";
  return nullptr;
}

// Our events and kernels are of the device's primary context, so the stream must be too.
Status checkContext(const RankState& rank, CUstream stream, const char* op) {
  CUcontext own = nullptr, other = nullptr;
  CUresult result = driver().cuCtxGetCurrent(&own);
  if (result == CUDA_SUCCESS) result = driver().cuStreamGetCtx(stream, &other);
  if (result != CUDA_SUCCESS)
    return driverFailure(result, op, "the address is not one of a CUDA stream", ErrorCode::kInvalidArgument)
        .ofRank(rank.rank)
        .helped("Pass the cudaStream_t of a stream that lives, as torch.cuda.Stream().cuda_stream gives it.");
  if (other == own) return ok();
  CUdevice device = -1;
  if (driver().cuCtxPushCurrent_v2(other) == CUDA_SUCCESS) {
    (void)driver().cuCtxGetDevice(&device);
    (void)driver().cuCtxPopCurrent_v2(&other);
  }
  const bool sameDevice = device == rank.device;
  const std::string gpu = std::to_string(rank.device);
  return fail(sameDevice ? ErrorCode::kUnsupported : ErrorCode::kInvalidArgument, op,
              sameDevice ? "the stream belongs to a CUDA context of its own on GPU " + gpu
                         : "the stream is one of GPU " + std::to_string(device) + "; rank " +
                               std::to_string(rank.rank) + " is on GPU " + gpu)
      .ofRank(rank.rank)
      .expecting(static_cast<std::int64_t>(rank.device), static_cast<std::int64_t>(device))
      .helped(sameDevice ? "Create it in the device's primary context, which the CUDA runtime uses."
                         : "Pass a stream of the rank's GPU.");
}

}  // namespace

Outcome<Handle> Runtime::wrapStream(Handle handle, std::uint64_t address) {
  constexpr const char* kOp = "wrapStream";
  Outcome<Rank> found = rankOf(handle, kOp);
  if (!found) return found.error();
  const Rank& rank = found.value();
  if (const char* name = defaultStream(address)) {
    return fail(ErrorCode::kInvalidArgument, kOp,
                std::string(name) +
                    " waits for other streams or is another one in each thread: a rank's kernels could "
                    "wait for themselves on it")
        .ofRank(rank->rank)
        .helped("Pass a stream that was created, as torch.cuda.Stream() is.");
  }
  if (Status refused = refuseMoreStreams(*rank, kOp); !refused) return refused.error();
  const auto raw = reinterpret_cast<cudaStream_t>(address);
  const DriverScope scope(rank->device);
  if (Status fits = checkContext(*rank, raw, kOp); !fits) return fits.error();
  if (Status refused = refuseForeignCapture(raw, *rank, kOp); !refused) return refused.error();
  return addStream(rank, CudaStream(raw, CudaStreamDelete{false}), kOp);
}

Outcome<std::uint64_t> Runtime::streamAddress(Handle handle) {
  Outcome<Stream> found = handles_.find<StreamState>(handle, "streamAddress");
  if (!found) return found.error();
  found.value()->shared = true;
  return reinterpret_cast<std::uint64_t>(found.value()->stream.get());
}

// Asked before every operation on a shared stream while we record nothing ourselves.
Status Runtime::refuseForeignCapture(cudaStream_t stream, const RankState& rank, const char* op) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t result = cudaStreamIsCapturing(stream, &status);
  if (result != cudaSuccess)
    return cudaFailure(result, op, "asking whether the stream records a graph").ofRank(rank.rank);
  if (status == cudaStreamCaptureStatusNone) return ok();
  return fail(ErrorCode::kInvalidState, op, "somebody else records a CUDA graph with the stream")
      .ofRank(rank.rank)
      .helped("End that capture first; stream.capture records what nccl-ext enqueues.");
}

}  // namespace nccl_ext
