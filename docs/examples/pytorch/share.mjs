// SPDX-License-Identifier: Apache-2.0
// Tensors shared both ways between PyTorch and this process on one GPU, without a copy: node docs/examples/pytorch/share.mjs
// Needs a GPU, @nccl-ext/cuda12 or cuda13, and a Python with PyTorch (the variable PYTHON says which; default python3).
//
// Who keeps what alive: the exporter. Its memory must stay until the importer has closed it: PyTorch keeps the tensor, this process
// its buffer. The order is always: the importer waits for its work, the importer closes, the exporter frees.
// Who orders what: the two processes. Streams of two processes know nothing of each other, so each side synchronizes before it tells
// the other. The importer may read and write, but imported memory never becomes a window (docs/gpu.md).

import { localWorld } from '@nccl-ext/core';
import { PythonPeer } from './python-peer.mjs';

const elements = 8 << 20; // int32: 32 MiB, more than one allocation of PyTorch's expandable segments
const bytes = elements * 4;
const EPERM = 1;

const world = await localWorld({ ranks: 1, backend: 'cuda' });
try {
  const [comm] = world.ranks;
  const stream = comm.createStream();
  await fromPyTorch(comm, stream, 'default allocator', {});
  await fromPyTorch(comm, stream, 'expandable segments', {
    PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True',
  });
  await toPyTorch(comm, stream);
} finally {
  await world.dispose();
}

/** A tensor of PyTorch, read and written here. */
async function fromPyTorch(comm, stream, allocator, env) {
  const python = new PythonPeer({ env });
  try {
    const { torch, gpu } = await python.ask('hello');
    const { shares } = await python.ask('share', { elements, seed: 11 });
    const seen = new Int32Array(elements);
    let first = 0;
    for (const share of shares) {
      const buffer = comm.importMemory(fromJson(share));
      const part = seen.subarray(first, first + share.bytes / 4);
      stream.download(bytesOf(part), buffer);
      stream.upload(buffer, bytesOf(pattern(part.length, 22, first)));
      await stream.synchronize();
      await buffer.dispose(); // closes; the tensor is PyTorch's
      first += part.length;
    }
    requireSame(seen, pattern(elements, 11), `what PyTorch wrote (${allocator})`);
    const { wrong } = await python.ask('check', { seed: 22 });
    if (wrong > 0) throw new Error(`PyTorch sees ${wrong} wrong elements (${allocator})`);
    await python.ask('drop'); // only now may PyTorch use the memory for something else
    const count = shares.length === 1 ? 'one allocation' : `${shares.length} allocations`;
    console.log(`PyTorch ${torch}, ${gpu}, ${allocator}: ${shares[0].kind}, ${count}, both ways ok`);
  } finally {
    await python.close();
  }
}

/** Memory of ours, read and written by PyTorch. */
async function toPyTorch(comm, stream) {
  const [plain, symmetric] = ['plain', 'symmetric'].map((kind) => comm.allocate(bytes, kind));
  const shared = symmetric.share();
  const python = new PythonPeer({ descriptor: shared.fd });
  try {
    await change('plain memory, IPC handle', plain, plain.share());
    const { processId, ...inherited } = { ...shared, fd: 3 };
    await change('symmetric memory, inherited descriptor', symmetric, inherited);
    await change('symmetric memory, pidfd_getfd', symmetric, { ...shared, processId: process.pid });
  } finally {
    await python.close();
  }
  for (const buffer of [plain, symmetric]) await buffer.dispose();

  async function change(name, buffer, share) {
    stream.upload(buffer, bytesOf(pattern(elements, 33)));
    await stream.synchronize();
    const request = { share: toJson(share), seed: 33, next_seed: 44 };
    const answer = await python.ask('open_and_change', request).catch((error) => {
      if (error.errno !== EPERM) throw error;
      console.log(
        `${name}: not allowed here (kernel.yama.ptrace_scope or seccomp; nccl-ext doctor says more)`,
      );
    });
    if (answer === undefined) return;
    if (answer.wrong > 0) throw new Error(`PyTorch sees ${answer.wrong} wrong elements (${name})`);
    const back = new Int32Array(elements);
    stream.download(bytesOf(back), buffer);
    await stream.synchronize();
    requireSame(back, pattern(elements, 44), `what PyTorch wrote (${name})`);
    console.log(`${name}: both ways ok`);
  }
}

/** The numbers that peer.py makes for a seed, from element `first` on. */
function pattern(length, seed, first = 0) {
  return Int32Array.from({ length }, (_, index) => (first + index) * 3 + seed);
}

function bytesOf(array) {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

function requireSame(seen, expected, what) {
  const at = seen.findIndex((value, index) => value !== expected[index]);
  if (at >= 0) throw new Error(`${what}: element ${at} is ${seen[at]}, not ${expected[at]}`);
}

// JSON has no bytes: an IPC handle travels as base64.
function toJson(share) {
  return share.kind === 'ipc' ? { ...share, handle: Buffer.from(share.handle).toString('base64') } : share;
}

function fromJson(share) {
  return share.kind === 'ipc' ? { ...share, handle: Buffer.from(share.handle, 'base64') } : share;
}
