// SPDX-License-Identifier: Apache-2.0
// Says where a view stores a parameter: alone, at its place among the rows that a storage joins, or in parts.

import type { Parameter } from '../model/parameter.js';
import type { Geometry } from './geometry.js';
import { heldBy, heldBytes, type Piece, type PieceContext, pieceOf } from './parameter-piece.js';
import type { ViewEntry } from './rule-set.js';
import { rulesError } from './rules-error.js';
import { fillTemplate, matchView, templateFiller, type ViewMatch } from './view.js';

/** One storage that holds a parameter, or a part of it. */
export interface Target {
  /** The name of the storage; undefined for the name of the parameter. */
  readonly storage: ReturnType<typeof templateFiller> | undefined;
  /** The storage has the local experts as its first dimension. */
  readonly stacked: boolean;
  /** For the expert of this position among those of its ranks. */
  readonly geometry: (localExpert: number) => Geometry;
}

/** @throws ERR_RULES when the view joins or splits what cannot be. */
export function targetsOf(
  parameter: Parameter,
  piece: Piece,
  view: readonly ViewEntry[],
  context: PieceContext,
): readonly Target[] {
  const match = matchView(view, parameter.template);
  if (match === undefined) {
    const geometry = geometryOf(piece, piece.held, zeros(piece), context);
    return [{ storage: undefined, stacked: false, geometry: () => geometry }];
  }
  return match.storages.length > 1
    ? splitTargets(piece, match, context)
    : [joinedTarget(parameter, piece, match, context)];
}

function joinedTarget(parameter: Parameter, piece: Piece, match: ViewMatch, context: PieceContext): Target {
  const members = match.members.map((template) => memberOf(template, parameter, match, context));
  requireFusible(members, match.storages[0]!);
  const before = members.slice(0, match.position);
  const offsets = piece.held.map((_, coordinate) => bytesOf(before, coordinate));
  const perExpert = piece.held.map((_, coordinate) => bytesOf(members, coordinate));
  const geometries: Geometry[] = [];
  const geometry = (localExpert: number): Geometry => {
    const expert = match.stacked ? localExpert : 0;
    geometries[expert] ??= geometryOf(
      piece,
      piece.held,
      offsets.map((offset, coordinate) => offset + expert * perExpert[coordinate]!),
      context,
    );
    return geometries[expert];
  };
  return { storage: templateFiller(match.storages[0]!), stacked: match.stacked, geometry };
}

function splitTargets(piece: Piece, match: ViewMatch, context: PieceContext): readonly Target[] {
  const { name, shape, cutting } = piece;
  const count = cutting === undefined ? 1 : cutting.shares[0]!.length;
  if (cutting === undefined || count !== match.storages.length) {
    const problem = `is split into ${match.storages.length} storages, but its rule gives ${count} parts`;
    throw rulesError(`parameter ${JSON.stringify(name)} ${problem}`, {
      help: 'Only qkv (3 parts) and gate-up (2 parts) can be split.',
      field: name,
    });
  }
  if (piece.grid === 'stacked') {
    throw rulesError(`parameter ${JSON.stringify(name)} is split, which stacked experts cannot be`, {
      field: name,
    });
  }
  return match.storages.map((storage, segment) => {
    const shares = cutting.shares.map((share) => [share[segment]!]);
    const held = heldBy(shape, { dim: cutting.dim, shares }, piece.held.length, context.interner);
    const geometry = geometryOf(piece, held, zeros(piece), context);
    return { storage: templateFiller(storage), stacked: false, geometry: () => geometry };
  });
}

function geometryOf(
  { dtype, shape }: Piece,
  held: Piece['held'],
  byteOffsets: readonly number[],
  { interner }: PieceContext,
): Geometry {
  return interner.geometry({ dtype, shape, held, byteOffsets });
}

function memberOf(template: string, like: Parameter, match: ViewMatch, context: PieceContext): Piece {
  const member = context.index.sibling(template, like);
  if (member !== undefined) return pieceOf(member, context);
  const name = JSON.stringify(fillTemplate(template, like.layer, like.expert));
  const storage = JSON.stringify(fillTemplate(match.storages[0]!, like.layer, like.expert));
  throw rulesError(`storage ${storage} joins parameter ${name}, which the model lacks`, { field: name });
}

/** Rows of several parameters make one tensor only if everything but their number of rows is equal. */
function requireFusible(members: readonly Piece[], storage: string): void {
  const first = members[0]!;
  for (const member of members) {
    const agrees =
      member.dtype === first.dtype &&
      member.grid === first.grid &&
      member.rule.stage === first.rule.stage &&
      member.shape.length === first.shape.length &&
      member.held.every((dims, c) =>
        dims.every(({ extent }, d) => d === 0 || extent === first.held[c]![d]!.extent),
      );
    // A tensor of stacked experts is renamed, but joining several would interleave their experts.
    const isJoinable = members.length === 1 || (member.grid !== 'stacked' && member.shape.length > 0);
    if (agrees && isJoinable) continue;
    const names = members.map(({ name }) => JSON.stringify(name)).join(', ');
    throw rulesError(
      `storage ${JSON.stringify(storage)} cannot join the rows of ${names}: they differ beyond rows`,
      {
        field: member.name,
      },
    );
  }
}

function bytesOf(pieces: readonly Piece[], coordinate: number): number {
  return pieces.reduce((sum, piece) => sum + heldBytes(piece, coordinate), 0);
}

function zeros({ held }: Piece): readonly number[] {
  return new Array<number>(held.length).fill(0);
}
