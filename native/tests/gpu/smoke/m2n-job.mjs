// SPDX-License-Identifier: Apache-2.0
// The host side of m2n_smoke.cu: a matrix of bytes goes from the first half of the ranks, which hold rows, to the second half, which
// holds columns.

import assert from 'node:assert/strict';
import { param } from '@nccl-ext/core';
import {
  blocksFor,
  firstDifference,
  layoutOf,
  randomBytes,
  tableOf,
  threads,
  untouched,
  zeros,
} from './common.mjs';

/** `rows` and `columns` are those of one shard. */
export function m2nShape(size, { rows = 96, columns = 1584 } = {}) {
  const sources = Math.max(1, Math.floor(size / 2));
  const destinations = size - sources;
  return { sources, destinations, rows, columns, width: destinations * columns, height: sources * rows };
}

const sourceBytes = (shape, source, epoch) => randomBytes(shape.rows * shape.width, epoch * 131 + source);

/** One rank's part. Collective: it registers a window. `overruns` makes the last move of rank 0 end outside its destination. */
export async function makeM2n(comm, module, options = {}) {
  const shape = m2nShape(comm.size, options);
  const blocks = blocksFor(comm);
  const isSource = comm.rank < shape.sources;
  const receivers = isSource ? Array.from({ length: shape.destinations }, (_, i) => shape.sources + i) : [];
  const senders = isSource ? [] : Array.from({ length: shape.sources }, (_, i) => i);
  const dataBytes = shape.height * shape.columns;
  const { at, bytes } = layoutOf({
    grants: comm.size * 8,
    arrivals: comm.size * blocks * 8,
    data: dataBytes,
  });
  const stream = comm.createStream();
  const buffer = zeros(comm, stream, bytes, 'symmetric');
  const window = await comm.registerWindow(buffer);
  const source = comm.allocate(shape.rows * shape.width, 'plain');
  const moves = receivers.flatMap((peer, i) => {
    const overrun = options.overruns && comm.rank === 0 && i === receivers.length - 1 ? 16 : 0;
    const to = comm.rank * shape.rows * shape.columns;
    return [
      peer,
      i * shape.columns,
      overrun === 0 ? to : dataBytes - shape.rows * shape.columns + overrun,
      ...[shape.rows, shape.columns, shape.width, shape.columns],
    ];
  });
  const scratchBytes = 1000;
  const memory = [
    source,
    tableOf(comm, stream, moves),
    tableOf(comm, stream, receivers),
    tableOf(comm, stream, senders),
    zeros(comm, stream, 16),
    comm.allocate(scratchBytes, 'plain'),
  ];
  const job = tableOf(comm, stream, [
    ...memory.map(({ address }) => address),
    options.plants ? scratchBytes : 0,
    ...[receivers.length, receivers.length, senders.length, dataBytes],
    ...[at.grants, at.arrivals, at.data],
  ]);
  const kernel = module.kernel('m2n_step');
  const host = { source: new Uint8Array(source.bytes), received: new Uint8Array(dataBytes) };

  /** Sends what is on the device. */
  function launch() {
    kernel.launch(stream, { grid: blocks, block: threads, parameters: [window, job, param.guard] });
  }

  function enqueue() {
    if (isSource) stream.upload(source, host.source);
    stream.fill(buffer, untouched, at.data);
    launch();
    stream.download(host.received, buffer, at.data);
  }

  function prepare(epoch) {
    if (isSource) host.source.set(sourceBytes(shape, comm.rank, epoch));
  }

  function check(epoch) {
    const expected = new Uint8Array(host.received.length).fill(untouched);
    const left = (comm.rank - shape.sources) * shape.columns;
    for (const rank of senders) {
      const matrix = sourceBytes(shape, rank, epoch);
      for (let row = 0; row < shape.rows; row++) {
        const from = row * shape.width + left;
        expected.set(matrix.subarray(from, from + shape.columns), (rank * shape.rows + row) * shape.columns);
      }
    }
    const difference = firstDifference(host.received, expected);
    assert.equal(difference, -1, `m2n, rank ${comm.rank}, epoch ${epoch}: byte ${difference} differs`);
  }

  stream.upload(source, host.source);
  stream.download(host.received, buffer, at.data);
  await stream.synchronize();
  await comm.agree('m2n ready', { bytes, blocks });
  return {
    comm,
    stream,
    window,
    kernel,
    launch,
    enqueue,
    prepare,
    check,
    isSource,
    memory: [...memory, job],
  };
}
