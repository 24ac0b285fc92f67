// SPDX-License-Identifier: Apache-2.0
#include "m2n/peer_part.hpp"

#include <map>
#include <set>

#include "runtime/wire.hpp"

namespace nccl_ext {
namespace {

// Sender and receiver must be of one build; a world's ranks are, but a stray connection may not be.
constexpr std::int64_t kFormat = 2;

std::int32_t smallNumber(Reader& in) {
  return static_cast<std::int32_t>(in.number());
}

template <class Item, class Write>
void writeList(Writer& out, const std::vector<Item>& list, Write write) {
  out.number(static_cast<std::int64_t>(list.size()));
  for (const Item& item : list) write(item);
}

// Stops at the end of the bytes, whatever count they claim.
template <class Item, class Read>
void readList(Reader& in, std::vector<Item>& list, Read read) {
  const std::int64_t count = in.number();
  for (std::int64_t i = 0; i < count && in.good(); i++) list.push_back(read());
}

void writeRanks(Writer& out, const std::vector<std::int32_t>& ranks) {
  writeList(out, ranks, [&](std::int32_t rank) { out.number(rank); });
}

void readRanks(Reader& in, std::vector<std::int32_t>& ranks) {
  readList(in, ranks, [&] { return smallNumber(in); });
}

void writeGroups(Writer& out, const std::vector<HashGroup>& groups) {
  writeList(out, groups,
            [&](const HashGroup& group) { out.number(group.stage).number(group.peer).number(group.tensor); });
}

void readGroups(Reader& in, std::vector<HashGroup>& groups) {
  readList(in, groups, [&] {
    HashGroup group;
    group.stage = smallNumber(in);
    group.peer = smallNumber(in);
    group.tensor = smallNumber(in);
    return group;
  });
}

void writeShare(Writer& out, const MemoryShare& share) {
  out.number(static_cast<std::int64_t>(share.kind))
      .block(share.handle)
      .number(share.descriptor)
      .number(share.processId);
  out.number(share.allocationBytes).number(share.byteOffset).number(share.bytes);
}

MemoryShare readShare(Reader& in) {
  MemoryShare share;
  share.kind = static_cast<ShareKind>(in.number());
  share.handle = in.block();
  share.descriptor = static_cast<int>(in.number());
  share.processId = in.number();
  share.allocationBytes = in.number();
  share.byteOffset = in.number();
  share.bytes = in.number();
  return share;
}

void writeExposure(Writer& out, const Exposure& exposure) {
  out.number(exposure.device)
      .number(static_cast<std::int64_t>(exposure.address))
      .number(exposure.bytes)
      .number(exposure.serial);
  out.block(exposure.why).number(exposure.share ? 1 : 0);
  if (exposure.share) writeShare(out, *exposure.share);
}

Exposure readExposure(Reader& in) {
  Exposure exposure;
  exposure.device = static_cast<int>(in.number());
  exposure.address = static_cast<std::uint64_t>(in.number());
  exposure.bytes = in.number();
  exposure.serial = in.number();
  exposure.why = in.text();
  if (in.number() != 0) exposure.share = readShare(in);
  return exposure;
}

}  // namespace

std::vector<HashGroup> hashGroupsOf(const MoveTable& table) {
  std::vector<HashGroup> groups;
  for (std::size_t move = 0; move < table.length; move++) {
    if (isEmptyMove(table, move)) continue;
    const HashGroup group{table.stage[move], table.peer[move], table.tensor[move]};
    const bool opens = groups.empty() || groups.back().stage != group.stage || groups.back().peer != group.peer ||
                       groups.back().tensor != group.tensor;
    if (opens) groups.push_back(group);
  }
  return groups;
}

PeerPart peerPartOf(const PreparePart& part) {
  const MoveTable& sends = part.program->sends;
  PeerPart out;
  out.digest = part.program->digest;
  out.verify = part.verify;
  out.path = part.path;
  out.expected[0] = part.program->receivePeers;
  out.expected[1] = part.program->forwardPeers;
  out.destinations = part.destinations;
  std::set<std::int32_t> receivers[2];
  std::map<std::int32_t, std::int64_t> traffic;
  std::map<std::pair<std::int32_t, std::int32_t>, std::pair<std::int64_t, std::int64_t>> extents;
  for (std::size_t move = 0; move < sends.length; move++) {
    if (isEmptyMove(sends, move)) continue;
    if (sends.peer[move] != part.rank) receivers[sends.stage[move]].insert(sends.peer[move]);
    const auto unit = unitBytesOf(sends.transform[move]);
    if (!unit) continue;
    traffic[sends.peer[move]] += bytesOf(sends, move, unit->destination);
    const std::int64_t start = sends.destinationOffset[move];
    const std::int64_t end = start + extentOf(sends, move, sends.destinationStrides, unit->destination);
    const auto [found, added] = extents.try_emplace({sends.peer[move], sends.tensor[move]}, start, end);
    if (added) continue;
    found->second.first = std::min(found->second.first, start);
    found->second.second = std::max(found->second.second, end);
  }
  for (int stage = 0; stage < 2; stage++) out.receivers[stage].assign(receivers[stage].begin(), receivers[stage].end());
  for (const auto& [to, extent] : extents) out.written.push_back({to.first, to.second, extent.first, extent.second});
  for (const auto& [peer, bytes] : traffic) out.traffic.push_back({peer, bytes});
  if (!part.verify) return out;
  out.sent = hashGroupsOf(sends);
  out.received = hashGroupsOf(*part.program->receives);
  return out;
}

Bytes encode(const PeerPart& part) {
  Writer out;
  out.number(kFormat).block(part.digest).number(part.verify ? 1 : 0).block(part.path).number(part.problem ? 1 : 0);
  if (part.problem) return out.record(*part.problem).take();
  for (const auto& ranks : part.expected) writeRanks(out, ranks);
  for (const auto& ranks : part.receivers) writeRanks(out, ranks);
  writeList(out, part.written, [&](const WrittenExtent& extent) {
    out.number(extent.receiver).number(extent.tensor).number(extent.start).number(extent.end);
  });
  writeList(out, part.traffic, [&](const PeerBytes& to) { out.number(to.peer).number(to.bytes); });
  writeGroups(out, part.sent);
  writeGroups(out, part.received);
  writeList(out, part.destinations,
            [&](const BoundTensor& binding) { out.number(binding.memory).number(binding.byteOffset); });
  out.block(part.where.host).block(part.where.process);
  writeList(out, part.memories, [&](const Exposure& exposure) { writeExposure(out, exposure); });
  writeExposure(out, part.flags);
  return out.take();
}

std::optional<PeerPart> decodePeerPart(const Bytes& bytes) {
  Reader in(bytes);
  PeerPart part;
  if (in.number() != kFormat) return std::nullopt;
  part.digest = in.text();
  part.verify = in.number() != 0;
  part.path = in.text();
  if (in.number() != 0) {
    part.problem = in.record();
    return in.good() ? std::optional<PeerPart>(std::move(part)) : std::nullopt;
  }
  for (auto& ranks : part.expected) readRanks(in, ranks);
  for (auto& ranks : part.receivers) readRanks(in, ranks);
  readList(in, part.written, [&] {
    WrittenExtent extent;
    extent.receiver = smallNumber(in);
    extent.tensor = smallNumber(in);
    extent.start = in.number();
    extent.end = in.number();
    return extent;
  });
  readList(in, part.traffic, [&] {
    PeerBytes to;
    to.peer = smallNumber(in);
    to.bytes = in.number();
    return to;
  });
  readGroups(in, part.sent);
  readGroups(in, part.received);
  readList(in, part.destinations, [&] {
    BoundTensor binding;
    binding.memory = smallNumber(in);
    binding.byteOffset = in.number();
    return binding;
  });
  part.where.host = in.text();
  part.where.process = in.text();
  readList(in, part.memories, [&] { return readExposure(in); });
  part.flags = readExposure(in);
  return in.good() ? std::optional<PeerPart>(std::move(part)) : std::nullopt;
}

}  // namespace nccl_ext
