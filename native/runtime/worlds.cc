// SPDX-License-Identifier: Apache-2.0
// Worlds: their ranks are opened together and closed together, each on its worker. What happens between is in ranks.cc.
#include <algorithm>
#include <thread>

#include "nccl/loader.hpp"
#include "runtime/cuda_error.hpp"
#include "runtime/open_rank.hpp"
#include "runtime/overdue_work.hpp"
#include "runtime/runtime.hpp"
#include "runtime/tcp_meeting.hpp"

namespace nccl_ext {
namespace {

constexpr int kMaxLocalRanks = 1024;
// The first communicator of a process loads NCCL's kernels, which takes seconds, however short a wait's deadline is.
constexpr Timeout kLeastInit{60'000};
constexpr std::chrono::microseconds kDrainPoll{200};

ErrorRecord wrongSms(const char* op) {
  return fail(ErrorCode::kInvalidArgument, op, "sms must be at least 1, or 0 to let the backend choose");
}

std::shared_ptr<RankState> makeRank(const std::shared_ptr<World>& world, int number, const ProbedDevice& gpu) {
  auto rank = std::make_shared<RankState>();
  rank->rank = number;
  rank->device = gpu.index;
  rank->gpu = gpu;
  rank->world = world;
  rank->worker = std::make_unique<Worker>();
  world->locals.push_back(rank.get());
  return rank;
}

}  // namespace

Runtime::Runtime(RuntimeConfig config, std::function<void()> notify)
    : config_(std::move(config)),
      dyingBytes_(std::make_shared<std::atomic<std::int64_t>>(0)),
      mailbox_(std::move(notify)),
      reaper_(std::make_unique<Worker>()) {}

Runtime::~Runtime() {
  shutdown();
}

Facts Runtime::details() const {
  if (api_ == nullptr) return {};
  return {{"driver", "CUDA " + std::to_string(driverCuda_ / 1000) + "." + std::to_string(driverCuda_ % 1000 / 10)},
          {"nccl", ncclVersionText(api_->version)},
          {"ncclPath", api_->path},
          {"ncclCuda", api_->cudaMajor == 0 ? "unknown" : std::to_string(api_->cudaMajor)},
          {"devices", std::to_string(devices_.size())}};
}

// What every world begins with: its options, the driver and NCCL.
Outcome<std::shared_ptr<World>> Runtime::prepareWorld(int size, Timeout timeout, const char* op) {
  if (down_) return fail(ErrorCode::kDisposed, op, "the backend was disposed");
  if (timeout.count() < 1) return fail(ErrorCode::kInvalidArgument, op, "timeoutMs must be at least 1");
  Outcome<ProcessFacts> facts = prepareProcess(config_.cudaMajor, config_.nccl);
  if (!facts) return facts.error();
  api_ = facts.value().api;
  driverCuda_ = facts.value().driver.cudaVersion;
  devices_ = std::move(facts.value().devices);
  auto world = std::make_shared<World>();
  world->api = api_;
  world->size = size;
  world->timeout = timeout;
  world->identity.host = hostIdentity();
  world->identity.mayShareGpu = facts.value().mayShareGpu;
  world->identity.backend = config_.version;
  world->identity.contract = kContractVersion;
  world->identity.cudaMajor = config_.cudaMajor;
  world->identity.nccl = api_->version;
  world->identity.timeoutMs = timeout.count();
  return world;
}

void Runtime::createLocalRanks(const LocalRanksConfig& config, Done<std::vector<Handle>> done) {
  constexpr const char* kOp = "createLocalRanks";
  if (config.ranks < 1 || config.ranks > kMaxLocalRanks) {
    return done(
        fail(ErrorCode::kInvalidArgument, kOp, "ranks must be an integer from 1 to " + std::to_string(kMaxLocalRanks)));
  }
  if (!config.devices.empty() && config.devices.size() != static_cast<std::size_t>(config.ranks)) {
    return done(fail(ErrorCode::kInvalidArgument, kOp, "devices must hold one device per rank"));
  }
  if (!config.sms.empty() && config.sms.size() != static_cast<std::size_t>(config.ranks))
    return done(fail(ErrorCode::kInvalidArgument, kOp, "sms must hold one number per rank"));
  if (std::any_of(config.sms.begin(), config.sms.end(), [](int sms) { return sms < 0; })) return done(wrongSms(kOp));
  Outcome<std::shared_ptr<World>> prepared = prepareWorld(config.ranks, config.timeout, kOp);
  if (!prepared) return done(prepared.error());
  const std::shared_ptr<World>& world = prepared.value();
  world->oneProcess = true;
  world->meeting = std::make_unique<LocalMeeting>(config.ranks);
  const int devices = static_cast<int>(devices_.size());
  std::vector<Rank> ranks;
  for (int number = 0; number < config.ranks; number++) {
    const int device = config.devices.empty() ? number % devices : config.devices[static_cast<std::size_t>(number)];
    if (device < 0 || device >= devices) {
      return done(fail(ErrorCode::kInvalidArgument, kOp,
                       "rank " + std::to_string(number) + " asks for device " + std::to_string(device) +
                           "; this machine has 0 to " + std::to_string(devices - 1)));
    }
    ranks.push_back(makeRank(world, number, devices_[static_cast<std::size_t>(device)]));
    if (!config.sms.empty()) ranks.back()->smsAsked = config.sms[static_cast<std::size_t>(number)];
  }
  openRanks(std::move(ranks), std::move(done));
}

// Opens all ranks of this process at once; either all or none exist afterwards.
void Runtime::openRanks(std::vector<Rank> ranks, Done<std::vector<Handle>> done) {
  struct Opening {
    std::vector<Rank> ranks;
    std::size_t waiting;
    std::optional<ErrorRecord> error;  // the first; later ones follow from it
  };
  const auto world = ranks.front()->world;
  const auto opening = std::make_shared<Opening>(Opening{std::move(ranks), 0, std::nullopt});
  opening->waiting = opening->ranks.size();
  const auto deadline = Clock::now() + std::max(world->timeout, kLeastInit);
  for (const Rank& rank : opening->ranks) {
    ranks_.insert(rank);
    rank->worker->post([this, rank, world, opening, deadline, done] {
      mailbox_.post([this, rank, world, opening, done, opened = openRank(*rank, deadline)] {
        rank->opened = static_cast<bool>(opened);
        if (!opened && !opening->error) {
          opening->error = opened.error();
          for (const Rank& other : opening->ranks) other->stop = true;
        }
        if (--opening->waiting > 0) return;
        if (opening->error) {
          opening->ranks.clear();
          return closeRanks(world, [opening, done](const Status&) { done(*opening->error); });
        }
        std::vector<Handle> handles;
        for (const Rank& open : opening->ranks) handles.push_back(open->handle = handles_.add(open));
        world->open = static_cast<int>(handles.size());
        watchLosses(world, opening->ranks.front()->rank);
        done(handles);
      });
    });
  }
}

void Runtime::joinRank(const JoinConfig& config, Done<Handle> done) {
  constexpr const char* kOp = "joinRank";
  if (config.worldSize < 1 || config.rank < 0 || config.rank >= config.worldSize || config.localRank < 0) {
    return done(fail(ErrorCode::kInvalidArgument, kOp, "rank must be 0 to worldSize - 1, and localRank at least 0"));
  }
  if (config.sms < 0) return done(wrongSms(kOp));
  Outcome<std::shared_ptr<World>> prepared = prepareWorld(config.worldSize, config.timeout, kOp);
  if (!prepared) return done(prepared.error());
  const std::shared_ptr<World>& world = prepared.value();
  TcpMeetingConfig meeting;
  meeting.rank = config.rank;
  meeting.size = config.worldSize;
  meeting.address = config.address;
  meeting.port = config.port;
  meeting.timeout = config.timeout;
  meeting.token = config.token;
  world->meeting = std::make_unique<TcpMeeting>(meeting);
  const ProbedDevice& gpu = devices_[static_cast<std::size_t>(config.localRank) % devices_.size()];
  const Rank rank = makeRank(world, config.rank, gpu);
  rank->smsAsked = config.sms;
  openRanks({rank}, [done](Outcome<std::vector<Handle>> handles) {
    if (handles)
      done(handles.value().front());
    else
      done(handles.error());
  });
}

// Closes the communicators of all ranks of this process together. A task never owns its rank: a rank that died on its
// own worker would wait for itself.
void Runtime::closeRanks(const std::shared_ptr<World>& world, std::function<void(Status)> done) {
  struct Closing {
    std::vector<RankState*> ranks;
    std::size_t waiting;
    Status status;
  };
  const auto closing = std::make_shared<Closing>(Closing{std::exchange(world->locals, {}), 0, ok()});
  closing->waiting = closing->ranks.size();
  bool broken = world->broken;
  for (const RankState* rank : closing->ranks) broken = broken || rank->stop.load();
  const auto deadline = Clock::now() + world->timeout + kCloseGrace;
  for (RankState* rank : closing->ranks) {
    rank->worker->post([this, rank, closing, broken, deadline, done] {
      mailbox_.post([this, rank, closing, done, closed = closeRank(*rank, broken, deadline)] {
        if (!closed && closing->status) closing->status = closed;
        if (--closing->waiting > 0) return;
        for (RankState* dead : closing->ranks) {
          dyingBytes_->fetch_sub(dead->oldBytes);
          dead->world->meeting->leave(dead->rank, departure(*dead));
          ranks_.erase(
              std::find_if(ranks_.begin(), ranks_.end(), [dead](const Rank& one) { return one.get() == dead; }));
        }
        done(closing->status);
      });
    });
  }
}

// Kernels end by the stop words. No memory goes while one may still touch it, and a barrier touches the peers' too.
void Runtime::awaitDrained() {
  const auto deadline = Clock::now() + kCloseGrace;
  for (const Rank& rank : ranks_) {
    for (StreamState* stream : rank->streams) {
      for (retire(*stream); !stream->queue.empty() && Clock::now() < deadline; retire(*stream))
        std::this_thread::sleep_for(kDrainPoll);
    }
  }
}

void Runtime::shutdown() {
  if (std::exchange(down_, true)) return;
  mailbox_.close();
  for (const Rank& rank : ranks_) {
    const ErrorRecord error =
        fail(ErrorCode::kAborted, "shutdown", "the environment of rank " + std::to_string(rank->rank) + " ended")
            .ofRank(rank->rank);
    rank->stop = true;
    for (const Rank& child : rank->children) child->stop = true;
    poison(*rank, error);
    rank->world->meeting->leave(rank->rank, error);
    poller_.forget(rank.get());
    for (const PreparedTransfer* transfer : rank->transfers) poller_.forget(transfer);
    for (StreamState* stream : rank->streams) {
      poller_.forget(stream);
      // They hold the stream, and nobody is left to be told.
      stream->waiters.clear();
    }
  }
  awaitDrained();
  for (const Rank& rank : ranks_) {
    keepOverdueWork(*rank);
    releaseGraphs(*rank);
  }
  // All workers first: closing is collective among the ranks of a process.
  for (const Rank& rank : ranks_) {
    rank->worker->post([rank = rank.get()] { (void)closeRank(*rank, true, Clock::now() + kCloseGrace); });
  }
  for (const Rank& rank : ranks_) rank->worker.reset();
  reaper_.reset();
  handles_ = Handles();
  ranks_.clear();
}

}  // namespace nccl_ext
