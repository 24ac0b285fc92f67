// SPDX-License-Identifier: Apache-2.0
// Turns handles into objects and says what is wrong with a handle: never given out, freed, or of another kind.

import type { ErrorRecord } from '../../contract/index.js';
import { errorRecord } from './errors.js';
import type { ObjectState } from './objects.js';

type StateOf<Kind extends ObjectState['kind']> = Extract<ObjectState, { readonly kind: Kind }>;

/** The handles of one backend. They count up and are never used twice. */
export class Handles {
  readonly #objects = new Map<number, ObjectState>();
  #next = 1;

  add<State extends ObjectState>(state: State): number {
    state.handle = this.#next++;
    this.#objects.set(state.handle, state);
    return state.handle;
  }

  remove(state: ObjectState): void {
    this.#objects.delete(state.handle);
  }

  get<Kind extends ObjectState['kind']>(kind: Kind, handle: number, op: string): StateOf<Kind> | ErrorRecord {
    const state = this.#objects.get(handle);
    if (state?.kind === kind) return state as StateOf<Kind>;
    if (state !== undefined)
      return errorRecord('ERR_INVALID_ARGUMENT', op, `handle ${handle} is a ${state.kind}, not a ${kind}`);
    if (Number.isSafeInteger(handle) && handle > 0 && handle < this.#next)
      return errorRecord('ERR_DISPOSED', op, `the ${kind} of handle ${handle} was freed or disposed`);
    return errorRecord('ERR_INVALID_ARGUMENT', op, `${handle} is not a handle of a ${kind} of this backend`);
  }
}
