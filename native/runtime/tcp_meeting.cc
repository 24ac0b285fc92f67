// SPDX-License-Identifier: Apache-2.0
#include "runtime/tcp_meeting.hpp"

#include "runtime/tcp_frames.hpp"

namespace nccl_ext {
namespace {

// How much longer than rank 0 a rank waits for its answer: rank 0's own deadline comes first and names who is missing.
constexpr std::chrono::seconds kAnswerGrace{2};

}  // namespace

TcpMeeting::TcpMeeting(TcpMeetingConfig config)
    : TcpMeeting(config, config.rank == 0 ? std::make_shared<TcpHub>(config) : nullptr) {}

TcpMeeting::TcpMeeting(TcpMeetingConfig config, std::shared_ptr<TcpHub> hub)
    : config_(std::move(config)), hub_(std::move(hub)) {
  if (hub_) here_ = hub_->join(config_.group, config_.size, config_.rank);
}

TcpMeeting::~TcpMeeting() {
  if (here_) here_->leave(config_.rank, lostConnection(config_.rank, config_.rank, "the rank ended"));
  socket_.shutdown();
  if (listener_.joinable()) listener_.join();
}

Outcome<std::vector<Bytes>> TcpMeeting::gather(int rank, const Arrival& arrival, Clock::time_point deadline) {
  if (!started_) {
    if (const Status started = start(std::min(deadline, Clock::now() + config_.timeout)); !started)
      return started.error();
    started_ = true;
  }
  return here_ ? here_->gather(rank, arrival, deadline) : ask(arrival, deadline);
}

void TcpMeeting::leave(int rank, const ErrorRecord& reason) {
  if (here_) return here_->leave(rank, reason);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (left_) return;
  left_ = reason;
  told_ = nullptr;
  heard_.notify_all();
  Request farewell;
  farewell.leaves = reason;
  // Only what the connection takes at once; in the middle of another frame there is no place for it.
  if (const std::unique_lock<std::mutex> sending(sending_, std::try_to_lock); sending && socket_.isOpen())
    (void)socket_.send(encode(farewell), Clock::now());
  socket_.shutdown();
}

void TcpMeeting::watch(int rank, OnLoss told) {
  if (here_) return here_->watch(rank, std::move(told));
  std::unique_lock<std::mutex> lock(mutex_);
  if (left_) return;
  if (!lost_) {
    told_ = std::move(told);
    return;
  }
  const int lost = *lost_;
  lock.unlock();
  told(lost);
}

std::unique_ptr<Meeting> TcpMeeting::group(const std::string& name, int rank, int size) {
  TcpMeetingConfig config = config_;
  config.group += "/" + name;
  config.rank = rank;
  config.size = size;
  return std::unique_ptr<Meeting>(new TcpMeeting(std::move(config), hub_));
}

std::optional<ErrorRecord> TcpMeeting::leftWith() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return left_;
}

Status TcpMeeting::start(Clock::time_point deadline) {
  if (!hub_) return connect(deadline);
  return config_.group.empty() ? hub_->listen() : ok();
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
  greeting.group = config_.group;
  greeting.rank = config_.rank;
  greeting.size = config_.size;
  greeting.token = config_.token;
  const auto lost = [this](const char* what) { return leftWith().value_or(lostConnection(config_.rank, 0, what)); };
  if (!send(encode(greeting), deadline)) return lost("the connection to rank 0 ended");
  const std::optional<Bytes> answer = socket_.receive(deadline, kMaxFrame);
  if (!answer) return lost("rank 0 did not answer");
  const Outcome<std::vector<Bytes>> welcome = decodeAnswer(*answer, config_.rank);
  if (!welcome) return welcome.error();
  listener_ = std::thread([this] { listen(); });
  return ok();
}

bool TcpMeeting::send(const Bytes& frame, Clock::time_point deadline) {
  const std::lock_guard<std::mutex> sending(sending_);
  return socket_.send(frame, deadline);
}

Outcome<std::vector<Bytes>> TcpMeeting::ask(const Arrival& arrival, Clock::time_point deadline) {
  const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  const bool asked = send(encode(Request{arrival, wait, {}}), deadline);
  std::unique_lock<std::mutex> lock(mutex_);
  // Where it could not be asked, rank 0 may have ended and left a farewell.
  const auto until = (asked ? deadline : Clock::now()) + kAnswerGrace;
  heard_.wait_until(lock, until, [this] { return !answers_.empty() || left_ || ended_; });
  if (!answers_.empty()) {
    const Bytes answer = std::move(answers_.front());
    answers_.pop_front();
    return decodeAnswer(answer, config_.rank);
  }
  if (left_) return *left_;
  if (farewell_) return *farewell_;
  return lostConnection(config_.rank, 0, "the connection to rank 0 ended");
}

// All that rank 0 says, until the connection ends. Without a farewell, rank 0 ended without one.
void TcpMeeting::listen() {
  while (std::optional<Bytes> frame = socket_.receive(Clock::time_point::max(), kMaxFrame)) hear(std::move(*frame));
  std::unique_lock<std::mutex> lock(mutex_);
  ended_ = true;
  heard_.notify_all();
  const bool torn = !farewell_;
  lock.unlock();
  if (torn) lose(0);
}

void TcpMeeting::hear(Bytes frame) {
  const std::optional<Notice> notice = decodeNotice(frame);
  if (notice && !notice->farewell) return lose(notice->lost);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (notice)
    farewell_ = notice->farewell;
  else
    answers_.push_back(std::move(frame));
  heard_.notify_all();
}

void TcpMeeting::lose(int lost) {
  OnLoss told;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (lost_ || left_) return;
    lost_ = lost;
    told.swap(told_);
  }
  if (told) told(lost);
}

}  // namespace nccl_ext
