// SPDX-License-Identifier: Apache-2.0
#include "runtime/tcp_hub.hpp"

#include "runtime/tcp_frames.hpp"

namespace nccl_ext {
namespace {

constexpr const char* kOp = "joinRank";
constexpr std::chrono::milliseconds kAcceptPatience{100};
constexpr std::chrono::seconds kGreetingPatience{5};
// For answers and farewells that are on their way when the hub ends; a peer that does not read is not waited for longer.
constexpr std::chrono::seconds kAnswerPatience{1};

}  // namespace

TcpHub::TcpHub(TcpMeetingConfig config) : config_(std::move(config)) {}

TcpHub::~TcpHub() {
  closing_ = true;
  listener_.shutdown();
  if (acceptor_.joinable()) acceptor_.join();
  {
    std::unique_lock<std::mutex> lock(mutex_);
    for (const Member& member : members_) {
      if (const auto meeting = groups_[member.first].lock()) meeting->leave(member.second, farewellTo(member));
    }
    answered_.wait_for(lock, kAnswerPatience, [this] { return answering_ == 0; });
    for (Socket* socket : sockets_) socket->shutdownReading();
    answered_.wait_for(lock, kAnswerPatience, [this] { return sockets_.empty(); });
    for (Socket* socket : sockets_) socket->shutdown();
  }
  for (Connection& connection : connections_) connection.thread.join();
}

// What a rank learns when this hub ends: whom the world lost first, if anybody but rank 0. Made before the members leave.
ErrorRecord TcpHub::farewellTo(const Member& member) {
  const ErrorRecord gone = lostConnection(member.second, 0, "rank 0 ended");
  // Only the world's own numbers are the member's.
  if (!member.first.empty()) return gone;
  if (!farewell_) {
    const auto world = groups_[""].lock();
    const auto loss = world ? world->lossFor(-1) : std::nullopt;
    farewell_ =
        loss && loss->peer != 0 ? ErrorRecord(lostConnection(-1, loss->peer, "rank 0 ended: " + loss->detail)) : gone;
  }
  ErrorRecord own = *farewell_;
  own.rank = member.second;
  return own.peer == own.rank ? gone : own;
}

Status TcpHub::listen() {
  Outcome<Socket> listener = Socket::listenOn(config_.address, config_.port);
  if (!listener) return listener.error();
  listener_ = std::move(listener.value());
  acceptor_ = std::thread([this] { acceptAll(); });
  return ok();
}

std::shared_ptr<LocalMeeting> TcpHub::join(const std::string& group, int size, int rank) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (rank >= 0) members_.emplace(group, rank);
  std::shared_ptr<LocalMeeting> meeting = groups_[group].lock();
  if (!meeting) groups_[group] = meeting = std::make_shared<LocalMeeting>(size);
  return meeting;
}

void TcpHub::acceptAll() {
  while (!closing_) {
    reapEnded();
    std::optional<Socket> socket = listener_.accept(kAcceptPatience);
    if (!socket) continue;
    Connection& connection = connections_.emplace_back();
    connection.thread = std::thread([this, &connection, accepted = std::make_shared<Socket>(std::move(*socket))] {
      serve(std::move(*accepted));
      connection.ended = true;
    });
  }
}

// Groups come and go: what is left of their connections must not pile up.
void TcpHub::reapEnded() {
  connections_.remove_if([](Connection& connection) {
    if (!connection.ended) return false;
    connection.thread.join();
    return true;
  });
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto group = groups_.begin(); group != groups_.end();) {
    if (!group->second.expired()) {
      ++group;
      continue;
    }
    const std::string name = group->first;
    group = groups_.erase(group);
    for (auto member = members_.begin(); member != members_.end();)
      member = member->first == name ? members_.erase(member) : std::next(member);
  }
}

// One rank's connection, from its greeting to its end.
void TcpHub::serve(Socket accepted) {
  const auto line = std::make_shared<TcpLine>(std::move(accepted));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    // The hub ends the connections that it knows, and waits for all.
    if (closing_) return;
    sockets_.insert(&line->socket());
  }
  std::optional<Member> member;
  std::shared_ptr<LocalMeeting> meeting;
  const std::optional<ErrorRecord> refused = greet(line->socket(), member, meeting);
  if (refused) {
    (void)line->send(encode(Outcome<std::vector<Bytes>>(*refused)), Clock::now() + kGreetingPatience);
    // Only now: the others may end this hub as soon as they hear of it.
    if (meeting) meeting->leave(refused->rank, *refused);
  } else if (member) {
    const int rank = member->second;
    answer(line, *meeting, rank);
    if (closing_) sendFarewell(*line, *member);
    meeting->leave(rank, lostConnection(rank, rank, "the connection of rank " + std::to_string(rank) + " ended"));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  sockets_.erase(&line->socket());
  if (member && !refused) members_.erase(*member);
  answered_.notify_all();
}

