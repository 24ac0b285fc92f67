// SPDX-License-Identifier: Apache-2.0
// Which pairs of ranks write into each other's memory, and which send, because one of them cannot. Every rank comes to the
// same answer from what all of them could not reach.
#pragma once

#include <map>
#include <set>

#include "m2n/peer_part.hpp"

namespace nccl_ext {

// What a rank cannot reach of a peer, and why.
struct Unreached {
  std::int32_t peer = 0;
  bool memory = false;  // destinations that it writes; else the control block
  std::string why;
  std::string help;
};

Bytes encode(const std::vector<Unreached>& unreached);
std::vector<Unreached> decodeUnreached(const Bytes& bytes);

class Routes {
 public:
  Routes() = default;
  // `unreached` by rank. With PathChoice::kSendrecv every pair sends.
  Routes(const std::vector<PeerPart>& parts, const std::vector<std::vector<Unreached>>& unreached, PathChoice choice);

  // Whether `sender` sends to `receiver`; a rank never sends to itself.
  bool isSent(int sender, int receiver) const { return sent_.count({sender, receiver}) > 0; }
  bool anySent() const { return !sent_.empty(); }
  // Why; empty for a pair that is mapped.
  std::string why(int sender, int receiver) const;
  // Whether two ranks write and read each other's control blocks.
  bool meet(int one, int other) const;
  // Pairs in ascending order, with the reason.
  const std::map<std::pair<int, int>, std::string>& sent() const { return sent_; }

 private:
  std::map<std::pair<int, int>, std::string> sent_;  // by sender and receiver
  std::set<std::pair<int, int>> apart_;              // ranks without each other's control blocks, smaller first
};

}  // namespace nccl_ext
