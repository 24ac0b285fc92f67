// SPDX-License-Identifier: Apache-2.0
// The meetings of ranks in different processes: rank 0 listens, everybody else connects and stays connected.
//
// R1 Rank 0 runs a LocalMeeting. A thread per connection brings that rank's arrivals into it and sends the results
// back, so
//    ranks of processes meet by the same rules as ranks of threads.
// R2 A connection that ends is a rank that left: the others get ERR_RANK_LOST at once.
// R3 Nothing is sent to a stranger: a connection begins with a greeting that names world, rank, versions and token.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "runtime/local_meeting.hpp"
#include "runtime/socket.hpp"

namespace nccl_ext {

struct TcpMeetingConfig {
  int rank = 0;
  int size = 0;
  std::string address;  // of rank 0; rank 0 binds to it and nothing else
  int port = 0;
  std::chrono::milliseconds timeout{0};
  int ncclVersion = 0;  // must be the same on all ranks
  std::string token;    // must be the same on all ranks; empty: none
};

class TcpMeeting final : public Meeting {
 public:
  explicit TcpMeeting(TcpMeetingConfig config);
  // Ends connections and threads.
  ~TcpMeeting() override;

  // The first one connects. ERR_LAUNCHER: wrong world size, a rank twice, another token; ERR_NCCL_VERSION; ERR_TIMEOUT
  // naming rank 0 when it cannot be reached.
  Outcome<std::vector<Bytes>> gather(int rank, const Arrival& arrival, Clock::time_point deadline) override;
  void leave(int rank, const ErrorRecord& reason) override;

 private:
  Status start(Clock::time_point deadline);
  Status listen();
  Status connect(Clock::time_point deadline);
  void acceptAll();
  void serve(Socket socket);
  std::optional<ErrorRecord> greet(Socket& socket, int& rank);
  Outcome<std::vector<Bytes>> ask(const Arrival& arrival, Clock::time_point deadline);

  const TcpMeetingConfig config_;
  std::optional<ErrorRecord> leftWith() const;

  mutable std::mutex mutex_;
  std::optional<ErrorRecord> left_;
  bool started_ = false;

  // rank 0
  std::unique_ptr<LocalMeeting> hub_;
  Socket listener_;
  std::thread acceptor_;
  std::vector<std::thread> servers_;
  std::map<int, Socket*> connected_;
  std::atomic<bool> closing_{false};

  // the others
  Socket socket_;
};

}  // namespace nccl_ext
