// SPDX-License-Identifier: Apache-2.0
// How a kernel reports an error: a record in pinned host memory that the host turns into a sentence.
//
// R1 The first writer of a box claims it and the others leave it alone: threads of one kernel may fail at once. All
//    writers run on one GPU, where the claim is atomic though the box is the host's memory.
// R2 The fields come first, `code` last, with release; the host reads `code` with acquire, and clears it and then the
//    claim when it took the record.
#pragma once

#include <nccl_ext/records.hpp>
#include <nccl_ext/sync.hpp>

namespace nccl_ext {

// Keeps `record` unless the box holds an earlier one.
NCCL_EXT_HD inline void report(DeviceStatus& box, const DeviceStatus& record) {
  if (!claim<kDevice>(box.claim)) return;
  box.op = record.op;
  box.peer = record.peer;
  box.missing = record.missing;
  box.expected = record.expected;
  box.seen = record.seen;
  publish<kSystem>(box.code, record.code);
}

// Lets the box take another record. For the host, when it has read this one.
inline void clear(DeviceStatus& box) {
  publish<kSystem>(box.code, 0);
  publish<kSystem>(box.claim, 0);
}

}  // namespace nccl_ext
