// SPDX-License-Identifier: Apache-2.0
// Lifetimes: order, refusal after dispose, and a refused dispose that can be tried again.

import { describe, expect, it } from 'vitest';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { Resource } from './resource.js';

class Probe extends Resource {
  readonly #log: string[];
  readonly #name: string;
  busy = false;

  constructor(log: string[], name: string, parent?: Resource) {
    super('probe', parent);
    this.#log = log;
    this.#name = name;
  }

  protected override drain(): void {
    this.#log.push(`drain ${this.#name}`);
  }

  protected override release(): void {
    if (this.busy) throw new NcclExtError('ERR_BUSY', 'still in use');
    this.#log.push(`free ${this.#name}`);
  }
}

/** Frees all that its children hold. */
class Owner extends Probe {
  protected override get endsChildren(): boolean {
    return true;
  }
}

describe('Resource', () => {
  it('ends children that are still in use, if it frees what they hold', async () => {
    const log: string[] = [];
    const owner = new Owner(log, 'owner');
    const busy = new Probe(log, 'busy', owner);
    const under = new Probe(log, 'under', busy);
    under.busy = true;
    await owner.dispose();
    expect(log.at(-1)).toBe('free owner');
    for (const probe of [busy, under]) expect(() => probe.assertUsable()).toThrow(/was disposed/);
    const strict = new Probe(log, 'strict');
    new Probe(log, 'child', strict).busy = true;
    await expect(strict.dispose()).rejects.toMatchObject({ code: 'ERR_BUSY' });
  });

  it('drains the parent, then frees children before it, youngest first', async () => {
    const log: string[] = [];
    const parent = new Probe(log, 'parent');
    new Probe(log, 'first', parent);
    new Probe(log, 'second', parent);
    await parent.dispose();
    expect(log).toEqual([
      'drain parent',
      'drain second',
      'free second',
      'drain first',
      'free first',
      'free parent',
    ]);
  });

  it('frees once, however often dispose is called', async () => {
    const log: string[] = [];
    const probe = new Probe(log, 'one');
    await Promise.all([probe.dispose(), probe.dispose(), probe[Symbol.asyncDispose]()]);
    expect(log.filter((entry) => entry === 'free one')).toHaveLength(1);
  });

  it('does not free a child again that was disposed by itself', async () => {
    const log: string[] = [];
    const parent = new Probe(log, 'parent');
    await new Probe(log, 'child', parent).dispose();
    await parent.dispose();
    expect(log.filter((entry) => entry === 'free child')).toHaveLength(1);
  });

  it('refuses use and new children from the moment dispose is called', async () => {
    const parent = new Probe([], 'parent');
    const disposal = parent.dispose();
    expect(() => parent.assertUsable()).toThrow(expect.objectContaining({ code: 'ERR_DISPOSED' }));
    expect(() => new Probe([], 'late', parent)).toThrow(expect.objectContaining({ code: 'ERR_DISPOSED' }));
    await disposal;
  });

  it('stays usable when freeing is refused as busy, and can be disposed later', async () => {
    const log: string[] = [];
    const probe = new Probe(log, 'probe');
    probe.busy = true;
    await expect(probe.dispose()).rejects.toMatchObject({ code: 'ERR_BUSY' });
    expect(() => probe.assertUsable()).not.toThrow();
    probe.busy = false;
    await probe.dispose();
    expect(log).toContain('free probe');
  });
});
