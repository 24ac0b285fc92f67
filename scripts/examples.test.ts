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

  it('the program of the README is reshard.mjs', () => {
    expect(readmeBlock('js')).toBe(readFileSync(join(folder, 'reshard.mjs'), 'utf8'));
  });
});

/** The first fenced block of a language in the README. */
function readmeBlock(language: string): string {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  return new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(readme)?.[1] ?? '';
}

/** Ranks run concurrently; the order of their lines is not promised. */
function sorted(text: string): string {
  return text.trim().split('\n').sort().join('\n');
}
