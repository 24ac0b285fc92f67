// SPDX-License-Identifier: Apache-2.0
#include "runtime/local_meeting.hpp"

#include <algorithm>

namespace nccl_ext {
namespace {

// The record on all ranks when their topics differ; the first rank that differs from the most common topic is at fault.
std::optional<ErrorRecord> disagreement(const std::vector<std::optional<Arrival>>& arrivals) {
  std::map<std::string, int> votes;
  for (const auto& arrival : arrivals) votes[arrival->topic]++;
  if (votes.size() == 1) return std::nullopt;
  const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
  const std::string common = std::max_element(votes.begin(), votes.end(), fewer)->first;
  std::vector<int> others;
  for (std::size_t rank = 0; rank < arrivals.size(); rank++) {
    if (arrivals[rank]->topic != common) others.push_back(static_cast<int>(rank));
  }
  const Arrival& odd = *arrivals[static_cast<std::size_t>(others.front())];
  return fail(ErrorCode::kDisagreement, odd.op, rankNames(others) + " and the others came with different topics")
      .fromPeer(others.front())
      .expecting(common, odd.topic)
      .helped("Every rank must make the same collective calls in the same order.");
}

}  // namespace

std::string rankNames(const std::vector<int>& ranks) {
  constexpr std::size_t kShown = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(ranks.size(), kShown); i++)
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  if (ranks.size() > kShown) text += " and " + std::to_string(ranks.size() - kShown) + " more";
  return text;
}

LocalMeeting::LocalMeeting(int size)
    : size_(size), next_(static_cast<std::size_t>(size), 0), left_(static_cast<std::size_t>(size)) {}

Outcome<std::vector<Bytes>> LocalMeeting::gather(int rank, const Arrival& arrival, Clock::time_point deadline) {
  const auto self = static_cast<std::size_t>(rank);
  std::unique_lock<std::mutex> lock(mutex_);
  const std::uint64_t number = next_[self]++;
  Session& session = sessions_[number];
  session.arrivals.resize(static_cast<std::size_t>(size_));
  if (!session.failure && !left_[self]) {
    session.came++;
    session.arrivals[self] = arrival;
    if (session.came == size_) session.failure = disagreement(session.arrivals);
    changed_.notify_all();
    const bool inTime =
        changed_.wait_until(lock, deadline, [&] { return left_[self].has_value() || settled(session); });
    if (!inTime && !session.failure) {
      session.failure = expired(session, arrival);
      changed_.notify_all();
    }
  }
  const bool held = session.came == size_;
  Outcome<std::vector<Bytes>> outcome =
      left_[self] && !held ? Outcome<std::vector<Bytes>>(*left_[self]) : outcomeOf(session, rank);
  if (++session.went == size_) sessions_.erase(number);
  return outcome;
}

void LocalMeeting::leave(int rank, const ErrorRecord& reason) {
  std::vector<std::pair<OnLoss, int>> calls;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto& left = left_[static_cast<std::size_t>(rank)];
    if (!left) {
      left = reason;
      leavers_.push_back(rank);
    }
    changed_.notify_all();
    watchers_.erase(rank);
    for (auto watcher = watchers_.begin(); watcher != watchers_.end();) {
      const std::optional<int> lost = lostTo(watcher->first);
      if (lost) calls.emplace_back(std::move(watcher->second), *lost);
      watcher = lost ? watchers_.erase(watcher) : std::next(watcher);
    }
  }
  for (const auto& [told, lost] : calls) told(lost);
}

void LocalMeeting::watch(int rank, OnLoss told) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (left_[static_cast<std::size_t>(rank)]) return;
  const std::optional<int> lost = lostTo(rank);
  if (!lost) {
    watchers_[rank] = std::move(told);
    return;
  }
  lock.unlock();
  told(*lost);
}

std::optional<ErrorRecord> LocalMeeting::lossFor(int rank) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return lost(rank, nullptr, "");
}

std::unique_ptr<Meeting> LocalMeeting::group(const std::string&, int, int size) {
  return std::make_unique<LocalMeeting>(size);
}

// Whether a waiter can go: all came, it failed, or someone who is not here has left.
bool LocalMeeting::settled(const Session& session) const {
  if (session.failure || session.came == size_) return true;
  const auto isMissing = [&](int peer) { return !session.arrivals[static_cast<std::size_t>(peer)]; };
  return std::any_of(leavers_.begin(), leavers_.end(), isMissing);
}

// The first rank that left and did not come to `session`, as `rank` hears of it.
std::optional<ErrorRecord> LocalMeeting::lost(int rank, const Session* session, const std::string& op) const {
  for (const int peer : leavers_) {
    const auto index = static_cast<std::size_t>(peer);
    if (peer == rank || (session != nullptr && session->arrivals[index])) continue;
    const int cause = causeOf(peer);
    return fail(ErrorCode::kRankLost, op,
                (op.empty() ? "" : op + " cannot complete: ") + "rank " + std::to_string(peer) +
                    " left: " + left_[index]->detail)
        .ofRank(rank)
        // To itself a rank that others missed is at no fault: it still is here.
        .fromPeer(cause == rank ? peer : cause)
        .helped("Dispose the remaining ranks and make a new world.");
  }
  return std::nullopt;
}

// Who is at fault that `peer` left: a rank that waited in vain for another one leaves too.
int LocalMeeting::causeOf(int peer) const {
  // No longer than a chain of all ranks, so a circle ends.
  for (int links = 0; links < size_; links++) {
    const auto& left = left_[static_cast<std::size_t>(peer)];
    if (!left || (left->code != ErrorCode::kRankLost && left->code != ErrorCode::kTimeout)) break;
    if (left->peer < 0 || left->peer >= size_) break;
    peer = left->peer;
  }
  return peer;
}

// Whom `rank` hears of as lost when it meets nobody; none while those who left were done.
std::optional<int> LocalMeeting::lostTo(int rank) const {
  for (const int peer : leavers_) {
    if (peer == rank || left_[static_cast<std::size_t>(peer)]->code == ErrorCode::kDisposed) continue;
    const int cause = causeOf(peer);
    return cause == rank ? peer : cause;
  }
  return std::nullopt;
}

Outcome<std::vector<Bytes>> LocalMeeting::outcomeOf(const Session& session, int rank) const {
  if (session.failure) {
    ErrorRecord error = *session.failure;
    error.rank = rank;
    return error;
  }
  if (session.came < size_) {
    if (auto error = lost(rank, &session, session.arrivals[static_cast<std::size_t>(rank)]->op)) return *error;
  }
  std::vector<Bytes> payloads;
  for (const auto& arrived : session.arrivals) payloads.push_back(arrived->payload);
  return payloads;
}

ErrorRecord LocalMeeting::expired(const Session& session, const Arrival& arrival) const {
  std::vector<int> missing;
  for (std::size_t peer = 0; peer < session.arrivals.size(); peer++) {
    if (!session.arrivals[peer]) missing.push_back(static_cast<int>(peer));
  }
  return fail(ErrorCode::kTimeout, arrival.op,
              arrival.op + " '" + arrival.topic + "' waited too long for " + rankNames(missing))
      .fromPeer(missing.front())
      .expecting(static_cast<std::int64_t>(size_), static_cast<std::int64_t>(session.came))
      .helped("Check that every rank makes the same collective calls in the same order, or raise the timeout.");
}

}  // namespace nccl_ext
