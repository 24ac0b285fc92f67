// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime on threads of the host, for tests of the code around it: a stream is a thread, device memory is host
// memory.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace nccl_ext::fake {

// Runs `work` when the stream comes to it, or records it: what a kernel launch does.
cudaError_t launch(cudaStream_t stream, std::function<void()> work);

// Lets that many launches pass and the next one fail.
void failLaunchAfter(int launches);

// Streams, events, graphs, and allocations that are alive: 0 when everything was freed.
int liveObjects();

// Calls of cudaHostAlloc so far.
int pinnedAllocations();

}  // namespace nccl_ext::fake
