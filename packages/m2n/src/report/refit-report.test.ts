// SPDX-License-Identifier: Apache-2.0
// The report is one file that needs nothing else, shows what the result says, and takes no markup from names.

import { layout, mesh, shard } from '@nccl-ext/core';
import { describe, expect, it } from 'vitest';
import { createPlan } from '../plan/create-plan.js';
import { bytesText } from '../plan/explain/explanation-text.js';
import type { RefitResult } from '../refit/refit-result.js';
import { rankTraffic } from './rank-traffic.js';
import { refitReport } from './refit-report.js';

const hostile = '<script>alert("x")</script>';
const sources = mesh({ tp: 4 });
const destinations = mesh({ dp: 2, tp: 2 }, { startRank: 2 });
const plan = createPlan({
  tensors: ['first.weight', hostile].map((name, index) => ({
    name,
    source: layout({ shape: [64, 32], dtype: 'bf16', mesh: sources, placements: { tp: shard(index) } }),
    destination: layout({ shape: [64, 32], dtype: 'f32', mesh: destinations, placements: { tp: shard(0) } }),
  })),
});

const times = {
  agreeMs: 1,
  pauseMs: 2,
  moveMs: 12.34,
  verifyMs: 3,
  resumeMs: 1,
  stallMs: 18.34,
  checkMs: 30,
};

const result: RefitResult = {
  ok: true,
  tensors: 2,
  parameterBytes: 2 * 64 * 32 * 4,
  wireBytes: plan.totals.wireBytes,
  localBytes: plan.totals.localBytes,
  lowerBoundBytes: plan.totals.lowerBoundBytes,
  planMs: 1.5,
  loadMs: 20,
  prepareMs: 2,
  ...times,
  repeats: [{ ...times, stallMs: 99 }, times, times],
  gigabytesPerSecond: 4.567,
  hashed: true,
  verified: true,
  backend: 'embedded',
  ranks: plan.worldSize,
  devices: Array(plan.worldSize).fill(0),
  version: 7,
  values: hostile,
  plan,
};

describe('refitReport', () => {
  const report = refitReport(result, {
    model: hostile,
    from: 'tp=4',
    to: 'dp=2,tp=2',
    command: `nccl-ext refit --model '${hostile}'`,
    date: new Date('2026-11-30T12:00:00Z'),
  });

  it('is one document without scripts and without anything from elsewhere', () => {
    expect(report).toMatch(/^<!doctype html>/);
    expect(report).not.toContain('<script');
    expect(report).not.toMatch(/(src|href)\s*=\s*["']?(https?:)?\/\//);
    expect(report).not.toMatch(/url\(|@import/);
    expect(report).toContain("default-src 'none'");
    expect(report).toContain('prefers-color-scheme: dark');
  });

  it('closes what it opens', () => {
    for (const tag of ['section', 'div', 'table', 'svg', 'tr', 'td', 'dl', 'ul', 'p', 'figure', 'span']) {
      const opened = report.match(new RegExp(`<${tag}[\\s>]`, 'g'))?.length;
      const closed = report.match(new RegExp(`</${tag}>`, 'g'))?.length;
      expect([tag, opened]).toEqual([tag, closed]);
    }
  });

  it('says what the result says', () => {
    for (const text of [
      '4.57 GB/s',
      '12.3 ms',
      '18.3 ms',
      'median of 3, the first 99.0 ms',
      bytesText(16_384),
      'verified',
      plan.digest,
      '2026-11-30T12:00:00.000Z',
    ]) {
      expect(report).toContain(text);
    }
    expect(report).toContain('bf16 to f32');
    expect(report).toContain('(0 to 3)');
    expect(report).toContain('(2 to 5)');
    expect(report.match(/<svg/g)!.length).toBeGreaterThanOrEqual(3);
    expect(report).toContain('first.weight');
  });

  it('does not pass the links of the topology off as those of the run', () => {
    expect(report).toContain('Bytes per link <small>of the planned topology</small>');
    expect(report).toContain('This run used none of these links');
    expect(refitReport({ ...result, backend: 'cuda13' })).not.toContain('used none of these links');
  });

  it('lets a path in the heading break after its slashes', () => {
    expect(refitReport(result, { model: 'folder/model.safetensors' })).toContain(
      '<h1>folder/<wbr>model.safetensors<wbr></h1>',
    );
  });

  it('does without context and says when nothing was verified', () => {
    const bare = refitReport({ ...result, verified: false, checkMs: 0.01 });
    expect(bare).toContain('not verified');
    expect(bare).not.toContain('<dt>Command</dt>');
    expect(bare).not.toContain('p-check"');
  });
});

describe('rankTraffic', () => {
  it('agrees with the totals of the plan', () => {
    const { sent, received, local } = rankTraffic(plan);
    const sum = (values: Float64Array): number => values.reduce((total, value) => total + value, 0);
    expect(sum(sent)).toBe(plan.totals.wireBytes);
    expect(sum(received)).toBe(plan.totals.wireBytes);
    expect(sum(local)).toBe(plan.totals.localBytes);
    expect(Math.max(...sent)).toBe(plan.totals.maxRankBytes);
  });
});
