// SPDX-License-Identifier: Apache-2.0
#include "runtime/identity.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "nccl/loader.hpp"
#include "runtime/wire.hpp"

namespace nccl_ext {
namespace {

constexpr const char* kOp = "init";

// One value that must be equal on all ranks.
struct Field {
  const char* name;
  ErrorCode code;
  std::string (*valueOf)(const RankIdentity&);
  const char* help;
};

constexpr const char* kSamePackages = "Install the same version of nccl-ext and its backend for all ranks.";
constexpr const char* kSameOptions = "Pass the same options to all ranks.";

const Field kFields[] = {
    {"the backend's contract", ErrorCode::kDisagreement,
     [](const RankIdentity& one) { return std::to_string(one.contract); }, kSamePackages},
    {"the backend's version", ErrorCode::kDisagreement, [](const RankIdentity& one) { return one.backend; },
     kSamePackages},
    {"the backend's CUDA", ErrorCode::kDisagreement,
     [](const RankIdentity& one) { return std::to_string(one.cudaMajor); }, kSamePackages},
    {"the version of NCCL", ErrorCode::kNcclVersion, [](const RankIdentity& one) { return ncclVersionText(one.nccl); },
     "Give all ranks the same NCCL, for example with NCCL_EXT_NCCL_LIBRARY."},
    {"timeoutMs", ErrorCode::kDisagreement, [](const RankIdentity& one) { return std::to_string(one.timeoutMs); },
     kSameOptions},
};

// As core/src/runtime/agreement.ts: rank 0 is what the others are compared with.
std::optional<ErrorRecord> disagreement(const std::vector<RankIdentity>& ranks) {
  for (const Field& field : kFields) {
    const std::string expected = field.valueOf(ranks.front());
    std::vector<int> odd;
    for (std::size_t rank = 1; rank < ranks.size(); rank++) {
      if (field.valueOf(ranks[rank]) != expected) odd.push_back(static_cast<int>(rank));
    }
    if (odd.empty()) continue;
    const std::string seen = field.valueOf(ranks[static_cast<std::size_t>(odd.front())]);
    return fail(field.code, kOp,
                std::string("ranks disagree on ") + field.name + ": rank 0 has " + expected + ", " + rankNames(odd) +
                    (odd.size() == 1 ? " has " : " have ") + seen)
        .fromPeer(odd.front())
        .expecting(expected, seen)
        .helped(field.help);
  }
  return std::nullopt;
}

bool shareGpu(const RankIdentity& one, const RankIdentity& other) {
  return !one.gpu.empty() && one.gpu == other.gpu && one.host == other.host;
}

std::vector<int> neighboursOf(const std::vector<RankIdentity>& ranks, int rank) {
  std::vector<int> found;
  for (std::size_t other = 0; other < ranks.size(); other++) {
    const bool self = static_cast<int>(other) == rank;
    if (self || shareGpu(ranks[static_cast<std::size_t>(rank)], ranks[other])) found.push_back(static_cast<int>(other));
  }
  return found;
}

// Of each of the ranks of one GPU that asks for nothing.
int defaultShareOf(const std::vector<RankIdentity>& ranks, const std::vector<int>& sharing) {
  const int multiprocessors = ranks[static_cast<std::size_t>(sharing.front())].multiprocessors;
  return std::max(1, multiprocessors * 4 / 5 / static_cast<int>(sharing.size()));
}

// What the kernels of `sharing`, the ranks of one GPU, may hold, as "28 + 28 + 4".
std::string sharesText(const std::vector<RankIdentity>& ranks, const std::vector<int>& sharing) {
  constexpr std::size_t kMost = 16;
  std::string text;
  for (std::size_t i = 0; i < sharing.size(); i++) {
    if (i == kMost) return text + " + ...";
    text += (i == 0 ? "" : " + ") + std::to_string(smBudgetOf(ranks, sharing[i]));
  }
  return text;
}

// Whether the ranks of a GPU ask for more than it has. Default shares alone leave room.
std::optional<ErrorRecord> tooManySms(const std::vector<RankIdentity>& ranks, const std::vector<int>& sharing) {
  const RankIdentity& first = ranks[static_cast<std::size_t>(sharing.front())];
  std::int64_t sum = 0;
  bool asked = false, shares = false;
  for (const int rank : sharing) {
    sum += smBudgetOf(ranks, rank);
    const bool asks = ranks[static_cast<std::size_t>(rank)].sms > 0;
    asked = asked || asks;
    shares = shares || !asks;
  }
  if (!asked || first.multiprocessors == 0 || sum <= first.multiprocessors) return std::nullopt;
  return fail(ErrorCode::kInvalidArgument, kOp,
              "sms: " + rankNames(sharing) + (sharing.size() == 1 ? " asks for " : " ask for ") +
                  (sharing.size() == 1 ? "" : sharesText(ranks, sharing) + " = ") + std::to_string(sum) +
                  " SMs, more than the " + std::to_string(first.multiprocessors) + " of " + first.gpu)
      .fromPeer(sharing.front())
      .expecting(static_cast<std::int64_t>(first.multiprocessors), sum)
      .helped("Kernels that wait for each other must all be on the GPU: ask for at most " +
              std::to_string(first.multiprocessors) + " on all of its ranks together" +
              (shares ? "; a rank that asks for nothing has " + std::to_string(defaultShareOf(ranks, sharing)) : "") +
              ".");
}

// Ranks that would not fit on their GPU together.
std::optional<ErrorRecord> crowding(const std::vector<RankIdentity>& ranks) {
  for (int rank = 0; rank < static_cast<int>(ranks.size()); rank++) {
    const RankIdentity& one = ranks[static_cast<std::size_t>(rank)];
    const std::vector<int> sharing = neighboursOf(ranks, rank);
    if (sharing.size() > 1 && !one.mayShareGpu) {
      return fail(ErrorCode::kUnsupported, kOp,
                  rankNames(sharing) + " share " + one.gpu + ", and NCCL_MULTI_RANK_GPU_ENABLE of rank " +
                      std::to_string(rank) + " forbids it")
          .fromPeer(rank)
          .helped("Unset NCCL_MULTI_RANK_GPU_ENABLE, or give every rank a GPU of its own.");
    }
    if (const auto crowd = tooManySms(ranks, sharing)) return crowd;
  }
  return std::nullopt;
}

}  // namespace

std::string hostIdentity() {
  // NCCL's own name of a machine, where it is given one.
  if (const char* given = std::getenv("NCCL_HOSTID"); given != nullptr && *given != '\0') return given;
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  if (!boot.empty()) return boot;
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

Bytes encode(const RankIdentity& identity) {
  return Writer()
      .block(identity.host)
      .block(identity.gpu)
      .number(identity.multiprocessors)
      .number(identity.mayShareGpu ? 1 : 0)
      .block(identity.backend)
      .number(identity.contract)
      .number(identity.cudaMajor)
      .number(identity.nccl)
      .number(identity.timeoutMs)
      .number(identity.sms)
      .take();
}

std::optional<RankIdentity> decodeIdentity(const Bytes& bytes) {
  Reader in(bytes);
  RankIdentity identity;
  identity.host = in.text();
  identity.gpu = in.text();
  identity.multiprocessors = static_cast<int>(in.number());
  identity.mayShareGpu = in.number() != 0;
  identity.backend = in.text();
  identity.contract = static_cast<int>(in.number());
  identity.cudaMajor = static_cast<int>(in.number());
  identity.nccl = static_cast<int>(in.number());
  identity.timeoutMs = in.number();
  identity.sms = static_cast<int>(in.number());
  if (!in.good()) return std::nullopt;
  return identity;
}

std::optional<ErrorRecord> misfitOf(const std::vector<RankIdentity>& ranks, int self) {
  std::optional<ErrorRecord> misfit = disagreement(ranks);
  if (!misfit) misfit = crowding(ranks);
  if (misfit) misfit->rank = self;
  return misfit;
}

int ranksOnGpuOf(const std::vector<RankIdentity>& ranks, int rank) {
  return static_cast<int>(neighboursOf(ranks, rank).size());
}

int smBudgetOf(const std::vector<RankIdentity>& ranks, int rank) {
  const RankIdentity& one = ranks[static_cast<std::size_t>(rank)];
  if (one.sms > 0) return one.sms;
  return defaultShareOf(ranks, neighboursOf(ranks, rank));
}

}  // namespace nccl_ext
