// Examples in docs/ and the README run, and print what the documents say. Those in folders need a GPU: native/tests/gpu/run.sh runs them.

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = join(fileURLToPath(import.meta.url), '../..');
const folder = join(root, 'docs/examples');

const printed: Record<string, string> = {
  'graph.mjs': '100 executions\n',
  'moe-decode.mjs': '5 replays of one graph, 1280 values, 0 wrong\n',
  'moe-layer.mjs': readmeBlock('text', 1),
  'moe-recovery.mjs': [
    'all ranks: 2.5, 2.5, 2.5, 2.5',
    'rank 3 stops: rank 3 did not come, rank 3 did not come, rank 3 did not come',
    'before they agree: ERR_MEMBERSHIP, ERR_MEMBERSHIP, ERR_MEMBERSHIP',
    'seen by rank 0: 3',
    'without it: 1.5, 1.5, 1.5',
    'renormalized: 2, 2, 2',
    'rank 3 is back: ERR_MEMBERSHIP',
    'all ranks: 2.5, 2.5, 2.5, 2.5',
  ].join('\n'),
  'moe-training.mjs': [
    'step   loss   gradients equal the dense ones within',
    '   0  0.160   0.000002',
    '  10  0.141   0.000002',
    '  20  0.111   0.000002',
    '  30  0.074   0.000002',
    '  40  0.053   0.000002',
    '  50  0.042   0.000002',
    '  60  0.035   0.000002',
  ].join('\n'),
  'missing-rank.mjs': 'rank 0: rank 2 did not come\nrank 1: rank 2 did not come\n',
  'publish.mjs': 'rank 3 serves version 3\n',
  'reshard.mjs': readmeBlock('text'),
};

describe('docs/examples', () => {
  it.each(readdirSync(folder).filter((name) => name.endsWith('.mjs')))(
    '%s runs and prints what is promised',
    (file) => {
      const output = execFileSync(process.execPath, [join(folder, file)], {
        encoding: 'utf8',
        timeout: 20_000,
      });
      expect(sorted(output)).toBe(sorted(printed[file] ?? ''));
    },
  );

  it.each([
    ['first', 'reshard.mjs', 0],
    ['second', 'moe-layer.mjs', 1],
  ] as const)('the %s program of the README is %s', (_, file, index) => {
    expect(readmeBlock('js', index)).toBe(readFileSync(join(folder, file), 'utf8'));
  });
});

/** A fenced block of a language in the README. */
function readmeBlock(language: string, index = 0): string {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  const blocks = [...readme.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))];
  return blocks[index]?.[1] ?? '';
}

/** Ranks run concurrently; the order of their lines is not promised. */
function sorted(text: string): string {
  return text.trim().split('\n').sort().join('\n');
}
