// SPDX-License-Identifier: Apache-2.0
// The bound of the embedded backend: how fast the same number of threads copies the same number of bytes with nothing else to do.

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { countText } from '../output/units.js';
import type { Ceiling } from './ceiling.js';
import type { CopyShare, CopySpan } from './copy-worker.js';
import { fillRandom } from './fill-random.js';

/** Threads that copy between shared memories of their own; their memory and they live until `dispose`. */
export class CopyThreads implements Ceiling {
  /** Copied by all threads together at each turn. */
  readonly bytes: number;
  readonly how: string;
  readonly #workers: readonly Worker[];

  constructor(bytes: number, threads: number) {
    const share = Math.floor(bytes / threads);
    this.bytes = share * threads;
    this.how = `${countText(threads, 'thread')} copying`;
    this.#workers = Array.from({ length: threads }, () => {
      const memory: CopyShare = {
        source: new SharedArrayBuffer(share),
        destination: new SharedArrayBuffer(share),
      };
      fillRandom((at, length) => new Uint8Array(memory.source, at, length), share);
      return new Worker(new URL('./copy-worker.js', import.meta.url), { workerData: memory });
    });
  }

  /** Milliseconds from the first thread's begin to the last one's end. */
  async copy(): Promise<number> {
    const replies = this.#workers.map((worker) => once(worker, 'message') as Promise<[CopySpan]>);
    for (const worker of this.#workers) worker.postMessage('copy');
    const spans = (await Promise.all(replies)).map(([span]) => span);
    return Math.max(...spans.map(({ end }) => end)) - Math.min(...spans.map(({ begin }) => begin));
  }

  async dispose(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }
}
