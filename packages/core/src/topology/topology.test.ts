// SPDX-License-Identifier: Apache-2.0
// Link classes against the definition read literally, refusal of malformed descriptions, round trip, and size.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { hopperLinks } from './link.js';
import { presetTopology } from './presets.js';
import { topology } from './topology.js';
import type { RankPlace, TopologyDescription } from './topology-schema.js';

function refusal(description: unknown): NcclExtError {
  try {
    topology(description as TopologyDescription);
  } catch (error) {
    if (NcclExtError.is(error, 'ERR_TOPOLOGY')) return error;
    throw error;
  }
  throw new Error('accepted');
}

// Two nodes; node 0 has two domains (GPUs 0, 1 and GPU 2), GPU 0 is shared by ranks 0 and 1.
const ranks: RankPlace[] = [
  { node: 0, domain: 0, rail: 0, device: 0 },
  { node: 0, domain: 0, rail: 0, device: 0 },
  { node: 0, domain: 0, rail: 1, device: 1 },
  { node: 0, domain: 1, rail: 2, device: 2 },
  { node: 1, domain: 2, rail: 0, device: 0 },
  { node: 1, domain: 2, rail: 1, device: 1 },
  { node: 2, domain: 2, rail: 1, device: 0 },
];

describe('linkBetween', () => {
  const mixed = topology({ ranks });

  it.each([
    [0, 0, 'self'],
    [0, 1, 'device'],
    [0, 2, 'nvlink'],
    [5, 6, 'nvlink'],
    [0, 3, 'node'],
    [0, 4, 'rail'],
    [2, 6, 'rail'],
    [0, 5, 'network'],
    [3, 4, 'network'],
  ] as const)('between %i and %i is %s', (a, b, expected) => {
    expect(mixed.linkBetween(a, b)).toBe(expected);
    expect(mixed.linkBetween(b, a)).toBe(expected);
    expect(mixed.linkOf(a, b)).toEqual(hopperLinks[expected]);
  });

  it('refuses ranks that do not exist', () => {
    for (const rank of [-1, 7, 0.5, Number.NaN]) {
      for (const call of [
        () => mixed.linkBetween(rank, 0),
        () => mixed.linkBetween(0, rank),
        () => mixed.domainOf(rank),
      ]) {
        expect(call).toThrowError(
          expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT', field: 'rank', seen: rank }),
        );
      }
    }
  });

  it('agrees with the definition for any places', () => {
    const id = fc.nat(2);
    // Device ids that encode domain and rail never put one GPU in two of them.
    const place = fc
      .record({ node: id, domain: id, rail: id })
      .map((p) => ({ ...p, device: p.domain * 3 + p.rail }));
    fc.assert(
      fc.property(fc.array(place, { minLength: 2, maxLength: 12 }), (places) => {
        const subject = topology({ ranks: places });
        for (const [a, p] of places.entries()) {
          for (const [b, q] of places.entries()) {
            const sameNode = p.node === q.node;
            const expected =
              a === b
                ? 'self'
                : sameNode && p.device === q.device
                  ? 'device'
                  : p.domain === q.domain
                    ? 'nvlink'
                    : sameNode
                      ? 'node'
                      : p.rail === q.rail
                        ? 'rail'
                        : 'network';
            expect(subject.linkBetween(a, b)).toBe(expected);
          }
        }
      }),
    );
  });
});

describe('topology', () => {
  it('knows the place of every rank', () => {
    const subject = topology({ ranks });
    expect(subject.size).toBe(ranks.length);
    for (const [rank, place] of ranks.entries()) {
      expect({
        node: subject.nodeOf(rank),
        domain: subject.domainOf(rank),
        rail: subject.railOf(rank),
        device: subject.deviceOf(rank),
      }).toEqual(place);
    }
  });

  it('takes the given links and completes the others', () => {
    const rail = { bandwidthGBps: 100, latencyUs: 4 };
    expect(topology({ ranks, links: { rail } }).links).toEqual({ ...hopperLinks, rail });
  });

  it('survives JSON', () => {
    const subject = topology({ ranks, links: { network: { bandwidthGBps: 25, latencyUs: 20 } } });
    const text = JSON.stringify(subject);
    expect(JSON.stringify(topology(JSON.parse(text)))).toBe(text);
  });

  it.each([
    ['no object', undefined, /expected object/],
    ['no ranks', { ranks: [] }, /ranks/],
    ['a missing field', { ranks: [{ node: 0, domain: 0, rail: 0 }] }, /ranks\[0\]\.device/],
    ['a fraction', { ranks: [{ node: 0.5, domain: 0, rail: 0, device: 0 }] }, /ranks\[0\]\.node/],
    ['a negative id', { ranks: [{ node: 0, domain: -1, rail: 0, device: 0 }] }, /ranks\[0\]\.domain/],
    ['an unknown field', { ranks, nodes: 3 }, /nodes/],
    ['an unknown link class', { ranks, links: { ethernet: { bandwidthGBps: 1, latencyUs: 1 } } }, /ethernet/],
    [
      'no bandwidth',
      { ranks, links: { rail: { bandwidthGBps: 0, latencyUs: 1 } } },
      /links\.rail\.bandwidthGBps/,
    ],
    [
      'a negative latency',
      { ranks, links: { rail: { bandwidthGBps: 1, latencyUs: -1 } } },
      /links\.rail\.latencyUs/,
    ],
  ])('refuses %s', (_, description, message) => {
    expect(refusal(description).message).toMatch(message);
  });

  it.each(['domain', 'rail'] as const)('refuses one GPU with two values of %s', (field) => {
    const place = { node: 4, domain: 0, rail: 0, device: 3 };
    const error = refusal({ ranks: [place, { ...place, [field]: 1 }] });
    expect(error).toMatchObject({ rank: 1, field: `ranks.1.${field}`, expected: 0, seen: 1 });
    expect(error.message).toContain('Ranks 0 and 1 share device 3 of node 4');
  });

  it('restricts itself to some ranks, in the order given', () => {
    const subject = presetTopology('dgx-h100', 16).subset([9, 0, 1]);
    expect(subject.size).toBe(3);
    expect([0, 1, 2].map((rank) => [subject.domainOf(rank), subject.deviceOf(rank)])).toEqual([
      [1, 1],
      [0, 0],
      [0, 1],
    ]);
    expect([subject.linkBetween(0, 2), subject.linkBetween(1, 2)]).toEqual(['rail', 'nvlink']);
    for (const wrong of [[16], [-1], [0.5], ['0'], [], undefined])
      expect(() => subject.subset(wrong as never)).toThrow(
        expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT' }),
      );
  });

  it('is quick for 4096 ranks', () => {
    const pod = presetTopology('dgx-h100', 4096);
    let nvlink = 0;
    // 17 million pairs: with a search for each they would not end within the time of a test.
    for (let a = 0; a < 4096; a += 1) {
      for (let b = 0; b < 4096; b += 1) nvlink += pod.linkBetween(a, b) === 'nvlink' ? 1 : 0;
    }
    expect(nvlink).toBe(4096 * 7);
  });
});
