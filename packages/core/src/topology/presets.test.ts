// SPDX-License-Identifier: Apache-2.0
// Shapes of the named machines, partly filled ones, and what topologyFor accepts.

import { describe, expect, it } from 'vitest';
import { presets, presetTopology, singleDomain } from './presets.js';
import { topology } from './topology.js';
import { topologyFor } from './topology-for.js';

describe('presetTopology', () => {
  it('dgx-h100 has a domain per node of 8 and 8 rails', () => {
    const pod = presetTopology('dgx-h100', 20);
    expect([0, 7, 8, 15, 16, 19].map((rank) => pod.nodeOf(rank))).toEqual([0, 0, 1, 1, 2, 2]);
    expect([0, 7, 8, 19].map((rank) => pod.domainOf(rank))).toEqual([0, 0, 1, 2]);
    expect([0, 7, 8, 19].map((rank) => pod.railOf(rank))).toEqual([0, 7, 0, 3]);
    expect(pod.linkBetween(0, 7)).toBe('nvlink');
    expect(pod.linkBetween(3, 19)).toBe('rail');
    expect(pod.linkBetween(0, 9)).toBe('network');
    expect(pod.links.rail.bandwidthGBps).toBe(50);
    expect(pod.links.nvlink.bandwidthGBps).toBe(450);
  });

  it('gb200-nvl72 has domains of 18 nodes with 4 GPUs', () => {
    const racks = presetTopology('gb200-nvl72', 100);
    expect([0, 3, 4, 71, 72, 99].map((rank) => racks.nodeOf(rank))).toEqual([0, 0, 1, 17, 18, 24]);
    expect([0, 71, 72, 99].map((rank) => racks.domainOf(rank))).toEqual([0, 0, 1, 1]);
    expect(racks.linkBetween(0, 71)).toBe('nvlink');
    expect(racks.linkBetween(0, 72)).toBe('rail');
    expect(racks.linkBetween(0, 73)).toBe('network');
    expect(racks.links.nvlink.bandwidthGBps).toBe(900);
  });

  it('single-node is one domain, and ends at 8 GPUs', () => {
    expect(presetTopology('single-node', 8).linkBetween(0, 7)).toBe('nvlink');
    expect(() => presetTopology('single-node', 9)).toThrowError(
      expect.objectContaining({
        code: 'ERR_TOPOLOGY',
        message: expect.stringContaining('too few for 9 ranks'),
      }),
    );
  });

  it.each(Object.keys(presets) as (keyof typeof presets)[])('%s is a valid description of itself', (name) => {
    for (const ranks of [1, 7, 8]) {
      const preset = presetTopology(name, ranks);
      expect(JSON.stringify(topology(preset.toJSON()))).toBe(JSON.stringify(preset));
    }
  });

  it.each([0, -1, 1.5, Number.NaN, 2 ** 31])('refuses %d ranks', (ranks) => {
    for (const call of [() => presetTopology('dgx-h100', ranks), () => singleDomain(ranks)]) {
      expect(call).toThrowError(expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT', field: 'ranks' }));
    }
  });
});

it('singleDomain joins any number of GPUs by NVLink', () => {
  const one = singleDomain(33);
  expect(one.size).toBe(33);
  expect(one.linkBetween(0, 32)).toBe('nvlink');
  expect(one.nodeOf(32)).toBe(0);
});

describe('topologyFor', () => {
  const file = JSON.parse(JSON.stringify(presetTopology('dgx-h100', 16)));

  it('takes a name, a topology or a description', () => {
    const expected = JSON.stringify(presetTopology('dgx-h100', 12));
    expect(JSON.stringify(topologyFor('dgx-h100', 12))).toBe(expected);
    expect(JSON.stringify(topologyFor(presetTopology('dgx-h100', 16), 12))).toBe(expected);
    expect(JSON.stringify(topologyFor(file, 12))).toBe(expected);
  });

  it('refuses unknown names, listing the known ones', () => {
    for (const name of ['dgx', 'toString']) {
      expect(() => topologyFor(name, 4)).toThrowError(
        expect.objectContaining({ code: 'ERR_TOPOLOGY', message: expect.stringContaining('gb200-nvl72') }),
      );
    }
  });

  it('refuses a description of fewer ranks', () => {
    expect(() => topologyFor(file, 17)).toThrowError(
      expect.objectContaining({ code: 'ERR_TOPOLOGY', expected: 17, seen: 16 }),
    );
  });

  it('refuses what is no description', () => {
    for (const value of [null, 3, [], {}]) {
      expect(() => topologyFor(value, 1)).toThrowError(expect.objectContaining({ code: 'ERR_TOPOLOGY' }));
    }
  });
});