// For who asks next: a record that says more than a connection that is gone.
void TcpHub::sendFarewell(TcpLine& line, const Member& member) {
  std::unique_lock<std::mutex> lock(mutex_);
  const ErrorRecord farewell = farewellTo(member);
  lock.unlock();
  (void)line.send(encode(Notice{-1, farewell}), Clock::now() + kAnswerPatience);
}

// Takes a rank that was let in to its meetings, until it goes.
void TcpHub::answer(const std::shared_ptr<TcpLine>& line, LocalMeeting& meeting, int rank) {
  const Outcome<std::vector<Bytes>> welcome(std::vector<Bytes>{});
  bool alive = line->send(encode(welcome), Clock::now() + kGreetingPatience);
  // Those who leave because the hub ends are not lost: a farewell says what there is to say.
  meeting.watch(rank, [this, line](int lost) {
    if (!closing_) line->tell(lost);
  });
  while (alive) {
    // A rank may be silent for as long as it likes between collective calls.
    const std::optional<Bytes> frame = line->socket().receive(Clock::time_point::max(), kMaxFrame);
    const std::optional<Request> request = frame ? decodeRequest(*frame) : std::nullopt;
    if (!request) return;
    if (request->leaves) return meeting.leave(rank, *request->leaves);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      answering_++;
    }
    const Outcome<std::vector<Bytes>> outcome = meeting.gather(rank, request->arrival, Clock::now() + request->wait);
    alive = line->send(encode(outcome), Clock::now() + config_.timeout);
    const std::lock_guard<std::mutex> lock(mutex_);
    answering_--;
    answered_.notify_all();
  }
}

// Reads and checks the greeting. A stranger (no greeting, another token) changes nothing for the ranks that meet here;
// one that belongs to the world but does not fit it ends it for all: it is refused, and there is a meeting to leave.
std::optional<ErrorRecord> TcpHub::greet(Socket& socket, std::optional<Member>& member,
                                         std::shared_ptr<LocalMeeting>& meeting) {
  const std::optional<Bytes> frame = socket.receive(Clock::now() + kGreetingPatience, kMaxGreeting);
  if (!frame) return std::nullopt;
  const std::optional<Greeting> seen = decodeGreeting(*frame);
  const int rank = seen ? static_cast<int>(seen->rank) : -1;
  const auto refuse = [&](ErrorCode code, const std::string& detail) {
    return fail(code, kOp, detail).ofRank(rank).fromPeer(0);
  };
  if (!seen || seen->protocol != kTcpProtocol)
    return refuse(ErrorCode::kBackendVersion, "the ranks run different versions of nccl-ext")
        .helped("Install the same version of nccl-ext for all ranks.");
  if (seen->token != config_.token)
    return refuse(ErrorCode::kLauncher, "rank 0 has another token").helped("Set the same NCCL_EXT_TOKEN on all ranks.");
  const std::string name = "rank " + std::to_string(rank);
  const int size = seen->group.empty() ? config_.size : static_cast<int>(seen->size);
  if (rank < 0 || rank >= size || size > config_.size) {
    return refuse(ErrorCode::kLauncher, name + " is not one of rank 0's world of " + std::to_string(size))
        .helped("Set the same WORLD_SIZE on all ranks.");
  }
  const auto joined = join(seen->group, size, -1);
  const int agreed = joined->size();
  if (seen->size != agreed) {
    if (rank < agreed) meeting = joined;
    return refuse(ErrorCode::kLauncher, name + " has a world of " + std::to_string(seen->size) +
                                            " ranks, rank 0 one of " + std::to_string(agreed))
        .expecting(static_cast<std::int64_t>(agreed), seen->size)
        .helped("Set the same WORLD_SIZE on all ranks.");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!members_.emplace(seen->group, rank).second) {
    return refuse(ErrorCode::kLauncher, "another process is " + name + " already")
        .helped("Give every process a RANK of its own.");
  }
  meeting = joined;
  member.emplace(seen->group, rank);
  return std::nullopt;
}

}  // namespace nccl_ext
