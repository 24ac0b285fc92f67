// SPDX-License-Identifier: Apache-2.0
#include "runtime/tcp_meeting.hpp"

#include "nccl/loader.hpp"
#include "runtime/wire.hpp"

namespace nccl_ext {
namespace {

constexpr const char* kOp = "joinRank";
constexpr std::int64_t kProtocol = 1;
constexpr std::chrono::milliseconds kAcceptPatience{100};
constexpr std::chrono::seconds kGreetingPatience{5};
// How much longer than rank 0 a rank waits for its answer: rank 0's own deadline comes first and names who is missing.
constexpr std::chrono::seconds kAnswerGrace{2};
constexpr std::size_t kMaxGreeting = 4096;
constexpr std::size_t kMaxFrame = 1u << 30;

struct Greeting {
  std::int64_t protocol = kProtocol;
  std::int64_t rank = 0, size = 0, ncclVersion = 0;
  std::string token;
};

Bytes encode(const Greeting& greeting) {
  return Writer()
      .number(greeting.protocol)
      .number(greeting.rank)
      .number(greeting.size)
      .number(greeting.ncclVersion)
      .block(greeting.token)
      .take();
}

// An answer: 1 and everyone's payloads, or 0 and a record.
Bytes encode(const Outcome<std::vector<Bytes>>& outcome) {
  Writer out;
  if (!outcome) return out.number(0).record(outcome.error()).take();
  out.number(1).number(static_cast<std::int64_t>(outcome.value().size()));
  for (const Bytes& payload : outcome.value()) out.block(payload);
  return out.take();
}

Failure lost(int rank, int peer, const std::string& what) {
  return fail(ErrorCode::kRankLost, kOp, what)
      .ofRank(rank)
      .fromPeer(peer)
      .helped("Dispose the remaining ranks and make a new world.");
}

Outcome<std::vector<Bytes>> decodeAnswer(const Bytes& frame, int rank) {
  Reader in(frame);
  if (in.number() == 0) {
    ErrorRecord error = in.record();
    if (in.good()) return error;
  } else {
    std::vector<Bytes> payloads(static_cast<std::size_t>(in.number()));
    for (Bytes& payload : payloads) payload = in.block();
    if (in.good()) return payloads;
  }
  return lost(rank, 0, "rank 0 sent an answer that cannot be read");
}

}  // namespace

TcpMeeting::TcpMeeting(TcpMeetingConfig config) : config_(std::move(config)) {
  if (config_.rank == 0) hub_ = std::make_unique<LocalMeeting>(config_.size);
}

TcpMeeting::~TcpMeeting() {
  closing_ = true;
  socket_.shutdown();
  if (hub_) {
    const ErrorRecord gone = lost(0, 0, "rank 0 ended");
    for (int rank = 0; rank < config_.size; rank++) hub_->leave(rank, gone);
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [rank, socket] : connected_) socket->shutdown();
  }
  if (acceptor_.joinable()) acceptor_.join();
  for (std::thread& server : servers_) server.join();
}

Outcome<std::vector<Bytes>> TcpMeeting::gather(int rank, const Arrival& arrival, Clock::time_point deadline) {
  if (!started_) {
    if (const Status started = start(std::min(deadline, Clock::now() + config_.timeout)); !started)
      return started.error();
    started_ = true;
  }
  return hub_ ? hub_->gather(rank, arrival, deadline) : ask(arrival, deadline);
}

void TcpMeeting::leave(int rank, const ErrorRecord& reason) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!left_) left_ = reason;
    if (!hub_) socket_.shutdown();
  }
  if (hub_) hub_->leave(rank, reason);
}

std::optional<ErrorRecord> TcpMeeting::leftWith() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return left_;
}

Status TcpMeeting::start(Clock::time_point deadline) {
  return hub_ ? listen() : connect(deadline);
}

Status TcpMeeting::listen() {
  Outcome<Socket> listener = Socket::listenOn(config_.address, config_.port);
  if (!listener) return listener.error();
  listener_ = std::move(listener.value());
  acceptor_ = std::thread([this] { acceptAll(); });
  return ok();
}

void TcpMeeting::acceptAll() {
  while (!closing_) {
    std::optional<Socket> socket = listener_.accept(kAcceptPatience);
    if (!socket) continue;
    servers_.emplace_back(
        [this, accepted = std::make_shared<Socket>(std::move(*socket))] { serve(std::move(*accepted)); });
  }
}

