// SPDX-License-Identifier: Apache-2.0
#include "nccl/search.hpp"

#include <nccl.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace nccl_ext {
namespace {

namespace fs = std::filesystem;
constexpr const char* kSoname = "libnccl.so.2";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The version of our headers, which is the one that `nccl-ext nccl install` and third_party/fetch bring.
std::string pinnedVersion() {
  return std::to_string(NCCL_MAJOR) + "." + std::to_string(NCCL_MINOR) + "." + std::to_string(NCCL_PATCH);
}

void addLibFolders(std::vector<NcclCandidate>& out, const std::string& home, const std::string& reason, bool chosen) {
  if (home.empty()) return;
  for (const char* folder : {"lib", "lib64"})
    out.push_back({(fs::path(home) / folder / kSoname).string(), reason, chosen});
}

// lib/python3.x/site-packages of a Python environment, newest name first; wheels of NVIDIA put NCCL there.
void addSitePackages(std::vector<NcclCandidate>& out, const std::string& prefix, const std::string& reason) {
  if (prefix.empty()) return;
  std::vector<fs::path> pythons;
  std::error_code ignored;
  for (fs::directory_iterator entry(fs::path(prefix) / "lib", ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    if (entry->path().filename().string().rfind("python3", 0) == 0) pythons.push_back(entry->path());
  }
  std::sort(pythons.rbegin(), pythons.rend());
  for (const fs::path& python : pythons) {
    out.push_back({(python / "site-packages" / "nvidia" / "nccl" / "lib" / kSoname).string(), reason, false});
  }
}

}  // namespace

NcclSearch searchFromEnvironment(int cudaMajor) {
  NcclSearch search;
  search.library = variable("NCCL_EXT_NCCL_LIBRARY");
  search.ncclHome = variable("NCCL_HOME");
  search.cacheHome = variable("XDG_CACHE_HOME");
  if (search.cacheHome.empty() && !variable("HOME").empty()) search.cacheHome = variable("HOME") + "/.cache";
  search.virtualEnv = variable("VIRTUAL_ENV");
  search.condaPrefix = variable("CONDA_PREFIX");
  search.cudaHome = variable("CUDA_HOME");
  if (search.cudaHome.empty()) search.cudaHome = variable("CUDA_PATH");
  search.cudaMajor = cudaMajor;
  return search;
}

std::vector<NcclCandidate> ncclCandidates(const NcclSearch& search) {
  std::vector<NcclCandidate> out;
  if (!search.library.empty()) {
    out.push_back({search.library, "NCCL_EXT_NCCL_LIBRARY", true});
    return out;
  }
  addLibFolders(out, search.ncclHome, "NCCL_HOME", true);
  if (!search.cacheHome.empty()) {
    // Both builds serve either CUDA major where the driver can run them; ours first.
    for (const int major : {search.cudaMajor, search.cudaMajor == 12 ? 13 : 12}) {
      const std::string folder = "nccl-cu" + std::to_string(major) + "-" + pinnedVersion();
      out.push_back({(fs::path(search.cacheHome) / "nccl-ext" / "toolkits" / folder / "lib" / kSoname).string(),
                     "nccl-ext nccl install", false});
    }
  }
  addSitePackages(out, search.virtualEnv, "VIRTUAL_ENV");
  addSitePackages(out, search.condaPrefix, "CONDA_PREFIX");
  addLibFolders(out, search.condaPrefix, "CONDA_PREFIX", false);
  addLibFolders(out, search.cudaHome, "CUDA_HOME", false);
  out.push_back({kSoname, "LD_LIBRARY_PATH or the system", false});
  return out;
}

}  // namespace nccl_ext
