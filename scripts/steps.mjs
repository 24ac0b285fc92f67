// SPDX-License-Identifier: Apache-2.0
// Runs named checks one after the other, all of them even when some fail, and says in the end which failed.

/** What a step returns that cannot run on this machine. */
export const skipped = Symbol('skipped');

/**
 * @param steps rows of [name, function that returns an exit code or `skipped`]
 * @param needed names of the steps without which the others mean nothing
 * @returns the exit code: 0 when no step failed
 */
export function runSteps(steps, needed) {
  const failed = [];
  const left = [];
  let passed = 0;
  const started = performance.now();
  for (const [name, step] of steps) {
    const begun = performance.now();
    process.stdout.write(`\n== ${name}\n`);
    const outcome = step();
    const word = outcome === skipped ? 'skipped' : outcome === 0 ? 'ok' : 'FAILED';
    process.stdout.write(`== ${name}: ${word}, ${((performance.now() - begun) / 1000).toFixed(1)} s\n`);
    if (outcome === 0) passed += 1;
    else (outcome === skipped ? left : failed).push(name);
    if (word === 'FAILED' && needed.has(name)) break;
  }
  process.stdout.write(
    `\n${((performance.now() - started) / 1000).toFixed(0)} s. ${passed} of ${steps.length} steps passed.\n`,
  );
  if (left.length > 0) process.stdout.write(`Skipped: ${left.join(', ')}\n`);
  process.stdout.write(failed.length === 0 ? 'All checks passed.\n' : `Failed: ${failed.join(', ')}\n`);
  return failed.length === 0 ? 0 : 1;
}
