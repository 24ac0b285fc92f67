// SPDX-License-Identifier: Apache-2.0
#include "m2n/tile_bundles.hpp"

#include <algorithm>

namespace nccl_ext {
namespace {

// Less is done sooner than another CTA has started.
constexpr std::uint64_t kLeastCtaBytes = 16'384;
// A tile of a small program: the latency of memory, not the rate, decides there.
constexpr std::uint64_t kLeastTileBytes = 1'024;
// Tiles that each warp should get, so that none waits for the last.
constexpr std::uint64_t kTilesPerWarp = 2;
// Segments begin at lines of memory when pieces do.
constexpr std::uint64_t kLineBytes = 128;

std::uint64_t ceilDiv(std::uint64_t value, std::uint64_t by) {
  return (value + by - 1) / by;
}

std::uint64_t readBytesOf(const Bundle& bundle) {
  return bundle.inner * bundle.sourceUnit * bundle.pieces;
}

std::uint64_t totalOf(const StagePart& part) {
  std::uint64_t total = 0;
  for (const Bundle& bundle : part.bundles) total += readBytesOf(bundle);
  return total;
}

// Bytes read by a tile of a part whose tiles are shared by `warps` warps.
std::uint64_t tileBytesOf(const StagePart& part, std::uint64_t warps, std::uint64_t most) {
  const std::uint64_t fair = ceilDiv(totalOf(part), warps * kTilesPerWarp);
  return std::min(most, std::max(kLeastTileBytes, ceilDiv(fair, kLineBytes) * kLineBytes));
}

void cut(Bundle& bundle, std::uint64_t units) {
  bundle.perTile = 1;
  bundle.segmentUnits = static_cast<std::uint32_t>(std::min(bundle.inner, units));
  if (bundle.inner > units) {
    const std::uint64_t line = std::max<std::uint64_t>(1, kLineBytes / bundle.sourceUnit);
    const std::uint64_t fair = ceilDiv(bundle.inner, ceilDiv(bundle.inner, units));
    bundle.segmentUnits = static_cast<std::uint32_t>(std::min(units, ceilDiv(fair, line) * line));
  } else {
    bundle.perTile = static_cast<std::uint32_t>(std::min<std::uint64_t>(bundle.pieces, units / bundle.inner));
  }
  bundle.segments = FastDiv(static_cast<std::uint32_t>(ceilDiv(bundle.inner, bundle.segmentUnits)));
  bundle.perSegment = FastDiv(bundle.segmentUnits);
  bundle.tiles = static_cast<std::uint32_t>(ceilDiv(bundle.pieces, bundle.perTile)) * bundle.segments.divisor;
}

void number(StagePart& part) {
  part.tiles = 0;
  part.firstTiles.clear();
  for (const Bundle& bundle : part.bundles) {
    part.firstTiles.push_back(part.tiles);
    part.tiles += bundle.tiles;
  }
}

}  // namespace

std::uint64_t writtenBytesOf(const Bundle& bundle) {
  return bundle.inner * bundle.destinationUnit * bundle.pieces * bundle.copies;
}

void cutTiles(StageProgram& program, std::int32_t maxCtas) {
  const std::uint64_t bytes = totalOf(program.bulk) + totalOf(program.vector);
  const std::uint64_t most = static_cast<std::uint64_t>(std::max(maxCtas, 1));
  const std::uint64_t ctas = std::min(most, std::max<std::uint64_t>(1, ceilDiv(bytes, kLeastCtaBytes)));
  program.ctas = static_cast<std::int32_t>(ctas);
  const std::uint64_t bulkBytes = tileBytesOf(program.bulk, ctas * kBulkWarps, kBulkTileBytes);
  const std::uint64_t vectorBytes = tileBytesOf(program.vector, ctas * kVectorWarps, kVectorTileBytes);
  for (Bundle& bundle : program.bulk.bundles) cut(bundle, bulkBytes / bundle.sourceUnit);
  for (Bundle& bundle : program.vector.bundles)
    cut(bundle, std::min<std::uint64_t>(kVectorTileUnits, vectorBytes / bundle.sourceUnit));
  number(program.bulk);
  number(program.vector);
}

}  // namespace nccl_ext
