// SPDX-License-Identifier: Apache-2.0
// What stands behind the handle of a transfer. The owner's thread alone touches it.
#pragma once

#include <functional>
#include <map>

#include "m2n/prepare.hpp"
#include "m2n/sent_watch.hpp"

namespace nccl_ext {

struct PreparedTransfer {
  Handle handle = 0;
  std::shared_ptr<RankState> owner;
  std::shared_ptr<Preparation> made;
  std::vector<std::shared_ptr<BufferState>> buffers;
  TransferCounts* counts = nullptr;  // a pinned cell of the rank's
  std::shared_ptr<SentWatch> watch;  // none when it sends nothing
  int ctas = 0;                      // of its kernels at most
  int sms = 1;                       // that those may hold which hash
  // Where its latest execution is; none when that stream is gone, and with it everything that was on it.
  StreamState* stream = nullptr;
  std::uint64_t ticket = 0;
  // Held by streams that record or graphs that were recorded with an execution of it.
  std::shared_ptr<int> graphUse = std::make_shared<int>(0);
  std::map<Handle, std::uint64_t> uses;  // by stream: the ticket of its last execution there
  bool disposing = false;

  bool isInFlight() const { return stream != nullptr && stream->finished() < ticket; }
  bool isInFlightBeside(const StreamState& other) const { return stream != &other && isInFlight(); }
  std::vector<std::function<void(Status)>> disposeWaiters;
};

}  // namespace nccl_ext
