// SPDX-License-Identifier: Apache-2.0
// Rank 0's end of the meetings of ranks in different processes: it listens, and brings what comes over a connection
// into a LocalMeeting.
//
// R1 A group is the world or a part of it that was split off; each has a LocalMeeting and its ranks a connection each,
//    so ranks of processes meet by the same rules as ranks of threads, and no group waits behind another.
// R2 A connection that ends is a rank that left: the others of its group get ERR_RANK_LOST at once.
// R3 Nothing is sent to a stranger: a connection begins with a greeting that names group, rank, protocol and token.
// R4 An answer that ranks have earned is sent before the hub ends, and then to everybody whom the world lost: what ends rank 0
//    ends the others, and they must not take it for the cause.
// R5 A rank that leaves says why, so that the others name the rank that it waited for in vain.
// R6 A rank that leaves without being done is told to the others at once, whatever they wait for: their kernels cannot see it.
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "runtime/local_meeting.hpp"
#include "runtime/tcp_line.hpp"

namespace nccl_ext {

struct TcpMeetingConfig {
  int rank = 0;
  int size = 0;
  std::string address;  // of rank 0 of the world; it binds to it and nothing else
  int port = 0;
  std::chrono::milliseconds timeout{0};
  std::string token;  // must be the same on all ranks; empty: none
  std::string group;  // a part of the world; empty: all of it
};

class TcpHub {
 public:
  // `config` is rank 0's of the world.
  explicit TcpHub(TcpMeetingConfig config);
  // Ends connections and threads.
  ~TcpHub();

  // Once. ERR_LAUNCHER says why it cannot listen.
  Status listen();
  // The meeting of a group in which this process is `rank`; -1: a rank elsewhere asks for it, with a size that may be wrong.
  std::shared_ptr<LocalMeeting> join(const std::string& group, int size, int rank);

 private:
  struct Connection {
    std::thread thread;
    std::atomic<bool> ended{false};
  };
  using Member = std::pair<std::string, int>;  // group, rank

  void acceptAll();
  void reapEnded();
  void serve(Socket accepted);
  void answer(const std::shared_ptr<TcpLine>& line, LocalMeeting& meeting, int rank);
  ErrorRecord farewellTo(const Member& member);
  void sendFarewell(TcpLine& line, const Member& member);
  std::optional<ErrorRecord> greet(Socket& socket, std::optional<Member>& member,
                                   std::shared_ptr<LocalMeeting>& meeting);

  const TcpMeetingConfig config_;
  Socket listener_;
  std::thread acceptor_;
  std::list<Connection> connections_;  // of the acceptor
  std::atomic<bool> closing_{false};

  std::mutex mutex_;
  std::condition_variable answered_;
  int answering_ = 0;  // connections with an arrival that has had no answer
  std::map<std::string, std::weak_ptr<LocalMeeting>> groups_;
  std::set<Member> members_;
  std::set<Socket*> sockets_;            // of the connections
  std::optional<ErrorRecord> farewell_;  // of the world's ranks; made when the hub ends
};

}  // namespace nccl_ext
