// SPDX-License-Identifier: Apache-2.0
// What the other ranks get to know of a rank's part in prepareTransfer: enough to compare, to check and to reach, and no
// moves, of which a model has millions.
#pragma once

#include "m2n/exposure.hpp"
#include "m2n/prepare_part.hpp"
#include "runtime/meeting.hpp"

namespace nccl_ext {

// From where to where a rank writes a tensor of a receiver, in bytes from where that tensor is bound.
struct WrittenExtent {
  std::int32_t receiver = 0;
  std::int32_t tensor = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
};

// Bytes that a rank gives a receiver, itself included, in one execution.
struct PeerBytes {
  std::int32_t peer = 0;
  std::int64_t bytes = 0;
};

// All moves of one (stage, peer, tensor).
struct HashGroup {
  std::int32_t stage = 0;
  std::int32_t peer = 0;
  std::int32_t tensor = 0;
};

struct PeerPart {
  std::optional<ErrorRecord> problem;  // with one, nothing else is there but the digest
  std::string digest;
  bool verify = false;
  std::string path;
  std::vector<std::int32_t> expected[2];   // by stage: ranks that it waits for
  std::vector<std::int32_t> receivers[2];  // by stage: ranks that it sends to, without itself
  std::vector<WrittenExtent> written;
  std::vector<PeerBytes> traffic;         // by receiver, ascending
  std::vector<HashGroup> sent, received;  // when it verifies
  Bindings destinations;
  Whereabouts where;
  std::vector<Exposure> memories;  // the buffers of bindings, for ranks that write to them
  Exposure flags;
};

// The groups of a sorted table, without empty moves.
std::vector<HashGroup> hashGroupsOf(const MoveTable& table);

// What `part` shows; its memories and flags are the caller's to add. Moves must have known transforms to be counted.
PeerPart peerPartOf(const PreparePart& part);

Bytes encode(const PeerPart& part);
// None for bytes of another version.
std::optional<PeerPart> decodePeerPart(const Bytes& bytes);

}  // namespace nccl_ext
