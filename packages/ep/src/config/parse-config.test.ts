// SPDX-License-Identifier: Apache-2.0
// Configurations: defaults, what is refused and by which name, and maps of experts.

import { describe, expect, it } from 'vitest';
import { agreedFields, canonicalAgreed } from './agreed-fields.js';
import { chooseReplica } from './choose-replica.js';
import type { EpConfig } from './ep-config.js';
import { expertMapOf } from './expert-map.js';
import { parseConfig } from './parse-config.js';

const config: EpConfig = { experts: 8, topK: 2, hidden: 64, dtype: 'bf16', maxTokensPerRank: 16 };

describe('parseConfig', () => {
  it('fills in defaults', () => {
    const { map: _, ...settings } = parseConfig(config, 4, 1234);
    expect(settings).toEqual({
      ranks: 4,
      topK: 2,
      hidden: 64,
      dtype: 'bf16',
      maxTokensPerRank: 16,
      receiveBudget: 0,
      overflow: 'error',
      reduction: 'rank',
      expand: 'auto',
      sms: 0,
      contexts: 4,
      timeoutMs: 1234,
      mask: false,
      debugFill: -1,
    });
  });

  it.each<[string, Partial<Record<keyof EpConfig, unknown>>]>([
    ['experts', { experts: 0 }],
    ['experts', { experts: 1e9 }],
    ['experts.count', { experts: { count: 1e9, placement: [[0], [1], [2], [3]] } }],
    ['topK', { topK: 0 }],
    ['topK', { topK: 33 }],
    ['topK', { topK: 9 }],
    ['hidden', { hidden: 0 }],
    ['hidden', { hidden: 12 }],
    ['hidden', { hidden: 6, dtype: 'f32' }],
    ['dtype', { dtype: 'f64' }],
    ['maxTokensPerRank', { maxTokensPerRank: 1.5 }],
    ['maxTokensPerRank', { maxTokensPerRank: 2 ** 31 }],
    ['receiveBudget', { receiveBudget: 0 }],
    ['receiveBudget', { receiveBudget: 'lazy' }],
    ['overflow', { overflow: 'drop' }],
    ['overflow', { overflow: 'drop-by-source' }],
    ['reduction', { reduction: 'none' }],
    ['expand', { expand: 'both' }],
    ['sms', { sms: 0 }],
    ['contexts', { contexts: 65 }],
    ['timeoutMs', { timeoutMs: -1 }],
    ['mask', { mask: 1 }],
    ['debugFill', { debugFill: 256 }],
    ['debugFill', { debugFill: true }],
    ['experts.placement', { experts: { count: 2, placement: [[0, 1]] } }],
    ['experts.placement', { experts: { count: 3, placement: [[0, 1], [], [], []] } }],
    ['experts.placement[1][0]', { experts: { count: 1, placement: [[0], [1], [], []] } }],
  ])('refuses a wrong %s', (field, change) => {
    expect(() => parseConfig({ ...config, ...change } as EpConfig, 4)).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT', field }),
    );
  });

  it('refuses what it does not know', () => {
    expect(() => parseConfig({ ...config, maxTokens: 3 } as EpConfig, 4)).toThrow(/maxTokens/);
    expect(() => parseConfig(null as never, 4)).toThrow(/config must be an object/);
    expect(() => parseConfig(config, 1e9)).toThrow(/ranks must be an integer from 1 to 65536/);
  });
});

describe('expertMapOf', () => {
  it('cuts a count evenly, the first ranks have one more', () => {
    const { placement, firstPhysical, mostLocal } = expertMapOf(5, 3);
    expect(placement).toEqual([[0, 1], [2, 3], [4]]);
    expect([...firstPhysical]).toEqual([0, 2, 4, 5]);
    expect(mostLocal).toBe(2);
  });

  it('counts physical experts through the ranks, replicas included', () => {
    const map = expertMapOf({ count: 3, placement: [[2, 0], [], [0, 1, 0]] }, 3);
    expect([...map.expertOf]).toEqual([2, 0, 0, 1, 0]);
    expect([...map.rankOf]).toEqual([0, 0, 2, 2, 2]);
    expect(map.replicas).toEqual([[1, 2, 4], [3], [0]]);
  });
});

describe('chooseReplica', () => {
  const placement = [[0], [0, 1], [0]];
  it('takes (source + token) modulo the live replicas', () => {
    const map = expertMapOf({ count: 2, placement }, 3);
    expect([0, 1, 2, 3].map((token) => chooseReplica(map, 0, 1, token))).toEqual([1, 3, 0, 1]);
    const active = [1, 0, 1];
    expect([0, 1, 2].map((token) => chooseReplica(map, 0, 0, token, active))).toEqual([0, 3, 0]);
    expect(chooseReplica(map, 1, 0, 0, active)).toBe(-1);
  });

  it('takes one on the source rank first when told so', () => {
    const map = expertMapOf({ count: 2, placement, replicaRule: 'local-first' }, 3);
    expect([0, 1, 2].map((source) => chooseReplica(map, 0, source, 1))).toEqual([0, 1, 3]);
    expect(chooseReplica(map, 1, 0, 0)).toBe(2);
  });
});

describe('agreed fields', () => {
  it('have one field per option', () => {
    const fields = agreedFields(parseConfig({ ...config, receiveBudget: 40 }, 4));
    expect(Object.keys(fields).sort()).toEqual([
      'contexts',
      'debugFill',
      'dtype',
      'expand',
      'experts',
      'hidden',
      'mask',
      'maxTokensPerRank',
      'overflow',
      'placement',
      'receiveBudget',
      'reduction',
      'replicaRule',
      'sms',
      'timeoutMs',
      'topK',
    ]);
    expect(fields.receiveBudget).toBe(40);
  });

  it('are the same text however the configuration is written', () => {
    const placed = { experts: { placement: [[0], [1]], count: 2 } };
    const { dtype, ...rest } = config;
    expect(canonicalAgreed(parseConfig({ ...config, ...placed }, 2))).toBe(
      canonicalAgreed(parseConfig({ ...placed, dtype, ...rest, experts: 2 }, 2)),
    );
  });
});
