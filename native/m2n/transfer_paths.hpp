// SPDX-License-Identifier: Apache-2.0
// Which way the bytes of a transfer take between a rank and each of its peers, for people.
#pragma once

#include "m2n/routes.hpp"

namespace nccl_ext {

// As TransferPath of contract/m2n.ts.
struct TransferPath {
  std::int32_t peer = 0;
  const char* direction = "send";  // or "receive"
  const char* path = "mapped";     // or "local", "sendrecv", "copy-engine"
  std::int64_t bytes = 0;          // of one execution
  std::string why;
};

// Those of `rank`: what it sends, then what it receives, by peer.
std::vector<TransferPath> pathsOf(const std::vector<PeerPart>& parts, const Routes& routes, int rank);

}  // namespace nccl_ext
