// SPDX-License-Identifier: Apache-2.0
// Transfers by copy engines on GPUs: contiguous, pitched, forwarded and captured ones, every byte compared; that a receiver that never comes
// keeps every byte of its destination; and which transfers they do unasked.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { layout, localWorld, mesh, shard } from '@nccl-ext/core';
import { createPlan, prepareTransfer } from '@nccl-ext/m2n';

const half = Number(process.env.TEST_RANKS ?? 4) / 2;
const ranks = 2 * half;
const shape = [64 * half, 8192 * half];

const rows = (startRank) => bytesOf(0, startRank);
const columns = (startRank) => bytesOf(1, startRank);
const bytesOf = (dim, startRank, options = {}) =>
  layout({
    shape,
    dtype: 'u8',
    mesh: mesh({ x: half }, { startRank }),
    placements: { x: shard(dim) },
    ...options,
  });

async function withWorld(body, options = {}) {
  const world = await localWorld({ ranks, backend: 'cuda', timeoutMs: 20_000, ...options });
  try {
    await body(world);
  } finally {
    await world.dispose();
  }
}

const plainPlan = (source, destination) =>
  createPlan({ worldSize: ranks, tensors: [{ name: 'w', source, destination }] });

/** A byte for every element: neighbours, rows and rounds differ. */
const valueAt = (row, column, round) => (row * 31 + column * 7 + (column >> 8) + round * 101) & 0xff;

/** What a rank of `of` holds, filled with `round`'s values; undefined where it holds nothing. */
function contentOf(of, rank, dim, round) {
  if (!of.mesh.ranks.includes(rank)) return undefined;
  const part = rank - of.mesh.ranks[0];
  const height = dim === 0 ? shape[0] / half : shape[0];
  const width = dim === 1 ? shape[1] / half : shape[1];
  const bytes = new Uint8Array(height * width);
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++)
      bytes[row * width + column] = valueAt(
        row + (dim === 0 ? part * height : 0),
        column + (dim === 1 ? part * width : 0),
        round,
      );
  }
  return bytes;
}

/** Buffers and a transfer on every rank; `sms` by rank. */
async function prepareAll(world, plan, source, destination, sms) {
  const allocate = (comm, of) =>
    of.mesh.ranks.includes(comm.rank) ? comm.allocate(of.localBytes(comm.rank)) : undefined;
  return world.run(async (comm) => {
    const state = {
      from: allocate(comm, source),
      to: allocate(comm, destination),
      stream: comm.createStream(),
    };
    const transfer = await prepareTransfer(comm, plan, {
      sources: state.from ? { w: state.from } : {},
      destinations: state.to ? { w: state.to } : {},
      sms: sms(comm.rank),
    });
    return { ...state, transfer };
  });
}

async function checkRounds(states, source, destination, dims, enqueue) {
  for (let round = 1; round <= 3; round++) {
    for (const [rank, { from, to, stream }] of states.entries()) {
      if (from) stream.upload(from, contentOf(source, rank, dims[0], round));
      if (to) stream.fill(to, 0xee);
    }
    await Promise.all(states.map(({ stream }) => stream.synchronize()));
    states.forEach(enqueue);
    await Promise.all(states.map(({ stream }) => stream.synchronize()));
    for (const [rank, { to, stream }] of states.entries()) {
      if (!to) continue;
      const seen = new Uint8Array(to.bytes);
      stream.download(seen, to);
      await stream.synchronize();
      const wanted = contentOf(destination, rank, dims[1], round);
      const at = wanted.findIndex((byte, i) => byte !== seen[i]);
      assert.equal(at, -1, `round ${round}, rank ${rank}: byte ${at} is ${seen[at]}, not ${wanted[at]}`);
    }
  }
}

const shapes = [
  ['rows to rows, one run each', rows, 0],
  ['rows to columns, pitched', columns, 1],
];
const senders = [
  ['on every rank', () => 0],
  ['beside kernels of other ranks', (rank) => (rank % 2 === 0 ? 0 : undefined)],
];

