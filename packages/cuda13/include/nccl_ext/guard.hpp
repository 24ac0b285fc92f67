// SPDX-License-Identifier: Apache-2.0
// How a user's kernel waits for a peer and reports an error: with the deadline, the stop words and the record of our own
// kernels, all behind one parameter, KernelGuard.
//
// failure   deadline, abort or lost peer: a record names the peer, `drained` is set, and every other wait of this rank
//           ends at its next look; kernels that come later do not wait either.
#pragma once

#include <nccl_ext/status.hpp>

namespace nccl_ext {

// What a wait saw last, and whether that is what it waited for.
struct Arrival {
  std::uint64_t seen;
  bool arrived;

  NCCL_EXT_HD explicit operator bool() const { return arrived; }
};

NCCL_EXT_HD inline DeviceStatus& statusOf(const KernelGuard& guard) {
  return *reinterpret_cast<DeviceStatus*>(guard.status);
}
NCCL_EXT_HD inline RankWords& wordsOf(const KernelGuard& guard) {
  return *reinterpret_cast<RankWords*>(guard.words);
}

// Whether this rank has failed or was stopped: nobody will come any more, and what peers wrote may be half of a message.
// Reads the host's memory, about a microsecond: once per kernel.
NCCL_EXT_HD inline bool mustEnd(const KernelGuard& guard) {
  return peek<kSystem>(wordsOf(guard).drained) != 0 || peek<kSystem>(wordsOf(guard).stop) != 0;
}

// Leaves an error that `synchronize` of the stream hands out: its code, the rank at fault (-1: none), and two numbers of
// the caller's choice. The first record wins; any thread may report.
//
// Codes: kKernel for failures of the caller's own; kInvalidArgument and kOutOfBounds for what a kernel was given;
// kTimeout for a wait of the caller's own, after which the rank is unusable. Others arrive as kKernel.
NCCL_EXT_HD inline void report(const KernelGuard& guard, ErrorCode code, int peer, std::uint64_t expected,
                               std::uint64_t seen) {
  DeviceStatus record;
  record.code = static_cast<std::int32_t>(code);
  record.op = static_cast<std::int32_t>(DeviceOp::kKernel);
  record.peer = peer;
  record.expected = expected;
  record.seen = seen;
  if (code == ErrorCode::kTimeout) record.missing = 1;
  report(statusOf(guard), record);
  if (code == ErrorCode::kTimeout) publish<kSystem>(wordsOf(guard).drained, 1);
}

// Waits until `flag` has reached `value` on the circle (sync.hpp), which `peer` publishes. Acquire: what the peer wrote
// before its publish<kSystem> is visible to this thread afterwards; a CTA barrier spreads that to the CTA.
//
// `now` gives nanoseconds. Returns false, with the error left behind, when the peer does not come in time or the rank is
// stopped: the caller must still reach its CTA barriers, skip what depends on the data, and return.
template <class Clock>
NCCL_EXT_HD inline Arrival waitFor(const KernelGuard& guard, std::uint64_t& flag, std::uint64_t value, int peer,
                                   Clock now) {
  // Reading the host's words crosses PCIe: seldom.
  constexpr unsigned kSpinsPerLook = 256;
  RankWords& words = wordsOf(guard);
  const std::uint64_t begun = now();
  for (unsigned spins = 1;; spins++) {
    const std::uint64_t seen = observe<kSystem>(flag);
    if (hasReached(seen, value)) return {seen, true};
    if (spins % kSpinsPerLook != 0) continue;
    // Another thread or an earlier kernel has told why.
    if (peek<kSystem>(words.drained) != 0) return {seen, false};
    const std::int32_t stop = observe<kSystem>(words.stop);
    if (stop == 0 && now() - begun < guard.timeoutNs) continue;
    report(guard, stop == 0 ? ErrorCode::kTimeout : static_cast<ErrorCode>(stop),
           stop == 0 ? peer : peek<kSystem>(words.peer), value, seen);
    publish<kSystem>(words.drained, 1);
    return {seen, false};
  }
}

}  // namespace nccl_ext
