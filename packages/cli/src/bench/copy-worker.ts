// SPDX-License-Identifier: Apache-2.0
// A thread of the copy ceiling: copies its share between shared memories whenever it is told to, and notes when.

import { parentPort, workerData } from 'node:worker_threads';

/** What the thread is made with. */
export interface CopyShare {
  readonly source: SharedArrayBuffer;
  readonly destination: SharedArrayBuffer;
}

/** Begin and end of one copy, in milliseconds of the clock that all threads of a process share. */
export interface CopySpan {
  readonly begin: number;
  readonly end: number;
}

/** A typed array of this length exists on every supported Node. */
const maxViewBytes = 2 ** 31;

const { source, destination } = workerData as CopyShare;
const views: [Uint8Array, Uint8Array][] = [];
for (let at = 0; at < source.byteLength; at += maxViewBytes) {
  const bytes = Math.min(maxViewBytes, source.byteLength - at);
  views.push([new Uint8Array(source, at, bytes), new Uint8Array(destination, at, bytes)]);
}

parentPort!.on('message', () => {
  const begin = performance.timeOrigin + performance.now();
  for (const [from, to] of views) to.set(from);
  const end = performance.timeOrigin + performance.now();
  parentPort!.postMessage({ begin, end } satisfies CopySpan);
});
