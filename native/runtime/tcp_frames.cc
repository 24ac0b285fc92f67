// SPDX-License-Identifier: Apache-2.0
#include "runtime/tcp_frames.hpp"

#include "runtime/wire.hpp"

namespace nccl_ext {
namespace {

// What a frame of rank 0's begins with.
constexpr std::int64_t kRefusal = 0, kPayloads = 1, kLoss = 2, kFarewell = 3;

// More than any timeout, and far from what a clock of nanoseconds cannot add.
constexpr std::int64_t kMostWaitMs = std::int64_t{1} << 40;

bool isInt(std::int64_t number) {
  return number == static_cast<int>(number);
}

}  // namespace

Bytes encode(const Greeting& greeting) {
  return Writer()
      .number(greeting.protocol)
      .block(greeting.group)
      .number(greeting.rank)
      .number(greeting.size)
      .block(greeting.token)
      .take();
}

std::optional<Greeting> decodeGreeting(const Bytes& frame) {
  Reader in(frame);
  Greeting greeting;
  greeting.protocol = in.number();
  greeting.group = in.text();
  greeting.rank = in.number();
  greeting.size = in.number();
  greeting.token = in.text();
  if (!in.good() || !isInt(greeting.rank) || !isInt(greeting.size)) return std::nullopt;
  return greeting;
}

Bytes encode(const Request& request) {
  if (request.leaves) return Writer().number(0).record(*request.leaves).take();
  return Writer()
      .number(1)
      .block(request.arrival.op)
      .block(request.arrival.topic)
      .block(request.arrival.payload)
      .number(request.wait.count())
      .take();
}

std::optional<Request> decodeRequest(const Bytes& frame) {
  Reader in(frame);
  Request request;
  if (in.number() == 0) {
    request.leaves = in.record();
  } else {
    request.arrival.op = in.text();
    request.arrival.topic = in.text();
    request.arrival.payload = in.block();
    const std::int64_t wait = in.number();
    if (wait < -kMostWaitMs || wait > kMostWaitMs) return std::nullopt;
    request.wait = std::chrono::milliseconds(wait);
  }
  if (!in.good()) return std::nullopt;
  return request;
}

Bytes encode(const Notice& notice) {
  if (notice.farewell) return Writer().number(kFarewell).record(*notice.farewell).take();
  return Writer().number(kLoss).number(notice.lost).take();
}

std::optional<Notice> decodeNotice(const Bytes& frame) {
  Reader in(frame);
  Notice notice;
  const std::int64_t kind = in.number();
  if (kind == kFarewell)
    notice.farewell = in.record();
  else if (kind == kLoss)
    notice.lost = static_cast<int>(in.number());
  else
    return std::nullopt;
  if (!in.good()) return std::nullopt;
  return notice;
}

Bytes encode(const Outcome<std::vector<Bytes>>& answer) {
  Writer out;
  if (!answer) return out.number(kRefusal).record(answer.error()).take();
  out.number(kPayloads).number(static_cast<std::int64_t>(answer.value().size()));
  for (const Bytes& payload : answer.value()) out.block(payload);
  return out.take();
}

Outcome<std::vector<Bytes>> decodeAnswer(const Bytes& frame, int rank) {
  Reader in(frame);
  const std::int64_t kind = in.number();
  if (kind == kRefusal) {
    ErrorRecord error = in.record();
    if (in.good()) return error;
  } else if (kind == kPayloads) {
    const std::int64_t size = in.number();
    std::vector<Bytes> payloads;
    for (std::int64_t i = 0; i < size && in.good(); i++) payloads.push_back(in.block());
    if (in.good()) return payloads;
  }
  return lostConnection(rank, 0, "rank 0 sent an answer that cannot be read");
}

Failure lostConnection(int rank, int peer, const std::string& what) {
  return fail(ErrorCode::kRankLost, "joinRank", what)
      .ofRank(rank)
      .fromPeer(peer)
      .helped("Dispose the remaining ranks and make a new world.");
}

}  // namespace nccl_ext
