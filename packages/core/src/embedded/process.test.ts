// SPDX-License-Identifier: Apache-2.0
// The backend in a process of its own: idle it costs nothing and lets the process end, waiting it keeps it alive.

import { spawn } from 'node:child_process';
import { describe, expect, it } from 'vitest';

const built = new URL('../../dist/embedded/index.js', import.meta.url);

/** Runs `body` with `runtime`, `faults` and two ranks with a stream each; gives what it printed. */
function run(body: string): Promise<{ code: number | null; output: string; ms: number }> {
  const script = `
    import { createEmbeddedBackend } from ${JSON.stringify(built.href)};
    const backend = createEmbeddedBackend();
    const { runtime, faults } = backend;
    const world = await runtime.createLocalRanks({ ranks: 2, timeoutMs: 20000, workers: 2, sms: 0 });
    const ranks = world.value;
    const streams = ranks.map((rank) => runtime.createStream(rank).value);
    const buffer = runtime.allocate(ranks[0], 16, 'plain').value;
    const print = (text) => process.stdout.write(String(text));
    ${body}
  `;
  const start = performance.now();
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 15_000,
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        output += chunk;
      });
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, output, ms: performance.now() - start }));
  });
}

describe('a process', () => {
  it('ends while an idle world exists', async () => {
    expect(await run(`print('idle');`)).toMatchObject({ code: 0, output: 'idle' });
  });

  it('ends after work, with the world still there', async () => {
    const result = await run(`
      runtime.enqueueFill(streams[0], buffer, 0, 16, 1);
      print((await runtime.synchronize(streams[0])).ok);
    `);
    expect(result).toMatchObject({ code: 0, output: 'true' });
  });

  it('ends although work is queued that nobody waits for', async () => {
    expect(await run(`runtime.enqueueBarrier(streams[0]); print('queued');`)).toMatchObject({
      code: 0,
      output: 'queued',
    });
  });

  it('stays alive for a pending synchronize, event or upload behind it', async () => {
    const result = await run(`
      const event = runtime.createEvent(ranks[0]).value;
      faults.delayRank(ranks[0], 100);
      runtime.enqueueUpload(streams[0], buffer, 0, new Uint8Array(16));
      runtime.recordEvent(event, streams[0]);
      runtime.synchronizeEvent(event).then(() => print('event '));
      runtime.enqueueFill(streams[0], buffer, 0, 16, 1);
      runtime.synchronize(streams[0]).then((outcome) => print('stream ' + outcome.ok));
    `);
    expect(result).toMatchObject({ code: 0, output: 'event stream true' });
    expect(result.ms).toBeGreaterThan(290);
  });

  it('ends after its ranks were disposed', async () => {
    const result = await run(`
      for (const rank of ranks) await runtime.disposeRank(rank);
      await backend.dispose();
      print('disposed');
    `);
    expect(result).toMatchObject({ code: 0, output: 'disposed' });
  });

  it('uses no CPU while idle, blocked or stopped', async () => {
    const result = await run(`
      const measure = async () => {
        let least = Infinity;
        for (let window = 0; window < 3; window++) {
          await new Promise((resolve) => setTimeout(resolve, 100));
          const before = process.cpuUsage();
          await new Promise((resolve) => setTimeout(resolve, 100));
          const { user, system } = process.cpuUsage(before);
          least = Math.min(least, (user + system) / 1000);
        }
        return least;
      };
      const idle = await measure();
      runtime.enqueueBarrier(streams[0]);
      const blocked = await measure();
      faults.stopRank(ranks[1]);
      runtime.enqueueBarrier(streams[1]);
      const stopped = await measure();
      print(JSON.stringify([idle, blocked, stopped]));
    `);
    // Milliseconds of 100, with the main thread's own timers; who polls does so in every window, garbage is collected in one.
    for (const used of JSON.parse(result.output)) expect(used).toBeLessThan(5);
  });
});
