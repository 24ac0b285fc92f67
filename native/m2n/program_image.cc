// SPDX-License-Identifier: Apache-2.0
#include "m2n/program_image.hpp"

#include <cstring>

namespace nccl_ext {
namespace {

constexpr std::size_t kAlignment = 16;

// Appends `entries` and gives their offset as a pointer.
template <class Entry>
const Entry* append(std::vector<std::byte>& bytes, const std::vector<Entry>& entries) {
  const std::size_t offset = (bytes.size() + kAlignment - 1) / kAlignment * kAlignment;
  bytes.resize(offset + entries.size() * sizeof(Entry));
  if (!entries.empty()) std::memcpy(bytes.data() + offset, entries.data(), entries.size() * sizeof(Entry));
  return reinterpret_cast<const Entry*>(offset);
}

PartWork appendPart(std::vector<std::byte>& bytes, const StagePart& part) {
  PartWork work;
  work.bundles = append(bytes, part.bundles);
  work.firstTiles = append(bytes, part.firstTiles);
  work.bundleCount = static_cast<std::uint32_t>(part.bundles.size());
  work.tiles = part.tiles;
  work.grab = part.grab;
  return work;
}

template <class Entry>
void move(const Entry*& pointer, std::uintptr_t by) {
  pointer = reinterpret_cast<const Entry*>(reinterpret_cast<std::uintptr_t>(pointer) + by);
}

}  // namespace

ProgramImage imageOf(const StageProgram& program) {
  ProgramImage image;
  image.work.bulk = appendPart(image.bytes, program.bulk);
  image.work.vector = appendPart(image.bytes, program.vector);
  image.work.members = append(image.bytes, program.members);
  image.work.ctas = program.ctas;
  image.work.lanes = program.lanes ? 1 : 0;
  return image;
}

TransferWork workAt(const ProgramImage& image, const void* address) {
  TransferWork work = image.work;
  const auto by = reinterpret_cast<std::uintptr_t>(address);
  for (PartWork* part : {&work.bulk, &work.vector}) {
    move(part->bundles, by);
    move(part->firstTiles, by);
  }
  move(work.members, by);
  return work;
}

}  // namespace nccl_ext
