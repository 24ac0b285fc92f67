// SPDX-License-Identifier: Apache-2.0
// The order of operations on a handle: what is out of order is refused before anything is enqueued.

import { type CallPlace, callError } from '../fields/call-place.js';
import { isLowLatency } from '../fields/modes.js';

type Sendable = 'dispatch' | 'combine';

/** Remembers what was enqueued on one handle, and after how many changes of the group's membership. */
export class CallOrder {
  #changes = 0;
  #routed = false;
  #dispatched = false;
  /** The route was made before the last change. */
  #outdated = false;
  readonly #sends: Sendable[] = [];

  /** B of the last route. */
  tokens = 0;

  /** Throws ERR_INVALID_STATE unless `operation` may come now; `changes` counts those of the membership. */
  require(
    operation: 'route' | 'dispatch' | 'combine' | 'complete' | 'counts',
    place: CallPlace,
    changes: number,
  ): void {
    this.#enter(changes);
    const problem = this.#problem(operation, isLowLatency(place.layout));
    if (problem === undefined) return;
    throw callError(place, operation, problem.says, { code: 'ERR_INVALID_STATE', help: problem.help });
  }

  routed(tokens: number): void {
    this.tokens = tokens;
    this.#routed = true;
    this.#dispatched = false;
    this.#outdated = false;
  }

  dispatched(sendOnly: boolean): void {
    this.#dispatched = true;
    if (sendOnly) this.#sends.push('dispatch');
  }

  combined(sendOnly: boolean): void {
    if (sendOnly) this.#sends.push('combine');
  }

  completed(): void {
    this.#sends.shift();
  }

  /** A change of membership ended what was in flight, and what was routed no longer holds. */
  #enter(changes: number): void {
    if (changes === this.#changes) return;
    this.#changes = changes;
    this.#outdated ||= this.#routed;
    this.#routed = false;
    this.#dispatched = false;
    this.#sends.length = 0;
  }

  #problem(
    operation: string,
    lowLatency: boolean,
  ): { readonly says: string; readonly help: string } | undefined {
    switch (operation) {
      case 'route':
        if (this.#sends.length === 0) return undefined;
        return {
          says: `comes while ${this.#sends.length} sends of this handle are open.`,
          help: 'Complete them first: handle.complete({ stream }).',
        };
      case 'complete':
        if (this.#sends.length > 0) return undefined;
        return { says: 'has no open send.', help: 'It ends a dispatch or combine with sendOnly: true.' };
      case 'combine':
        if (this.#sends.includes('dispatch'))
          return {
            says: 'comes while a dispatch of this handle is open.',
            help: 'Complete it first: its rows are undefined until then.',
          };
        return this.#dispatched ? undefined : this.#unrouted('comes before a dispatch of what was routed.');
      case 'dispatch':
        if (this.#sends.includes('combine'))
          return {
            says: 'comes while a combine of this handle is open.',
            help: 'Complete it first, or use another handle: the combine still reads what was dispatched.',
          };
        return this.#routed ? undefined : this.#unrouted('comes before a route.');
      default:
        if (!lowLatency) return this.#routed ? undefined : this.#unrouted('come before a route.');
        if (this.#sends.includes('dispatch'))
          return { says: 'come while a dispatch of this handle is open.', help: 'Complete it first.' };
        return this.#dispatched
          ? undefined
          : this.#unrouted('come before a dispatch, which counts in low latency.');
    }
  }

  #unrouted(says: string): { readonly says: string; readonly help: string } {
    if (this.#outdated && !this.#routed)
      return {
        says: 'comes after a change of membership without a new route.',
        help: 'Route, dispatch and combine again among the members.',
      };
    return { says, help: 'The order is route, dispatch, combine; each may repeat before the next.' };
  }
}
