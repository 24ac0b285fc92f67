// SPDX-License-Identifier: Apache-2.0
// Handles are numbers that repeat between kinds and worlds, so what a caller passes is checked by class and owner before its handle counts.

import type { Backend } from '../contract/index.js';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { describe } from '../mesh/require-integer.js';

/** Anything that belongs to one rank. */
interface Owned {
  readonly communicator: Owner;
  readonly disposed: boolean;
}

interface Owner {
  readonly rank: number;
  readonly backend: Backend;
}

/** A class of objects of a rank, and the words for it in messages. */
interface Kind<T extends Owned> {
  readonly type: abstract new (...args: never[]) => T;
  /** As in `a buffer`. */
  readonly name: string;
  /** As in `communicator.allocate`. */
  readonly madeBy: string;
}

/**
 * `value`, if it is of this kind and of rank `owner`.
 *
 * @throws ERR_INVALID_ARGUMENT for anything else, ERR_FOREIGN_OBJECT for one of another communicator, ERR_DISPOSED for one that is gone.
 */
export function requireOwn<T extends Owned>(value: unknown, field: string, kind: Kind<T>, owner: Owner): T {
  const object = requireKind(value, field, kind);
  if (object.communicator !== owner) throw foreign(object, field, kind, owner);
  return requireLive(object, field, kind);
}

/** As {@link requireOwn}, but any rank of the same world in this process may own it. */
export function requireLocal<T extends Owned>(value: unknown, field: string, kind: Kind<T>, owner: Owner): T {
  const object = requireKind(value, field, kind);
  if (object.communicator.backend !== owner.backend) throw foreign(object, field, kind, owner);
  return requireLive(object, field, kind);
}

function requireLive<T extends Owned>(object: T, field: string, { name, madeBy }: Kind<T>): T {
  if (!object.disposed) return object;
  throw new NcclExtError('ERR_DISPOSED', `${field} is ${name} that was disposed.`, {
    field,
    help: `Make a new one with ${madeBy}, or dispose it after its last use.`,
  });
}

function requireKind<T extends Owned>(value: unknown, field: string, { type, name, madeBy }: Kind<T>): T {
  if (value instanceof type) return value;
  throw new NcclExtError('ERR_INVALID_ARGUMENT', `${field} must be ${name}, got ${describe(value)}.`, {
    field,
    help: `Make one with ${madeBy}.`,
  });
}

function foreign<T extends Owned>(object: T, field: string, kind: Kind<T>, owner: Owner): NcclExtError {
  const { rank, backend } = object.communicator;
  const whose =
    backend === owner.backend ? `rank ${rank}` : `rank ${rank} of another world or a communicator of its own`;
  return new NcclExtError(
    'ERR_FOREIGN_OBJECT',
    `${field} is ${kind.name} of ${whose}; rank ${owner.rank} needs one of its own.`,
    { rank: owner.rank, field, help: `Make one with ${kind.madeBy} of rank ${owner.rank}.` },
  );
}
