// SPDX-License-Identifier: Apache-2.0
// The host side of ep_smoke.cu: what a rank allocates, uploads and launches, and the bytes that must have arrived.

import assert from 'node:assert/strict';
import { param } from '@nccl-ext/core';
import {
  blocksFor,
  firstDifference,
  layoutOf,
  randomBytes,
  randomFrom,
  tableOf,
  threads,
  untouched,
  zeros,
} from './common.mjs';

/** Shapes of a world; `capacity` holds every token of every rank unless asked otherwise. */
export function epShape(size, options = {}) {
  const {
    numTokens = 64,
    topK = 4,
    hidden = 2048,
    expertsPerRank = 4,
    capacity = size * numTokens,
  } = options;
  return { size, numTokens, topK, hidden, expertsPerRank, numExperts: size * expertsPerRank, capacity };
}

/** Tokens and routing of one rank in one epoch. In every fifth epoch all tokens go to the same experts. */
function inputOf(shape, source, epoch) {
  const next = randomFrom(epoch * 1009 + source);
  const routing = new Int32Array(shape.numTokens * shape.topK);
  for (let token = 0; token < shape.numTokens; token++) {
    const chosen = new Set();
    while (chosen.size < shape.topK) {
      const random = next();
      chosen.add(epoch % 5 === 0 ? chosen.size : random % shape.numExperts);
    }
    routing.set([...chosen], token * shape.topK);
  }
  return { routing, tokens: randomBytes(shape.numTokens * shape.hidden, epoch * 7919 + source) };
}

/** One rank's part. Collective: it registers a window. `stream` is the rank's; `plantBytes` makes the kernel write out of bounds. */
export async function makeEp(comm, module, options = {}) {
  const shape = epShape(comm.size, options);
  const blocks = blocksFor(comm);
  const slots = shape.expertsPerRank * shape.capacity;
  const { at, bytes } = layoutOf({
    counts: 2 * shape.size * shape.numExperts * 8,
    arrivals: shape.size * blocks * 8,
    origins: slots * 8,
    rows: slots * shape.hidden,
  });
  const stream = comm.createStream();
  const buffer = zeros(comm, stream, bytes, 'symmetric');
  const window = await comm.registerWindow(buffer);
  const tokens = comm.allocate(shape.numTokens * shape.hidden, 'plain');
  const routing = comm.allocate(shape.numTokens * shape.topK * 4, 'plain');
  const totals = zeros(comm, stream, shape.expertsPerRank * 8);
  const scratchBytes = 1000;
  const memory = [tokens, routing, zeros(comm, stream, 16), totals, comm.allocate(scratchBytes, 'plain')];
  const job = tableOf(comm, stream, [
    ...memory.map(({ address }) => address),
    options.plants ? scratchBytes : 0,
    ...[shape.numTokens, shape.topK, shape.numExperts, shape.capacity, shape.hidden],
    ...[at.counts, at.arrivals, at.origins, at.rows],
  ]);
  const kernel = module.kernel('ep_dispatch');
  // The host's side of the copies: graphs read and write the same arrays at every launch.
  const host = {
    tokens: new Uint8Array(tokens.bytes),
    routing: new Int32Array(shape.numTokens * shape.topK),
    received: new Uint8Array(bytes - at.origins),
    totals: new BigUint64Array(shape.expertsPerRank),
  };

  /** Sends what is on the device. */
  function launch() {
    const parameters = [window, job, param.guard];
    // More than 48 KiB of dynamic shared memory needs an opt-in, which is the backend's.
    kernel.launch(stream, { grid: blocks, block: threads, sharedBytes: 64 << 10, parameters });
  }

  function enqueue() {
    stream.upload(tokens, host.tokens);
    stream.upload(routing, host.routing);
    stream.fill(buffer, untouched, at.origins);
    launch();
    stream.download(host.received, buffer, at.origins);
    stream.download(host.totals, totals);
  }

  /** Sets what the next launch sends. */
  function prepare(epoch) {
    const input = inputOf(shape, comm.rank, epoch);
    host.tokens.set(input.tokens);
    host.routing.set(input.routing);
  }

  /** Every byte behind the flags: rows and origins in their slots, and nothing elsewhere. */
  function check(epoch) {
    const expected = new Uint8Array(host.received.length).fill(untouched);
    const origins = new DataView(expected.buffer);
    const used = new Array(shape.expertsPerRank).fill(0);
    for (let source = 0; source < shape.size; source++) {
      const input = inputOf(shape, source, epoch);
      for (const [pair, expert] of input.routing.entries()) {
        if (Math.floor(expert / shape.expertsPerRank) !== comm.rank) continue;
        const local = expert % shape.expertsPerRank;
        const slot = local * shape.capacity + used[local]++;
        origins.setBigUint64(slot * 8, (BigInt(source) << 32n) | BigInt(pair), true);
        const from = Math.floor(pair / shape.topK) * shape.hidden;
        const row = input.tokens.subarray(from, from + shape.hidden);
        expected.set(row, at.rows - at.origins + slot * shape.hidden);
      }
    }
    const difference = firstDifference(host.received, expected);
    assert.equal(difference, -1, `ep, rank ${comm.rank}, epoch ${epoch}: byte ${difference} differs`);
    assert.deepEqual([...host.totals], used.map(BigInt));
  }

  // Before anybody launches: flags are clear, and host memory is staged.
  stream.upload(tokens, host.tokens);
  stream.download(host.received, buffer, at.origins);
  await stream.synchronize();
  await comm.agree('ep ready', { bytes, blocks });
  return { comm, stream, window, kernel, launch, enqueue, prepare, check, memory: [...memory, job] };
}