describe('copy engines alone', () => {
  for (const [what, destinationOf, dim] of shapes) {
    for (const [where, sms] of senders) {
      it(`move ${what}, ${where}`, { timeout: 60_000 }, () =>
        withWorld(async (world) => {
          const source = rows(0);
          const destination = destinationOf(half);
          const states = await prepareAll(world, plainPlan(source, destination), source, destination, sms);
          const enqueue = ({ transfer, stream }) => transfer.enqueue(stream);
          await checkRounds(states, source, destination, [0, dim], enqueue);
          const graphs = states.map((state) => state.stream.capture(() => enqueue(state)));
          await checkRounds(states, source, destination, [0, dim], ({ stream }, rank) =>
            stream.launch(graphs[rank]),
          );
          for (const graph of graphs) await graph.dispose();
          for (const { transfer } of states) {
            assert.equal(transfer.progress.completed, 6);
            assert.equal(transfer.progress.writtenBytes, 6 * transfer.progress.bytesPerExecution);
          }
        }),
      );
    }
  }

  for (const captured of [false, true]) {
    const how = captured ? ', from a graph' : '';
    it(`write not one byte to a rank that never comes${how}`, { timeout: 60_000 }, () =>
      withWorld(
        async (world) => {
          const source = rows(0);
          const destination = rows(half);
          const states = await prepareAll(
            world,
            plainPlan(source, destination),
            source,
            destination,
            () => 0,
          );
          const { to, stream } = states[half];
          const { from, transfer, stream: sending } = states[0];
          stream.fill(to, 0xee);
          sending.fill(from, 0x11);
          await Promise.all([stream.synchronize(), sending.synchronize()]);
          // Nothing happens to this world: it reads what the other one left.
          const devices = [world.ranks[half].device.index];
          await withWorld(
            async ({ ranks: [witness] }) => {
              if (captured) sending.launch(sending.capture(() => transfer.enqueue(sending)));
              else transfer.enqueue(sending);
              await assert.rejects(sending.synchronize(), { code: 'ERR_TIMEOUT', peer: half });
              assert.equal(transfer.progress.writtenBytes, 0);
              const reading = witness.createStream();
              const seen = new Uint8Array(to.bytes);
              reading.download(seen, witness.wrapMemory(to.address, to.bytes));
              await reading.synchronize();
              assert.equal(
                seen.findIndex((byte) => byte !== 0xee),
                -1,
              );
            },
            { ranks: 1, devices },
          );
        },
        { timeoutMs: 300 },
      ),
    );
  }

  const skip = half === 1 && 'between two ranks every reshard is one run';
  it('are refused for short runs, on every rank', { timeout: 60_000, skip }, () =>
    withWorld(async (world) => {
      const narrow = { shape: [256, 64 * half], dtype: 'u8' };
      const source = bytesOf(0, 0, narrow);
      const destination = bytesOf(1, half, narrow);
      const attempts = world.ranks.map(async (comm) => {
        const held = (of) =>
          of.mesh.ranks.includes(comm.rank) ? { w: comm.allocate(of.localBytes(comm.rank)) } : {};
        return prepareTransfer(comm, plainPlan(source, destination), {
          sources: held(source),
          destinations: held(destination),
          sms: 0,
        });
      });
      for (const { reason } of await Promise.allSettled(attempts)) {
        assert.equal(reason?.code, 'ERR_UNSUPPORTED');
        assert.match(reason.message, /runs of 64 bytes/);
      }
    }),
  );
});

describe('copy engines unasked', () => {
  const bytes = 2 ** 30;
  const side = (startRank) =>
    layout({ shape: [bytes], dtype: 'u8', mesh: mesh({ x: 1 }, { startRank }), placements: { x: shard(0) } });

  it('move a large run to another GPU, and none within one', { timeout: 60_000 }, () =>
    withWorld(
      async (world) => {
        const [source, destination] = [side(0), side(1)];
        const plan = createPlan({ worldSize: 2, tensors: [{ name: 'w', source, destination }] });
        const [sending, receiving] = await prepareAll(world, plan, source, destination, () => undefined);
        const [sender, receiver] = world.ranks.map(({ device }) => device.index);
        const expected = sender === receiver ? 'mapped' : 'copy-engine';
        assert.deepEqual(
          sending.transfer.paths().map(({ peer, path }) => [peer, path]),
          [[1, expected]],
        );
        const part = Uint8Array.from({ length: 2 ** 24 }, (_, i) => valueAt(i >> 13, i & 8191, 1));
        for (let at = 0; at < bytes; at += part.length) {
          part[0] = at / part.length;
          sending.stream.upload(sending.from, part, at);
          await sending.stream.synchronize();
        }
        for (const { transfer, stream } of [sending, receiving]) transfer.enqueue(stream);
        const seen = new Uint8Array(bytes);
        receiving.stream.download(seen, receiving.to);
        await Promise.all([sending.stream.synchronize(), receiving.stream.synchronize()]);
        for (let at = 0; at < bytes; at += part.length) {
          part[0] = at / part.length;
          assert.ok(
            Buffer.from(part.buffer).equals(Buffer.from(seen.buffer, at, part.length)),
            `from ${at} on`,
          );
        }
      },
      { ranks: 2 },
    ),
  );
});
