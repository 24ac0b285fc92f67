// SPDX-License-Identifier: Apache-2.0
// Pictures are well-formed XML that loads nothing, whatever tensors are called, and show what the plan says.

import { blockCyclic, layout, mesh, shard } from '@nccl-ext/core';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPlan } from '../create-plan.js';

const planOf = (name: string, from = 4, to = 2) =>
  createPlan({
    tensors: [
      {
        name,
        source: layout({
          shape: [64, 32],
          dtype: 'bf16',
          mesh: mesh({ tp: from }),
          placements: { tp: shard(0) },
        }),
        destination: layout({
          shape: [64, 32],
          dtype: 'bf16',
          mesh: mesh({ tp: to }, { startRank: from }),
          placements: { tp: shard(1) },
        }),
      },
    ],
    cacheEntries: 0,
  });

/** Throws unless `text` is one XML element; returns the names of its elements. */
function elementsOf(text: string): string[] {
  const open: string[] = [];
  const names: string[] = [];
  let rest = text.trim();
  while (rest !== '') {
    const tag = /^<(\/?)([a-z]+)((?: [a-zA-Z-]+="[^"<&]*(?:&(?:amp|lt|gt|quot);[^"<&]*)*")*)(\/?)>/.exec(
      rest,
    );
    if (tag) {
      const [whole, closing, name, , empty] = tag;
      if (closing) expect(open.pop()).toBe(name);
      else names.push(name!);
      if (!closing && !empty) open.push(name!);
      rest = rest.slice(whole.length);
      if (open.length === 0) expect(rest.trim()).toBe('');
    } else {
      const data = /^(?:[^<&]|&(?:amp|lt|gt|quot);)+/.exec(rest);
      if (!data || open.length === 0) throw new Error(`not well-formed at ${rest.slice(0, 60)}`);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what XML forbids
      expect(data[0]).not.toMatch(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/);
      rest = rest.slice(data[0].length);
    }
  }
  return names;
}

describe('toSVG', () => {
  it('is well-formed and loads nothing, whatever the names', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (name) => {
        for (const svg of [planOf(name).toSVG(), planOf(name).toSVG({ tensor: name })]) {
          expect(elementsOf(svg)[0]).toBe('svg');
          expect(svg.replace('http://www.w3.org/2000/svg', '')).not.toMatch(/https?:|<script|<image|href/);
          expect(svg).not.toContain('NaN');
        }
      }),
      { numRuns: 60 },
    );
  });

  it('has a cell per pair that exchanges something', () => {
    const svg = planOf('w').toSVG();
    expect(svg.match(/class="heat tile"/g)).toHaveLength(8);
    expect(svg).toContain('<title>3 to 5: 512 B</title>');
    expect(svg).toContain('4.10 kB between 6 ranks');
    expect(svg).toContain('on the planned topology, limited by what rank');
    expect(svg).toContain('the diagonal is local');
  });

  it('sums many ranks into groups', () => {
    const svg = planOf('w', 64, 32).toSVG();
    expect(svg).toContain('<title>0-1 to 64-65: 8 B</title>');
    expect(elementsOf(svg).length).toBeGreaterThan(32 * 16);
    expect(svg).toContain('each stands for 2 ranks');
    expect(svg).not.toContain('diagonal');
  });

  it.each([6, 100, 4096, 40_000])('keeps the labels of %i ranks apart and inside', (ranks) => {
    const svg = planOf('w', ranks / 2, ranks / 2).toSVG();
    const width = Number(/ width="(\d+)/.exec(svg)![1]);
    // Wider than a digit of 12 px is in any usual font.
    const half = (text: string) => (7.5 * text.length) / 2;
    const across = [...svg.matchAll(/<text x="([\d.]+)" y="([\d.]+)" class="muted middle">([\d-]+)</g)];
    expect(across.length).toBeGreaterThan(3);
    let free = 0;
    for (const [, x, y, text] of across) {
      expect(Number(x) - half(text!)).toBeGreaterThan(free);
      expect(Number(y)).toBeGreaterThan(84);
      free = Number(x) + half(text!);
    }
    expect(free).toBeLessThan(width);
    for (const [, x, text] of svg.matchAll(/<text x="([\d.]+)" y="[\d.]+" class="muted end">([\d-]+)</g))
      expect(Number(x) - 2 * half(text!)).toBeGreaterThan(10);
  });

  it('draws the tiles of a tensor before and after', () => {
    const svg = planOf('w').toSVG({ tensor: 'w' });
    expect(svg).toContain('before: 4 tiles');
    expect(svg).toContain('after: 2 tiles');
    expect(svg.match(/class="tile"/g)).toHaveLength(6);
  });

  it('draws vectors, scalars, empty tensors and very many tiles', () => {
    const draw = (shape: number[], split?: ReturnType<typeof blockCyclic>) => {
      const side = (startRank: number) =>
        layout({
          shape,
          dtype: 'u8',
          mesh: mesh({ tp: 2 }, { startRank }),
          placements: split ? { tp: shard(0, split) } : {},
        });
      const plan = createPlan({
        tensors: [{ name: 'w', source: side(0), destination: side(2) }],
        cacheEntries: 0,
      });
      const svg = plan.toSVG({ tensor: 'w' });
      elementsOf(svg);
      elementsOf(plan.toSVG());
      return svg;
    };
    expect(draw([9], blockCyclic(2)).match(/class="tile"/g)).toHaveLength(10);
    expect(draw([])).toContain('1 tile<');
    expect(draw([0, 3])).toContain('0 tiles');
    expect(draw([2, 3, 4])).toContain('the first two dimensions are drawn');
    expect(draw([10_000], blockCyclic(1))).toContain('more tiles are not drawn');
  });

  it('refuses names that the plan does not have', () => {
    expect(() => planOf('w').toSVG({ tensor: 'v' })).toThrow('The plan has no tensor "v".\nIt has 1: w.');
    expect(() => planOf('weight').toSVG({ tensor: 'wieght' })).toThrow('Did you mean "weight"?');
  });
});
