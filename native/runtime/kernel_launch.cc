// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel_launch.hpp"

namespace nccl_ext {
namespace {

constexpr const char* kOp = "launchKernel";
// The same on every GPU since compute capability 3.0.
constexpr Dimensions kMaxGrid{0x7fff'ffff, 65'535, 65'535};
constexpr Dimensions kMaxBlock{1024, 1024, 64};
// Of CUDA 12.1 and later on compute capability 7.0 and later.
constexpr std::size_t kMaxParameterBytes = 32'764;
constexpr std::int64_t kGuardBytes = sizeof(KernelGuard);

Failure wrong(const std::string& detail, std::int64_t allowed, std::int64_t given) {
  return fail(ErrorCode::kInvalidArgument, kOp, detail).expecting(allowed, given);
}

Failure misfit(const KernelState& kernel, const std::string& detail, std::int64_t wanted, std::int64_t given) {
  return fail(ErrorCode::kModule, kOp, "the kernel " + kernel.name + " " + detail).expecting(wanted, given);
}

Status checkDimensions(const Dimensions& given, const Dimensions& most, const std::string& what) {
  for (std::size_t axis = 0; axis < given.size(); axis++) {
    if (given[axis] >= 1 && given[axis] <= most[axis]) continue;
    return wrong(what + "[" + std::to_string(axis) + "] must be an integer from 1 to " + std::to_string(most[axis]),
                 most[axis], given[axis]);
  }
  return ok();
}

Status checkParameters(const KernelLaunch& launch) {
  if (launch.parameters.size() > kMaxParameterBytes) {
    return wrong("a kernel takes at most " + std::to_string(kMaxParameterBytes) + " bytes of parameters",
                 kMaxParameterBytes, static_cast<std::int64_t>(launch.parameters.size()));
  }
  const auto end = static_cast<std::int64_t>(launch.parameters.size());
  std::int64_t least = 0;
  for (const std::int64_t offset : launch.offsets) {
    if (offset < least || offset >= end)
      return wrong("offsets must ascend inside the parameters; " + std::to_string(offset) + " does not", least, offset);
    least = offset + 1;
  }
  if (launch.offsets.empty() && end > 0) return wrong("there are parameters, but no offsets", 0, end);
  if (launch.guardOffset == -1) return ok();
  if (launch.guardOffset >= 0 && launch.guardOffset % 8 == 0 && launch.guardOffset + kGuardBytes <= end) return ok();
  return wrong("guardOffset must be a multiple of 8 with room for " + std::to_string(kGuardBytes) +
                   " bytes in the parameters, or -1",
               end - kGuardBytes, launch.guardOffset);
}

// Bytes between the start of parameter `index` and what comes after it.
std::int64_t roomOf(const KernelLaunch& launch, std::size_t index) {
  const auto end = static_cast<std::int64_t>(launch.parameters.size());
  return (index + 1 < launch.offsets.size() ? launch.offsets[index + 1] : end) - launch.offsets[index];
}

Status compareParameters(const KernelLaunch& launch, const KernelState& kernel) {
  if (!kernel.facts.parameters) return ok();
  const std::vector<ParameterPlace>& wanted = *kernel.facts.parameters;
  if (wanted.size() != launch.offsets.size()) {
    return misfit(
        kernel,
        "takes " + std::to_string(wanted.size()) + " parameters; it was given " + std::to_string(launch.offsets.size()),
        static_cast<std::int64_t>(wanted.size()), static_cast<std::int64_t>(launch.offsets.size()));
  }
  for (std::size_t i = 0; i < wanted.size(); i++) {
    const auto offset = static_cast<std::int64_t>(wanted[i].offset), bytes = static_cast<std::int64_t>(wanted[i].bytes);
    const std::string name = "parameter " + std::to_string(i);
    if (launch.offsets[i] != offset) {
      const std::string before = i == 0 ? "" : "; check the type of parameter " + std::to_string(i - 1);
      return misfit(kernel,
                    "reads " + name + " at byte " + std::to_string(offset) + "; it was given at byte " +
                        std::to_string(launch.offsets[i]) + before,
                    offset, launch.offsets[i]);
    }
    // Between two parameters lies padding too, so only the last one's size is certain.
    const std::int64_t room = roomOf(launch, i);
    if (room < bytes || (i + 1 == wanted.size() && room != bytes)) {
      return misfit(kernel,
                    "reads " + std::to_string(bytes) + " bytes of " + name + "; it was given " + std::to_string(room),
                    bytes, room);
    }
    const bool holdsGuard = launch.guardOffset >= offset && launch.guardOffset < offset + bytes;
    if (holdsGuard && launch.guardOffset + kGuardBytes > offset + bytes)
      return misfit(kernel, "has no room for a KernelGuard in " + name, kGuardBytes,
                    offset + bytes - launch.guardOffset);
  }
  return ok();
}

}  // namespace

Status checkLaunch(const KernelLaunch& launch, const KernelState& kernel) {
  if (Status grid = checkDimensions(launch.grid, kMaxGrid, "grid"); !grid) return grid;
  if (Status block = checkDimensions(launch.block, kMaxBlock, "block"); !block) return block;
  if (launch.sharedBytes < 0) return wrong("sharedBytes must be an integer from 0 on", 0, launch.sharedBytes);
  if (Status parameters = checkParameters(launch); !parameters) return parameters;
  const std::int64_t threads = launch.block[0] * launch.block[1] * launch.block[2];
  if (threads > kernel.facts.maxThreads) {
    return misfit(kernel,
                  "runs with at most " + std::to_string(kernel.facts.maxThreads) + " threads per block; it was given " +
                      std::to_string(threads),
                  kernel.facts.maxThreads, threads);
  }
  if (launch.sharedBytes > kernel.facts.maxDynamicSharedBytes) {
    return misfit(kernel,
                  "can have at most " + std::to_string(kernel.facts.maxDynamicSharedBytes) +
                      " bytes of dynamic shared memory; it was given " + std::to_string(launch.sharedBytes),
                  kernel.facts.maxDynamicSharedBytes, launch.sharedBytes);
  }
  return compareParameters(launch, kernel);
}

}  // namespace nccl_ext
