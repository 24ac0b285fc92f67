// SPDX-License-Identifier: Apache-2.0
// A communicator whose backend takes what only a GPU backend takes, and tells what it was given. The rest is the embedded backend.

import { vi } from 'vitest';
import type { KernelLaunch, MemoryShare, Outcome, RuntimeSpi, Status } from '../contract/index.js';
import { createEmbeddedBackend } from '../embedded/index.js';
import { errorNumbers } from '../errors/codes.js';
import { singleDomain } from '../topology/presets.js';
import { Communicator } from './communicator.js';
import { unwrap } from './unwrap.js';

export interface FakeGpu {
  readonly comm: Communicator;
  /** Of the same backend. */
  readonly peer: Communicator;
  readonly runtime: RuntimeSpi;
  /** Arguments of every launch. */
  readonly launches: { stream: number; kernel: number; launch: KernelLaunch }[];
  /** The next `unloadModule` is refused with ERR_BUSY. */
  busyOnce(): void;
  close(): Promise<void>;
}

/** Address of the table of peers of every window. */
export const peerTable = 0x7000n;

export async function fakeGpu(): Promise<FakeGpu> {
  const backend = createEmbeddedBackend();
  const launches: FakeGpu['launches'] = [];
  let busy = false;
  const ok = <T>(value: T): Outcome<T> => ({ ok: true, value });
  const embedded = backend.runtime;
  // Memory and streams of others are stood in for by some of the embedded backend's own.
  const runtime: RuntimeSpi = {
    ...embedded,
    lastError: () =>
      busy
        ? { ...embedded.lastError(), code: errorNumbers.ERR_BUSY, detail: 'in use' }
        : embedded.lastError(),
    wrapMemory: vi.fn((rank: number, _address: bigint, bytes: number) =>
      embedded.allocate(rank, bytes, 'plain'),
    ),
    importMemory: vi.fn((rank: number, share: MemoryShare) => embedded.allocate(rank, share.bytes, 'plain')),
    exportMemory: () => ok({ kind: 'fd', fd: 9, allocationBytes: 64, byteOffset: 0, bytes: 64 }),
    wrapStream: vi.fn((rank: number) => embedded.createStream(rank)),
    windowPeers: vi.fn(() => ok({ table: peerTable, addresses: [1n, 2n] })),
    loadModule: vi.fn(async () => ok(71)),
    kernelOf: vi.fn((_module: number, name: string) =>
      name === 'absent' ? embedded.kernelOf(0, name) : ok(72),
    ),
    unloadModule: vi.fn((): Status => (busy ? errorNumbers.ERR_BUSY : 0)),
    launchKernel(stream, kernel, launch) {
      launches.push({ stream, kernel, launch });
      return 0;
    },
  };
  const config = { ranks: 2, timeoutMs: 1000, workers: 1, sms: 0 };
  const handles = unwrap(await runtime.createLocalRanks(config));
  const [comm, peer] = handles.map(
    (handle, rank) =>
      new Communicator(undefined, { ...backend, runtime }, handle, rank, singleDomain(2), {
        timeoutMs: 1000,
        transferPath: 'auto',
      }),
  );
  return {
    comm: comm!,
    peer: peer!,
    runtime,
    launches,
    busyOnce() {
      busy = true;
      vi.mocked(runtime.unloadModule).mockImplementationOnce(() => {
        queueMicrotask(() => {
          busy = false;
        });
        return errorNumbers.ERR_BUSY;
      });
    },
    close: () => backend.dispose(),
  };
}
