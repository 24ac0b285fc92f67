// SPDX-License-Identifier: Apache-2.0
// A module of kernels that the fake driver knows, and launches of them.
#pragma once

#include <cstring>
#include <string>

#include "tests/support/one_rank.hpp"

namespace nccl_ext::test {

inline constexpr const char* kPtx =
    ".version 8.4\n"
    "//kernel store 1024 0 0:8 8:8\n"
    "//kernel complain 1024 0 0:32 32:8\n"
    "//kernel await_flag 256 1024 0:8 8:8 16:32\n"
    "//kernel nothing 1024 0\n";

inline Bytes bytesOf(const std::string& text) {
  return Bytes(text.begin(), text.end());
}

inline Outcome<Handle> load(Harness& harness, Handle rank, Bytes image) {
  std::optional<Outcome<Handle>> result;
  harness.runtime.loadModule(rank, std::move(image),
                             [&](Outcome<Handle> module) { result.emplace(std::move(module)); });
  harness.until([&] { return result.has_value(); });
  return result.value_or(fail(ErrorCode::kInternal, "test", "no result"));
}

// One thread, and parameters of 64 bits each.
inline KernelLaunch launchOf(const std::vector<std::uint64_t>& words) {
  KernelLaunch launch;
  launch.grid = launch.block = {1, 1, 1};
  launch.sharedBytes = 0;
  launch.parameters.resize(words.size() * sizeof words[0]);
  if (!words.empty()) std::memcpy(launch.parameters.data(), words.data(), launch.parameters.size());
  for (std::size_t i = 0; i < words.size(); i++)
    launch.offsets.push_back(static_cast<std::int64_t>(i * sizeof words[0]));
  return launch;
}

// await_flag(flag, value, guard)
inline KernelLaunch awaiting(std::uint64_t flag, std::uint64_t value) {
  KernelLaunch launch = launchOf({flag, value, 0, 0, 0, 0});
  launch.offsets = {0, 8, 16};
  launch.guardOffset = 16;
  return launch;
}

struct WithModule : OneRank {
  WithModule() { module = valueOf(load(*this, rank, bytesOf(kPtx))); }
  Handle kernel(const std::string& name) { return valueOf(runtime.kernelOf(module, name)); }
  Handle module = 0;
};

}  // namespace nccl_ext::test
