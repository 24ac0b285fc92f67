// SPDX-License-Identifier: Apache-2.0
#include "m2n/tile_bundles.hpp"

#include <algorithm>
#include <numeric>

namespace nccl_ext {
namespace {

// Less is done sooner than another CTA has started.
constexpr std::uint64_t kLeastCtaBytes = 16'384;
// A tile of a small program: the latency of memory, not the rate, decides there.
constexpr std::uint64_t kLeastTileBytes = 1'024;
// Times that a warp should take tiles, so that the last ones of all warps end together.
constexpr std::uint64_t kGrabsPerWarp = 16;
// Tiles at a time. More that follow each other write longer runs of memory where pieces are short; fewer spread a row over SMs.
constexpr std::uint64_t kMost = 2;
constexpr std::uint64_t kMostShort = 4;
constexpr std::uint64_t kShortPiece = 1'024;
// Segments begin at lines of memory when pieces do.
constexpr std::uint64_t kLineBytes = 128;
constexpr std::uint64_t kSectorBytes = 32;

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
  const std::uint64_t fair = ceilDiv(totalOf(part), warps);
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

// Bytes of a stage less what the words at both ends of a run, and of the next one, may cost.
std::uint64_t stagedUnits(const Bundle& bundle, std::uint64_t bytes) {
  return (bytes - 4 * kBulkUnitBytes) / bundle.sourceUnit;
}

// Pieces of a tile that its stage holds with their slots (staged.hpp).
std::uint32_t stagedPieces(const Bundle& bundle, std::uint64_t bytes) {
  const std::uint64_t piece = bundle.inner * bundle.sourceUnit, run = bundle.sourceRun.divisor;
  const std::uint64_t columns = bundle.columns.divisor;
  std::uint64_t fit = (bytes - 4 * kBulkUnitBytes) * run / (piece * run + 2 * kBulkUnitBytes);
  fit = std::min<std::uint64_t>(bundle.pieces, std::max<std::uint64_t>(1, fit));
  // Whole rows, and where that costs little, rows that end at sectors of memory.
  for (const std::uint64_t step : {columns, columns * kSectorBytes / std::gcd(kSectorBytes, piece)}) {
    if (fit >= 4 * step || (fit >= step && step == columns)) fit = fit / step * step;
  }
  return static_cast<std::uint32_t>(fit);
}

void cutStaged(Bundle& bundle, std::uint64_t bytes) {
  const std::uint64_t least = std::max<std::uint64_t>(bytes, kLeastTileBytes);
  cut(bundle, stagedUnits(bundle, least));
  if (bundle.segments.divisor > 1) return;
  bundle.perTile = stagedPieces(bundle, least);
  bundle.tiles = static_cast<std::uint32_t>(ceilDiv(bundle.pieces, bundle.perTile));
}

// Whether most bytes of a part go in short pieces.
bool isShort(const StagePart& part) {
  std::uint64_t bytes = 0;
  for (const Bundle& bundle : part.bundles) {
    if (bundle.inner * bundle.sourceUnit < kShortPiece) bytes += readBytesOf(bundle);
  }
  return 2 * bytes > totalOf(part);
}

void number(StagePart& part, std::uint64_t warps) {
  part.tiles = 0;
  part.firstTiles.clear();
  for (const Bundle& bundle : part.bundles) {
    part.firstTiles.push_back(part.tiles);
    part.tiles += bundle.tiles;
  }
  const std::uint64_t most = isShort(part) ? kMostShort : kMost;
  part.grab = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(part.tiles / (warps * kGrabsPerWarp), 1, most));
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
  const std::uint64_t vectorWarps = program.bulk.bundles.empty() ? kVectorWarps : kWarps;
  const std::uint64_t bulkBytes = tileBytesOf(program.bulk, ctas * kWarps, bulkTileBytes(program.lanes));
  const std::uint64_t vectorBytes = tileBytesOf(program.vector, ctas * vectorWarps, kVectorTileBytes);
  for (Bundle& bundle : program.bulk.bundles) {
    if (bundle.staged != 0)
      cutStaged(bundle, bulkBytes);
    else
      cut(bundle, bulkBytes / bundle.sourceUnit);
  }
  for (Bundle& bundle : program.vector.bundles)
    cut(bundle, std::min<std::uint64_t>(kVectorTileUnits, vectorBytes / bundle.sourceUnit));
  number(program.bulk, ctas * kWarps);
  number(program.vector, ctas * vectorWarps);
}

}  // namespace nccl_ext