// One rank's connection at rank 0.
void TcpMeeting::serve(Socket socket) {
  int rank = -1;
  const std::optional<ErrorRecord> refused = greet(socket, rank);
  const auto greetingDeadline = Clock::now() + kGreetingPatience;
  if (refused) {
    (void)socket.send(encode(Outcome<std::vector<Bytes>>(*refused)), greetingDeadline);
    return;
  }
  if (rank < 0) return;
  bool alive = socket.send(encode(Outcome<std::vector<Bytes>>(std::vector<Bytes>{})), greetingDeadline);
  while (alive) {
    // A rank may be silent for as long as it likes between collective calls.
    const std::optional<Bytes> frame = socket.receive(Clock::time_point::max(), kMaxFrame);
    if (!frame) break;
    Reader in(*frame);
    Arrival arrival;
    arrival.op = in.text();
    arrival.topic = in.text();
    arrival.payload = in.block();
    const auto wait = std::chrono::milliseconds(in.number());
    if (!in.good()) break;
    const Outcome<std::vector<Bytes>> outcome = hub_->gather(rank, arrival, Clock::now() + wait);
    alive = socket.send(encode(outcome), Clock::now() + config_.timeout);
  }
  hub_->leave(rank, lost(rank, rank, "the connection of rank " + std::to_string(rank) + " ended"));
  const std::lock_guard<std::mutex> lock(mutex_);
  connected_.erase(rank);
}

// Reads and checks the greeting. A stranger (no greeting, another token) changes nothing for the ranks that meet here;
// one that belongs to the world but does not fit it ends it for all.
std::optional<ErrorRecord> TcpMeeting::greet(Socket& socket, int& rank) {
  const std::optional<Bytes> frame = socket.receive(Clock::now() + kGreetingPatience, kMaxGreeting);
  if (!frame) return std::nullopt;
  Reader in(*frame);
  Greeting seen;
  seen.protocol = in.number();
  seen.rank = in.number();
  seen.size = in.number();
  seen.ncclVersion = in.number();
  seen.token = in.text();
  const auto refuse = [&](ErrorCode code, const std::string& detail) {
    return fail(code, kOp, detail).ofRank(static_cast<int>(seen.rank)).fromPeer(0);
  };
  if (!in.good() || seen.protocol != kProtocol)
    return refuse(ErrorCode::kBackendVersion, "the ranks run different versions of nccl-ext");
  if (seen.token != config_.token) return refuse(ErrorCode::kLauncher, "rank 0 has another token");
  const std::string name = "rank " + std::to_string(seen.rank);
  if (seen.rank < 1 || seen.rank >= config_.size) {
    return refuse(ErrorCode::kLauncher, name + " is not one of rank 0's world of " + std::to_string(config_.size));
  }
  std::optional<ErrorRecord> unfit;
  if (seen.size != config_.size) {
    unfit = refuse(ErrorCode::kLauncher, name + " has a world of " + std::to_string(seen.size) +
                                             " ranks, rank 0 one of " + std::to_string(config_.size))
                .expecting(static_cast<std::int64_t>(config_.size), seen.size)
                .helped("Set the same WORLD_SIZE on all ranks.");
  } else if (seen.ncclVersion != config_.ncclVersion) {
    const std::string own = ncclVersionText(config_.ncclVersion),
                      other = ncclVersionText(static_cast<int>(seen.ncclVersion));
    unfit = refuse(ErrorCode::kNcclVersion, name + " has NCCL " + other + ", rank 0 " + own)
                .expecting(own, other)
                .helped("Give all ranks the same NCCL, for example with NCCL_EXT_NCCL_LIBRARY.");
  }
  if (unfit) {
    hub_->leave(static_cast<int>(seen.rank), *unfit);
    return unfit;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!connected_.emplace(static_cast<int>(seen.rank), &socket).second) {
    return refuse(ErrorCode::kLauncher, "another process is " + name + " already")
        .helped("Give every process a RANK of its own.");
  }
  rank = static_cast<int>(seen.rank);
  return std::nullopt;
}

Status TcpMeeting::connect(Clock::time_point deadline) {
  Outcome<Socket> socket = Socket::connectTo(config_.address, config_.port, deadline);
  if (!socket) {
    ErrorRecord error = socket.error();
    error.rank = config_.rank;
    return error;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (left_) return *left_;
    socket_ = std::move(socket.value());
  }
  Greeting greeting;
  greeting.rank = config_.rank;
  greeting.size = config_.size;
  greeting.ncclVersion = config_.ncclVersion;
  greeting.token = config_.token;
  if (!socket_.send(encode(greeting), deadline)) return lost(config_.rank, 0, "the connection to rank 0 ended");
  const std::optional<Bytes> answer = socket_.receive(deadline, kMaxFrame);
  if (!answer) return leftWith().value_or(lost(config_.rank, 0, "rank 0 did not answer"));
  const Outcome<std::vector<Bytes>> welcome = decodeAnswer(*answer, config_.rank);
  return welcome ? ok() : Status(welcome.error());
}

Outcome<std::vector<Bytes>> TcpMeeting::ask(const Arrival& arrival, Clock::time_point deadline) {
  const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  const Bytes frame = Writer().block(arrival.op).block(arrival.topic).block(arrival.payload).number(wait).take();
  std::optional<Bytes> answer;
  if (socket_.send(frame, deadline)) answer = socket_.receive(deadline + kAnswerGrace, kMaxFrame);
  if (answer) return decodeAnswer(*answer, config_.rank);
  if (const auto left = leftWith()) return *left;
  return lost(config_.rank, 0, "the connection to rank 0 ended");
}

}  // namespace nccl_ext
