// SPDX-License-Identifier: Apache-2.0
// How a tile of runs that the bulk copy engine cannot store lies in shared memory, and the blocks in which lanes take it from
// there: the engine loads whole 16-byte words, so every source run keeps its place within a word.
//
// S1 The source runs of a tile follow each other in its stage, each in a slot that begins at a word and holds the words with the
//    run's first and last byte. A tile holds whole rows, or pieces of at most two rows.
// S2 A block is columns that follow each other of consecutive rows of the innermost loop: pieces of one column lie at one distance
//    from each other on both sides.
#pragma once

#include "m2n/shared/piece.hpp"

namespace nccl_ext {

// Bytes of a slot whose run has `bytes` bytes, wherever it begins within a word.
NCCL_EXT_HD inline std::uint32_t slotBytes(std::uint32_t bytes) {
  return (bytes + kBulkUnitBytes - 1) / kBulkUnitBytes * kBulkUnitBytes + kBulkUnitBytes;
}

// A source run, as far as it belongs to a tile.
struct StagedRun {
  std::uint32_t firstPiece;
  std::uint32_t pieces;
  std::uint32_t slot;  // bytes from the stage's begin
};

NCCL_EXT_HD inline std::uint32_t stagedRuns(const Bundle& bundle, const TileSpan& span) {
  return bundle.sourceRun.quotient(span.firstPiece + span.pieces - 1) - bundle.sourceRun.quotient(span.firstPiece) + 1;
}

// `number` counts from the tile's first run.
NCCL_EXT_HD inline StagedRun stagedRun(const Bundle& bundle, const TileSpan& span, std::uint32_t number) {
  const std::uint32_t bytes = span.units * bundle.sourceUnit, run = bundle.sourceRun.divisor;
  const std::uint32_t begin = bundle.sourceRun.quotient(span.firstPiece) * run, end = span.firstPiece + span.pieces;
  const std::uint32_t headEnd = begin + run < end ? begin + run : end;
  if (number == 0) return {span.firstPiece, headEnd - span.firstPiece, 0};
  const std::uint32_t first = begin + number * run, left = end - first;
  return {first, left < run ? left : run,
          slotBytes((headEnd - span.firstPiece) * bytes) + (number - 1) * slotBytes(run * bytes)};
}

// Where piece `piece` of a tile begins at the source.
NCCL_EXT_HD inline std::uint64_t sourceOf(const Bundle& bundle, const Member* members, const TileSpan& span,
                                          std::uint32_t piece) {
  const Place place = placeOf(bundle, piece);
  return members[place.column * bundle.copies].source + distanceTo(place, bundle.strides) +
         span.offset * bundle.sourceUnit;
}

// Pieces (first row + r, first column + c) of a bundle, r < rows, c < columns.
struct Block {
  Place first;
  std::uint32_t rows;
  std::uint32_t columns;
  std::uint32_t stage;        // of its first piece, bytes from the stage's begin
  std::uint32_t rowPitch;     // bytes in the stage from a row to the next one
  std::uint32_t columnPitch;  // bytes in the stage from a column to the next one
};

// Where the block's first piece of the column of `member` goes; its rows lie member.strides[2] bytes from each other.
NCCL_EXT_HD inline std::uint64_t destinationOf(const Bundle& bundle, const Block& block, const Member& member,
                                               const TileSpan& span) {
  return member.destination + distanceTo(block.first, member.strides) + span.offset * bundle.destinationUnit;
}

// Calls take(Block) until every piece of a tile was in one. `members` are the bundle's.
template <class Take>
NCCL_EXT_HD inline void eachBlock(const Bundle& bundle, const Member* members, const TileSpan& span, Take take) {
  const std::uint32_t bytes = span.units * bundle.sourceUnit, columns = bundle.columns.divisor;
  const std::uint32_t run = bundle.sourceRun.divisor, end = span.firstPiece + span.pieces;
  const bool rowsFollow = run > columns, columnsFollow = run >= columns;
  // Rows that are runs of their own keep their distance in the stage when they begin alike within words.
  const bool regular = rowsFollow || bundle.strides[2] % kBulkUnitBytes == 0;
  const std::uint32_t columnPitch = columnsFollow ? bytes : slotBytes(bytes);
  const std::uint32_t rowPitch = rowsFollow      ? columns * bytes
                                 : columnsFollow ? slotBytes(columns * bytes)
                                                 : columns * columnPitch;
  const std::uint32_t firstRun = bundle.sourceRun.quotient(span.firstPiece);
  for (std::uint32_t piece = span.firstPiece; piece < end;) {
    Block block{placeOf(bundle, piece), 1, 1, 0, rowPitch, columnPitch};
    const std::uint32_t left = end - piece, rest = columns - block.first.column;
    const std::uint32_t width = left < rest ? left : rest;
    if (rest == columns && regular && left >= 2 * columns) {
      const std::uint32_t whole = bundle.columns.quotient(left), inLoop = bundle.loop2.divisor - block.first.index[2];
      block.rows = whole < inLoop ? whole : inLoop;
    }
    if (columnsFollow) block.columns = width;
    for (std::uint32_t column = 0; column < width; column += block.columns, block.first.column += block.columns) {
      const std::uint32_t at = piece + column;
      const StagedRun staged = stagedRun(bundle, span, bundle.sourceRun.quotient(at) - firstRun);
      const std::uint32_t within = (at - staged.firstPiece) * bytes;
      const std::uint64_t source = members[block.first.column * bundle.copies].source +
                                   distanceTo(block.first, bundle.strides) + span.offset * bundle.sourceUnit;
      block.stage = staged.slot + static_cast<std::uint32_t>(source - within) % kBulkUnitBytes + within;
      take(block);
    }
    piece += block.rows * width;
  }
}

}  // namespace nccl_ext
