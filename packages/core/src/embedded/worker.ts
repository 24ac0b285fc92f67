// SPDX-License-Identifier: Apache-2.0
// Entry of a worker thread: serves one world after the other, and rests in its event loop between them.

import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { BlockMessage } from './memory/space.js';
import { serveWorld } from './worker/serve-world.js';
import { Spaces } from './worker/spaces.js';
import type { WorkerMessage } from './worker/task.js';

/** What the pool gives a new worker. */
export interface WorkerStart {
  readonly slot: number;
  readonly blocks: readonly BlockMessage[];
  readonly port: MessagePort;
}

/** Tells a worker to serve the world whose region starts at `address`. */
export interface AttachMessage {
  readonly address: number;
  readonly worker: number;
}

const start: WorkerStart = workerData;
const spaces = new Spaces(start.blocks, start.slot, start.port);
const post = (message: WorkerMessage): void => parentPort?.postMessage(message);

parentPort?.on('message', ({ address, worker }: AttachMessage) => {
  serveWorld(spaces, address, worker, post);
  post({ kind: 'detached' });
});
post({ kind: 'ready' });
