// SPDX-License-Identifier: Apache-2.0
// NCCL is found where the documentation says, refused with a reason, and called through the pointers that were checked.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "nccl/loader.hpp"

namespace nccl_ext {
namespace {

NcclCandidate chosen(const char* path) {
  return {path, "NCCL_EXT_NCCL_LIBRARY", true};
}
NcclCandidate found(const char* path) {
  return {path, "the system", false};
}

TEST(Loader, TakesTheRightVersionAndReportsIt) {
  const Outcome<NcclApi> api = loadNccl({chosen(FAKE_NCCL_GOOD)}, 13);
  ASSERT_TRUE(api) << api.error().detail;
  EXPECT_EQ(api.value().version, 23007);
  EXPECT_EQ(api.value().cudaMajor, 13);
  EXPECT_TRUE(std::filesystem::equivalent(api.value().path, FAKE_NCCL_GOOD));
}

TEST(Loader, ListsEveryPathThatWasTried) {
  const Outcome<NcclApi> api = loadNccl({found("/nowhere/a/libnccl.so.2"), found("/nowhere/b/libnccl.so.2")}, 13);
  ASSERT_FALSE(api);
  EXPECT_EQ(api.error().code, ErrorCode::kNcclNotFound);
  EXPECT_NE(api.error().detail.find("/nowhere/a/libnccl.so.2"), std::string::npos);
  EXPECT_NE(api.error().detail.find("/nowhere/b/libnccl.so.2"), std::string::npos);
  EXPECT_NE(api.error().help.find("NCCL_EXT_NCCL_LIBRARY"), std::string::npos);
}

TEST(Loader, RefusesAnOldOneThatWasAskedFor) {
  const Outcome<NcclApi> api = loadNccl({chosen(FAKE_NCCL_OLD), found(FAKE_NCCL_GOOD)}, 13);
  ASSERT_FALSE(api);
  EXPECT_EQ(api.error().code, ErrorCode::kNcclVersion);
  EXPECT_EQ(std::get<std::string>(api.error().seen), "2.28.3");
}

TEST(Loader, PassesAnOldOneByThatNobodyAskedFor) {
  const Outcome<NcclApi> api = loadNccl({found(FAKE_NCCL_OLD), found(FAKE_NCCL_GOOD)}, 13);
  ASSERT_TRUE(api) << api.error().detail;
  EXPECT_EQ(api.value().version, 23007);
}

TEST(Loader, AcceptsANewerOne) {
  const Outcome<NcclApi> api = loadNccl({chosen(FAKE_NCCL_NEW)}, 13);
  ASSERT_TRUE(api) << api.error().detail;
  EXPECT_EQ(ncclVersionText(api.value().version), "2.40.1");
}

TEST(Loader, NamesAMissingFunction) {
  const Outcome<NcclApi> api = loadNccl({chosen(FAKE_NCCL_INCOMPLETE)}, 13);
  ASSERT_FALSE(api);
  EXPECT_EQ(api.error().code, ErrorCode::kNcclVersion);
  EXPECT_NE(api.error().detail.find("ncclGetPeerDevicePointer"), std::string::npos);
}

TEST(Loader, RefusesABuildThatTheDriverCannotRun) {
  const Outcome<NcclApi> api = loadNccl({chosen(FAKE_NCCL_GOOD)}, 12);
  ASSERT_FALSE(api);
  EXPECT_EQ(api.error().code, ErrorCode::kNcclVersion);
  EXPECT_NE(api.error().detail.find("CUDA 13"), std::string::npos);
}

TEST(Loader, RefusesALibraryThatIsNoNccl) {
  const Outcome<NcclApi> api = loadNccl({chosen(FAKE_CUDA_GOOD)}, 13);
  ASSERT_FALSE(api);
  EXPECT_EQ(api.error().code, ErrorCode::kNcclVersion);
}

// Another libnccl.so.2 that the process already has must not catch our calls.
TEST(Loader, CallsTheLibraryThatItChecked) {
  ASSERT_NE(dlopen(FAKE_NCCL_OLD, RTLD_NOW | RTLD_GLOBAL), nullptr);
  const Outcome<NcclApi> api = loadNccl({chosen(FAKE_NCCL_GOOD)}, 13);
  ASSERT_TRUE(api) << api.error().detail;
  EXPECT_STREQ(api.value().ncclGetErrorString(ncclSuccess), "fake NCCL good");
}

TEST(Search, TriesOnlyTheFileThatWasNamed) {
  NcclSearch search;
  search.library = "/my/libnccl.so.2";
  search.ncclHome = "/home";
  const auto candidates = ncclCandidates(search);
  ASSERT_EQ(candidates.size(), 1u);
  EXPECT_EQ(candidates[0].path, "/my/libnccl.so.2");
  EXPECT_TRUE(candidates[0].chosen);
}

TEST(Search, KeepsTheDocumentedOrder) {
  NcclSearch search;
  search.ncclHome = "/nccl";
  search.cacheHome = "/cache";
  search.condaPrefix = "/conda";
  search.cudaHome = "/cuda";
  search.cudaMajor = 12;
  std::vector<std::string> paths;
  for (const NcclCandidate& candidate : ncclCandidates(search)) paths.push_back(candidate.path);
  const std::string version = ncclVersionText(kOldestNccl);
  EXPECT_EQ(paths, (std::vector<std::string>{"/nccl/lib/libnccl.so.2", "/nccl/lib64/libnccl.so.2",
                                             "/cache/nccl-ext/toolkits/nccl-cu12-" + version + "/lib/libnccl.so.2",
                                             "/cache/nccl-ext/toolkits/nccl-cu13-" + version + "/lib/libnccl.so.2",
                                             "/conda/lib/libnccl.so.2", "/conda/lib64/libnccl.so.2",
                                             "/cuda/lib/libnccl.so.2", "/cuda/lib64/libnccl.so.2", "libnccl.so.2"}));
}

TEST(Search, LooksIntoTheSitePackagesOfAPythonEnvironment) {
  namespace fs = std::filesystem;
  const fs::path home = fs::path(testing::TempDir()) / "nccl-ext-venv";
  fs::create_directories(home / "lib" / "python3.12");
  NcclSearch search;
  search.virtualEnv = home.string();
  const auto candidates = ncclCandidates(search);
  EXPECT_EQ(candidates.front().path, (home / "lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2").string());
  fs::remove_all(home);
}

}  // namespace
}  // namespace nccl_ext
