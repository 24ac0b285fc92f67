// SPDX-License-Identifier: Apache-2.0
#include "runtime/process.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "nccl/loader.hpp"

namespace nccl_ext {
namespace {

// Several environments (worker threads) may start at once; NCCL is loaded for all of them together.
std::mutex mutex;
const NcclApi* loaded = nullptr;

constexpr int kKeepUsersValue = 0;

// GPUs that this process will see, counted before CUDA starts, because CUDA reads its variables then; 0 when nobody
// says.
int visibleDevices() {
  if (const char* chosen = std::getenv("CUDA_VISIBLE_DEVICES")) {
    const std::string list = chosen;
    return list.empty() ? 0 : static_cast<int>(1 + std::count(list.begin(), list.end(), ','));
  }
  int count = 0;
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry("/proc/driver/nvidia/gpus", ignored), end; !ignored && entry != end;
       entry.increment(ignored))
    count++;
  return count;
}

void setVariables(bool shared) {
  // One hardware queue per stream: a kernel that waits for a peer must not sit in front of that peer's.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", kKeepUsersValue);
  if (!shared) return;
  // Without it NCCL refuses two ranks on one GPU.
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", kKeepUsersValue);
  // Loading a kernel while a peer's kernel spins on the same GPU never ends.
  setenv("CUDA_MODULE_LOADING", "EAGER", kKeepUsersValue);
}

}  // namespace

Outcome<ProcessFacts> prepareProcess(int cudaMajor, int ranksOnHost, bool devicesRepeat) {
  const std::lock_guard<std::mutex> lock(mutex);
  setVariables(devicesRepeat || ranksOnHost > std::max(1, visibleDevices()));
  Outcome<DriverFacts> driver = probeDriver(cudaMajor);
  if (!driver) return driver.error();
  if (loaded == nullptr) {
    Outcome<NcclApi> api =
        loadNccl(ncclCandidates(searchFromEnvironment(cudaMajor)), driver.value().cudaVersion / 1000);
    if (!api) return api.error();
    // Never freed: NCCL's threads may call into it until the process ends.
    loaded = new NcclApi(std::move(api.value()));
  }
  return ProcessFacts{loaded, driver.value()};
}

}  // namespace nccl_ext
