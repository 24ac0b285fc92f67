// SPDX-License-Identifier: Apache-2.0
// The meetings of ranks in different processes: rank 0 of the world listens (runtime/tcp_hub.hpp), everybody else
// connects and stays connected.
#pragma once

#include <deque>

#include "runtime/tcp_hub.hpp"

namespace nccl_ext {

class TcpMeeting final : public Meeting {
 public:
  explicit TcpMeeting(TcpMeetingConfig config);
  // Ends the connection; at rank 0 of the world, all of them once the last group is gone.
  ~TcpMeeting() override;

  // The first one connects. ERR_LAUNCHER: wrong world size, a rank twice, another token; ERR_TIMEOUT naming rank 0 when
  // it cannot be reached.
  Outcome<std::vector<Bytes>> gather(int rank, const Arrival& arrival, Clock::time_point deadline) override;
  void leave(int rank, const ErrorRecord& reason) override;
  void watch(int rank, OnLoss told) override;
  // Its ranks connect to rank 0 of the world as well, which must not leave before they do.
  std::unique_ptr<Meeting> group(const std::string& name, int rank, int size) override;

 private:
  TcpMeeting(TcpMeetingConfig config, std::shared_ptr<TcpHub> hub);
  Status start(Clock::time_point deadline);
  Status connect(Clock::time_point deadline);
  bool send(const Bytes& frame, Clock::time_point deadline);
  Outcome<std::vector<Bytes>> ask(const Arrival& arrival, Clock::time_point deadline);
  std::optional<ErrorRecord> leftWith() const;
  void listen();
  void hear(Bytes frame);
  void lose(int lost);

  const TcpMeetingConfig config_;
  bool started_ = false;

  // In the process of the world's rank 0. The meeting ends before the hub, which looks for it.
  std::shared_ptr<TcpHub> hub_;
  std::shared_ptr<LocalMeeting> here_;

  // In the others.
  mutable std::mutex mutex_;
  std::condition_variable heard_;
  std::optional<ErrorRecord> left_;
  std::deque<Bytes> answers_;  // that nobody has taken
  std::optional<ErrorRecord> farewell_;
  bool ended_ = false;  // the connection
  std::optional<int> lost_;
  OnLoss told_;
  Socket socket_;
  std::mutex sending_;    // held while a frame is sent
  std::thread listener_;  // reads whatever comes
};

}  // namespace nccl_ext
