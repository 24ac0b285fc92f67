// SPDX-License-Identifier: Apache-2.0
// Lifetimes: everything that holds a resource is disposed once, children before parents, and refuses use afterwards.

import { NcclExtError } from '../errors/nccl-ext-error.js';

/** Base of every object that users dispose. Parents dispose their children, youngest first. */
export abstract class Resource {
  readonly #kind: string;
  readonly #parent: Resource | undefined;
  readonly #children = new Set<Resource>();
  #disposal: Promise<void> | undefined;

  /** `kind` names the object in errors; the object lives no longer than `parent`. */
  constructor(kind: string, parent?: Resource) {
    this.#kind = kind;
    this.#parent = parent;
    if (parent === undefined) return;
    parent.assertUsable();
    parent.#children.add(this);
  }

  get disposed(): boolean {
    return this.#disposal !== undefined;
  }

  /**
   * Frees what this object and its children hold. Calling it again returns the same promise. When freeing is refused
   * (ERR_BUSY: unfinished work still uses it) the object stays usable and `dispose` may be called again.
   */
  dispose(): Promise<void> {
    this.#disposal ??= this.#disposeOnce();
    return this.#disposal;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  /** Throws ERR_DISPOSED once `dispose` was called. */
  assertUsable(): void {
    if (this.#disposal !== undefined) {
      throw new NcclExtError('ERR_DISPOSED', `This ${this.#kind} was disposed.`, {
        op: this.#kind,
        help: 'Create a new one, or dispose it after its last use.',
      });
    }
  }

  /** Whether {@link release} also frees what children hold that are still in use: an open send that nobody will complete. */
  protected get endsChildren(): boolean {
    return false;
  }

  /** Waits for work in flight that uses this object or its children; runs before any of them is freed. */
  protected drain(): Promise<void> | void {}

  /** Frees what this object itself holds; its children are gone. */
  protected abstract release(): Promise<void> | void;

  async #disposeOnce(): Promise<void> {
    try {
      await this.drain();
      for (const child of [...this.#children].reverse()) await this.#disposeChild(child);
      await this.release();
      if (this.#parent !== undefined) this.#parent.#children.delete(this);
    } catch (error) {
      if (NcclExtError.is(error, 'ERR_BUSY')) this.#disposal = undefined;
      throw error;
    }
  }

  async #disposeChild(child: Resource): Promise<void> {
    try {
      await child.dispose();
    } catch (error) {
      if (!this.endsChildren || !NcclExtError.is(error, 'ERR_BUSY')) throw error;
      child.#endWithParent();
    }
  }

  #endWithParent(): void {
    this.#disposal ??= Promise.resolve();
    for (const child of this.#children) child.#endWithParent();
  }
}
