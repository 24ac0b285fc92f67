// SPDX-License-Identifier: Apache-2.0
#include "nccl/loader.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

namespace nccl_ext {
namespace {

// NCCL names its CUDA only in a text, "NCCL version 2.30.7+cuda13.3". It lies before the kernels, which make up the
// rest of the file.
int builtWithCuda(const std::string& path) {
  constexpr std::size_t kSearchedBytes = 16u << 20;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) return 0;
  std::string bytes(kSearchedBytes, '\0');
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file.get()));
  const std::size_t at = bytes.find("NCCL version 2.");
  if (at == std::string::npos) return 0;
  const std::string_view text(bytes.data() + at, std::min<std::size_t>(64, bytes.size() - at));
  const std::size_t cuda = text.find("+cuda");
  return cuda == std::string_view::npos ? 0 : std::atoi(text.data() + cuda + 5);
}

std::string pathOf(void* symbol, const std::string& fallback) {
  Dl_info info;
  return dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : fallback;
}

Failure unfit(std::string detail, const std::string& seen) {
  return fail(ErrorCode::kNcclVersion, "load NCCL", std::move(detail))
      .expecting(">= " + ncclVersionText(kOldestNccl), seen)
      .helped("Run `npx nccl-ext nccl install`, or name a newer library in NCCL_EXT_NCCL_LIBRARY.");
}

// A table of an open library. Its pointers are the ones that answered the version check.
Outcome<NcclApi> tableOf(void* handle, const std::string& name, int driverCudaMajor) {
  NcclApi api;
  api.ncclGetVersion = reinterpret_cast<decltype(api.ncclGetVersion)>(dlsym(handle, "ncclGetVersion"));
  if (api.ncclGetVersion == nullptr || api.ncclGetVersion(&api.version) != ncclSuccess)
    return unfit(name + " is not an NCCL library", "none");
  api.path = pathOf(reinterpret_cast<void*>(api.ncclGetVersion), name);
  const std::string version = ncclVersionText(api.version);
  if (api.version < kOldestNccl) {
    return unfit(api.path + " is NCCL " + version + "; at least " + ncclVersionText(kOldestNccl) + " is needed",
                 version);
  }
#define NCCL_EXT_SYMBOL(symbol)                                                \
  api.symbol = reinterpret_cast<decltype(api.symbol)>(dlsym(handle, #symbol)); \
  if (api.symbol == nullptr) return unfit(api.path + " (NCCL " + version + ") lacks " #symbol, version);
#include "nccl/symbols.inc"
#undef NCCL_EXT_SYMBOL
  api.cudaMajor = builtWithCuda(api.path);
  if (driverCudaMajor > 0 && api.cudaMajor > driverCudaMajor) {
    const std::string built = std::to_string(api.cudaMajor), runs = std::to_string(driverCudaMajor);
    return unfit(api.path + " is built for CUDA " + built + ", and this driver runs CUDA " + runs,
                 version + "+cuda" + built);
  }
  return api;
}

}  // namespace

std::string ncclVersionText(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

Outcome<NcclApi> loadNccl(const std::vector<NcclCandidate>& candidates, int driverCudaMajor) {
  std::string tried;
  std::optional<ErrorRecord> unusable;
  for (const NcclCandidate& candidate : candidates) {
    // RTLD_LOCAL: another library of the process must not bind to ours, nor ours to it.
    void* handle = dlopen(candidate.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* reason = dlerror();
      tried +=
          "\n  " + candidate.path + " (" + candidate.reason + "): " + (reason == nullptr ? "cannot be opened" : reason);
      continue;
    }
    Outcome<NcclApi> table = tableOf(handle, candidate.path, driverCudaMajor);
    // A fitting library is never closed: NCCL's threads outlive communicators.
    if (table) return table;
    dlclose(handle);
    if (candidate.chosen) return table;
    if (!unusable) unusable = table.error();
    tried += "\n  " + candidate.path + " (" + candidate.reason + "): " + table.error().detail;
  }
  if (unusable) return *unusable;
  return fail(ErrorCode::kNcclNotFound, "load NCCL", "libnccl.so.2 was not found. Tried:" + tried)
      .helped("Run `npx nccl-ext nccl install`, or set NCCL_EXT_NCCL_LIBRARY to a libnccl.so.2 of " +
              ncclVersionText(kOldestNccl) + " or newer.");
}

}  // namespace nccl_ext
