// SPDX-License-Identifier: Apache-2.0
// What ranks of different processes say to rank 0 and hear from it, as frames.
#pragma once

#include "runtime/meeting.hpp"

namespace nccl_ext {

inline constexpr std::int64_t kTcpProtocol = 4;
inline constexpr std::size_t kMaxGreeting = 4096;
inline constexpr std::size_t kMaxFrame = 1u << 30;

// The first frame of a connection.
struct Greeting {
  std::int64_t protocol = kTcpProtocol;
  std::string group;
  std::int64_t rank = 0, size = 0;
  std::string token;
};

// A rank comes to a meeting and waits for at most `wait`, or leaves for good.
struct Request {
  Arrival arrival;
  std::chrono::milliseconds wait{0};
  std::optional<ErrorRecord> leaves;
};

// What rank 0 says unasked: that a rank is lost, or why rank 0 ends, which answers whoever asks next.
struct Notice {
  int lost = -1;
  std::optional<ErrorRecord> farewell;
};

Bytes encode(const Greeting& greeting);
std::optional<Greeting> decodeGreeting(const Bytes& frame);
Bytes encode(const Request& request);
std::optional<Request> decodeRequest(const Bytes& frame);

// None for an answer.
Bytes encode(const Notice& notice);
std::optional<Notice> decodeNotice(const Bytes& frame);

// Everyone's payloads, or a record; no payloads welcome a greeting. A frame that cannot be read is ERR_RANK_LOST of rank 0
// for `rank`.
Bytes encode(const Outcome<std::vector<Bytes>>& answer);
Outcome<std::vector<Bytes>> decodeAnswer(const Bytes& frame, int rank);

// ERR_RANK_LOST as `rank` sees it.
Failure lostConnection(int rank, int peer, const std::string& what);

}  // namespace nccl_ext
