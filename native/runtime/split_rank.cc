// SPDX-License-Identifier: Apache-2.0
#include "runtime/split_rank.hpp"

#include <algorithm>

#include "runtime/cuda_error.hpp"
#include "runtime/open_rank.hpp"
#include "runtime/verdict.hpp"
#include "runtime/wire.hpp"

namespace nccl_ext {
namespace {

constexpr const char* kOp = "split";
// NCCL connects the ranks anew, which takes long, however short a wait's deadline is.
constexpr Timeout kLeastSplit{30'000};
// A rank that gave up earlier waits for those that still try.
constexpr Timeout kVerdictGrace{2'000};

struct Ask {
  SplitRequest request;
  Bytes verdict;
};

Bytes encode(const SplitRequest& request, const Bytes& verdict) {
  return Writer().number(request.color).number(request.key).block(verdict).take();
}

Ask decodeAsk(const Bytes& bytes) {
  Reader in(bytes);
  Ask ask;
  ask.request.color = in.number();
  ask.request.key = in.number();
  ask.verdict = in.block();
  return ask;
}

std::optional<ErrorRecord> outside(const char* name, std::int64_t value, std::int64_t least, int rank) {
  if (value >= least && value <= INT32_MAX) return std::nullopt;
  return fail(ErrorCode::kInvalidArgument, kOp,
              std::string(name) + " must be an integer from " + std::to_string(least) + " to " +
                  std::to_string(INT32_MAX))
      .ofRank(rank);
}

std::optional<ErrorRecord> problemOf(const RankState& parent, RankState& child, const SplitRequest& request) {
  if (const auto color = outside("color", request.color, NCCL_SPLIT_NOCOLOR, parent.rank)) return color;
  if (const auto key = outside("key", request.key, INT32_MIN, parent.rank)) return key;
  if (request.color == NCCL_SPLIT_NOCOLOR) return std::nullopt;
  // Before anybody waits, and for as many ranks as there can be.
  const Status memory = allocateRank(child, *parent.world->api, parent.world->size);
  return memory ? std::nullopt : std::optional<ErrorRecord>(memory.error());
}

// Ranks of the parent that ask for `color`, in the order that they have in the child.
std::vector<int> membersOf(const std::vector<Ask>& asks, std::int64_t color) {
  std::vector<int> members;
  for (std::size_t rank = 0; rank < asks.size(); rank++) {
    if (asks[rank].request.color == color) members.push_back(static_cast<int>(rank));
  }
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return asks[static_cast<std::size_t>(a)].request.key < asks[static_cast<std::size_t>(b)].request.key;
  });
  return members;
}

// One object for all ranks of this process: the first that comes makes it.
std::shared_ptr<World> partOf(const std::shared_ptr<World>& parent, const std::string& name, int rank, int size) {
  const std::lock_guard<std::mutex> lock(parent->partsMutex);
  auto& parts = parent->parts;
  for (auto part = parts.begin(); part != parts.end();)
    part = part->second.expired() ? parts.erase(part) : std::next(part);
  std::shared_ptr<World> world = parts[name].lock();
  if (world) return world;
  world = std::make_shared<World>();
  world->api = parent->api;
  world->size = size;
  world->timeout = parent->timeout;
  world->identity = parent->identity;
  world->oneProcess = parent->oneProcess;
  world->parent = parent;
  world->meeting = parent->meeting->group(name, rank, size);
  world->open = world->oneProcess ? size : 1;
  parts[name] = world;
  return world;
}

// Communicator, control block, and the way to the others; a failure is this rank's.
Status open(RankState& parent, RankState& child, World& world, int rank, Clock::time_point deadline) {
  child.rank = rank;
  child.properties = child.comm->properties();
  child.ranksOnGpu = parent.ranksOnGpu;
  child.smsAsked = parent.smsAsked;
  child.smBudget = parent.smBudget;
  child.bulkCopies = parent.bulkCopies;
  child.condition = parent.condition;
  if (const Status connected = connectRank(child, world, deadline); !connected) return connected;
  if (world.oneProcess) return ok();
  const Outcome<std::vector<Bytes>> here = world.meeting->gather(rank, {kOp, "here", {}}, deadline);
  return here ? ok() : Status(here.error());
}

}  // namespace

SplitResult splitRank(RankState& parent, RankState& child, const SplitRequest& request) {
  World& world = *parent.world;
  const DeviceGuard guard(parent.device);
  const auto failed = [&](ErrorRecord error, bool poisonsParent) {
    error.rank = parent.rank;
    (void)closeRank(child, true, Clock::now());
    SplitResult result;
    result.error = std::move(error);
    result.poisonsParent = poisonsParent;
    return result;
  };
  const std::int64_t number = parent.splits++;
  const auto problem = problemOf(parent, child, request);
  Outcome<std::vector<Bytes>> asked =
      world.meeting->gather(parent.rank, {kOp, kOp, encode(request, verdictOf(problem))}, Clock::now() + world.timeout);
  if (!asked) return failed(asked.error(), poisons(asked.error()));
  std::vector<Ask> asks;
  std::vector<Bytes> verdicts;
  for (const Bytes& bytes : asked.value()) verdicts.push_back(asks.emplace_back(decodeAsk(bytes)).verdict);
  if (const auto refused = refusalOf(kOp, verdicts, problem, parent.rank)) return failed(*refused, false);

  const bool takesPart = request.color != NCCL_SPLIT_NOCOLOR;
  const std::vector<int> members = membersOf(asks, request.color);
  const auto own = std::find(members.begin(), members.end(), parent.rank);
  SplitResult result;
  result.rank = static_cast<int>(own - members.begin());
  result.size = static_cast<int>(members.size());
  const auto deadline = Clock::now() + std::max(world.timeout, kLeastSplit);
  Outcome<std::unique_ptr<Comm>> comm =
      parent.comm->split(static_cast<int>(request.color), result.rank, child.stop, deadline);
  if (!comm) return failed(comm.error(), true);
  std::optional<ErrorRecord> broken;
  if (takesPart) {
    child.comm = std::move(comm.value());
    result.world =
        partOf(parent.world, std::to_string(number) + "." + std::to_string(request.color), result.rank, result.size);
    if (const Status opened = open(parent, child, *result.world, result.rank, deadline); !opened)
      result.world->meeting->leave(result.rank, *(broken = opened.error()));
  }
  // Nobody's barrier may arrive before everybody's flags are clear, and all ranks of a part exist or none.
  Outcome<std::vector<Bytes>> ready =
      world.meeting->gather(parent.rank, {kOp, "split ready", verdictOf(broken)}, deadline + kVerdictGrace);
  if (!ready) return failed(ready.error(), poisons(ready.error()));
  if (!takesPart) return SplitResult();
  std::vector<Bytes> ours(ready.value().size());
  for (const int member : members)
    ours[static_cast<std::size_t>(member)] = ready.value()[static_cast<std::size_t>(member)];
  if (const auto refused = refusalOf(kOp, ours, broken, parent.rank)) return failed(*refused, false);
  return result;
}

}  // namespace nccl_ext
