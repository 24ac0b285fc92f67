// SPDX-License-Identifier: Apache-2.0
#include "runtime/process.hpp"

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>
#include <utility>

#include "nccl/loader.hpp"
#include "runtime/driver_api.hpp"

namespace nccl_ext {
namespace {

// Several environments (worker threads) may start at once; NCCL is loaded for all of them together.
std::mutex mutex;
const NcclApi* loaded = nullptr;
NcclChoice loadedFor;
bool variablesSet = false;
bool mayShareGpu = true;

constexpr int kKeepUsersValue = 0;

// All before CUDA and NCCL start, whatever the ranks turn out to share: CUDA reads its variables once, NCCL keeps the
// first value that a world of several ranks read, and a later setenv() would race with the getenv() of their threads.
void setVariables() {
  if (std::exchange(variablesSet, true)) return;
  // One hardware queue per stream: a kernel that waits for a peer must not sit in front of that peer's.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", std::to_string(queuesPerDevice()).c_str(), kKeepUsersValue);
  // Loading a kernel while another one spins on the same GPU never ends.
  setenv("CUDA_MODULE_LOADING", "EAGER", kKeepUsersValue);
  // Without it NCCL refuses two ranks on one GPU; where nobody shares one it changes nothing.
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", kKeepUsersValue);
  mayShareGpu = std::strtoll(std::getenv("NCCL_MULTI_RANK_GPU_ENABLE"), nullptr, 0) != 0;
}

// Whether `choice` names another library than the one that is loaded. Nothing said is content with any.
bool comesTooLate(const NcclChoice& choice) {
  std::error_code ignored;
  if (!choice.library.empty())
    return choice.library != loadedFor.library && !std::filesystem::equivalent(choice.library, loaded->path, ignored);
  return !choice.home.empty() && choice.home != loadedFor.home;
}

std::string choiceText(const NcclChoice& choice) {
  if (!choice.library.empty()) return "ncclLibrary " + choice.library;
  return choice.home.empty() ? "what the environment says" : "ncclHome " + choice.home;
}

}  // namespace

int queuesFor(const char* mpsDirectory) {
  // The clients of an MPS server share a GPU's queues: when 8 of them asked for 16 each, CUDA ran out of memory.
  constexpr int kAlone = 32, kUnderMps = 8;
  const std::filesystem::path directory =
      mpsDirectory != nullptr && *mpsDirectory != '\0' ? mpsDirectory : "/tmp/nvidia-mps";
  std::error_code ignored;
  return std::filesystem::exists(directory / "control", ignored) ? kUnderMps : kAlone;
}

int queuesPerDevice() {
  static const int queues = queuesFor(std::getenv("CUDA_MPS_PIPE_DIRECTORY"));
  return queues;
}

NcclSearch searchFor(int cudaMajor, const NcclChoice& choice) {
  NcclSearch search = searchFromEnvironment(cudaMajor);
  // A home that was passed is nearer than a library that the environment names.
  if (!choice.home.empty()) search.library.clear();
  if (!choice.home.empty()) search.ncclHome = choice.home;
  if (!choice.library.empty()) search.library = choice.library;
  return search;
}

Outcome<ProcessFacts> prepareProcess(int cudaMajor, const NcclChoice& choice) {
  const std::lock_guard<std::mutex> lock(mutex);
  setVariables();
  Outcome<DriverFacts> driver = probeDriver(cudaMajor);
  if (!driver) return driver.error();
  if (loaded == nullptr) {
    if (Status table = loadDriver(); !table) return table.error();
    Outcome<NcclApi> api = loadNccl(ncclCandidates(searchFor(cudaMajor, choice)), driver.value().cudaVersion / 1000);
    if (!api) return api.error();
    // Never freed: NCCL's threads may call into it until the process ends.
    loaded = new NcclApi(std::move(api.value()));
    loadedFor = choice;
  } else if (comesTooLate(choice)) {
    return fail(ErrorCode::kInvalidState, "load NCCL",
                "this process has loaded " + loaded->path + " for " + choiceText(loadedFor) + "; " +
                    choiceText(choice) + " comes too late")
        .expecting(choiceText(loadedFor), choiceText(choice))
        .helped("NCCL is loaded once: pass the same ncclLibrary and ncclHome to every world of a process.");
  }
  return ProcessFacts{loaded, driver.value(), probeDevices(driver.value().devices), mayShareGpu};
}

}  // namespace nccl_ext
