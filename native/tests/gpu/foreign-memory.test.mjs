// SPDX-License-Identifier: Apache-2.0
// Memory of other processes and libraries on GPUs: shared both ways between two processes, wrapped, made a window, and refused.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { localWorld } from '@nccl-ext/core';

const peerProgram = fileURLToPath(new URL('foreign-peer.mjs', import.meta.url));
const pattern = (bytes, seed) => new Uint8Array(bytes).map((_, i) => Math.imul(i + seed, 2654435761) >>> 24);

/** A world of its own for `body`, with a stream per rank. */
async function withWorld(ranks, body) {
  const world = await localWorld({ ranks, backend: 'cuda', timeoutMs: 20_000 });
  try {
    await body(
      world.ranks,
      world.ranks.map((comm) => comm.createStream()),
    );
  } finally {
    await world.dispose();
  }
}

/** Another process for `body`, which asks it by message. */
async function withPeer(body) {
  const child = fork(peerProgram, { execArgv: [], serialization: 'advanced' });
  const ended = once(child, 'exit');
  const ask = async (message) => {
    const answered = once(child, 'message');
    if (message !== undefined) child.send(message);
    const early = ended.then(([code]) => assert.fail(`the other process ended with ${code}`));
    const [answer] = await Promise.race([answered, early]);
    assert.equal(answer.error, undefined);
    return answer;
  };
  try {
    await ask();
    await body(ask);
    await ask({ ask: 'end' });
    await ended;
  } finally {
    child.kill('SIGKILL');
  }
}

async function bytesOf(stream, buffer) {
  const bytes = new Uint8Array(buffer.bytes);
  stream.download(bytes, buffer);
  await stream.synchronize();
  return bytes;
}

function refused(call, code, words) {
  assert.throws(call, (error) => {
    assert.equal(error.code, code, error.message);
    assert.match(error.message, words);
    return true;
  });
}

const bytes = 3_000_001;

describe('two processes', () => {
  for (const [kind, way] of [
    ['plain', 'ipc'],
    ['symmetric', 'fd'],
  ]) {
    it(`share ${kind} memory by ${way}, both ways`, { timeout: 120_000 }, () =>
      withPeer((ask) =>
        withWorld(1, async ([comm], [stream]) => {
          // Ours, read and written by the other process.
          const ours = comm.allocate(bytes, kind);
          stream.upload(ours, pattern(bytes, 1));
          await stream.synchronize();
          const share = ours.share();
          assert.equal(share.kind, way);
          assert.deepEqual(ours.share(), share);
          const seen = await ask({ ask: 'replace', share, bytes: pattern(bytes, 2) });
          assert.equal(Buffer.compare(seen.bytes, pattern(bytes, 1)), 0);
          assert.equal(Buffer.compare(await bytesOf(stream, ours), pattern(bytes, 2)), 0);
          // A part of it.
          const part = comm.wrapMemory(ours.address + 1000n, 500);
          await ask({ ask: 'replace', share: part.share(), bytes: pattern(500, 3) });
          const changed = await bytesOf(stream, ours);
          assert.equal(Buffer.compare(changed.subarray(1000, 1500), pattern(500, 3)), 0);
          assert.equal(Buffer.compare(changed.subarray(1500), pattern(bytes, 2).subarray(1500)), 0);

          // The other process's, opened twice.
          const theirs = await ask({ ask: 'own', kind, bytes: pattern(bytes, 4) });
          const imported = [comm.importMemory(theirs.share), comm.importMemory(theirs.share)];
          for (const buffer of imported)
            assert.equal(Buffer.compare(await bytesOf(stream, buffer), pattern(bytes, 4)), 0);
          await imported[0].dispose();
          stream.upload(imported[1], pattern(bytes, 5));
          await stream.synchronize();
          const { bytes: back } = await ask({ ask: 'read', index: theirs.index });
          assert.equal(Buffer.compare(back, pattern(bytes, 5)), 0);
          refused(() => imported[1].share(), 'ERR_UNSUPPORTED', /another process/);
          await imported[1].dispose();
          await comm.importMemory(theirs.share).dispose();
        }),
      ),
    );
  }

  it('get no window of memory of the other one, on any rank, and go on', { timeout: 120_000 }, () =>
    withPeer((ask) =>
      withWorld(2, async (comms) => {
        for (const kind of ['plain', 'symmetric']) {
          const { share } = await ask({ ask: 'own', kind, bytes: pattern(8192, 1) });
          const imported = comms[1].importMemory(share);
          await noWindow(comms, [comms[0].allocate(8192), imported], 'ERR_UNSUPPORTED', /another process/);
          await imported.dispose();
        }
      }),
    ),
  );
});

/** Every rank is refused at once; afterwards windows of other memory are made. */
async function noWindow(comms, buffers, code, words) {
  const ended = await Promise.allSettled(comms.map((comm, rank) => comm.registerWindow(buffers[rank])));
  for (const { reason } of ended) {
    assert.equal(reason?.code, code, reason?.message);
    assert.match(reason.message, words);
  }
  await windowsOf(comms, (comm) => comm.allocate(4096));
}

async function windowsOf(comms, bufferOf) {
  const windows = await Promise.all(comms.map((comm) => comm.registerWindow(bufferOf(comm))));
  for (const window of windows) await window.dispose();
}

describe('wrapped memory', () => {
  it('is used in place and left alone when it is disposed', () =>
    withWorld(1, async ([comm], [stream]) => {
      for (const kind of ['plain', 'symmetric']) {
        const owner = comm.allocate(bytes, kind);
        const alias = comm.wrapMemory(owner.address + 256n, bytes - 256);
        assert.equal(alias.address, owner.address + 256n);
        stream.fill(owner, 1);
        stream.upload(alias, pattern(1000, 7));
        await stream.synchronize();
        await alias.dispose();
        const seen = await bytesOf(stream, owner);
        assert.equal(Buffer.compare(seen.subarray(256, 1256), pattern(1000, 7)), 0);
        assert.deepEqual([seen[255], seen[1256]], [1, 1]);
        await owner.dispose();
      }
    }));

  it('becomes a window when it is symmetric, and no other does', { timeout: 60_000 }, () =>
    withWorld(2, async (comms) => {
      const symmetric = comms.map((comm) => comm.allocate(1 << 20));
      const plain = comms.map((comm) => comm.allocate(1 << 20, 'plain'));
      await windowsOf(comms, (comm) => comm.wrapMemory(symmetric[comm.rank].address + 4096n, 100_000));
      const good = comms[0].wrapMemory(symmetric[0].address, 8192);
      const cases = [
        [comms[1].wrapMemory(plain[1].address, 8192), 'ERR_UNSUPPORTED', /cudaMalloc/],
        [comms[1].wrapMemory(symmetric[1].address + 256n, 8192), 'ERR_INVALID_ARGUMENT', /256 bytes into/],
      ];
      for (const [buffer, code, words] of cases) await noWindow(comms, [good, buffer], code, words);
    }),
  );

  it('is checked', () =>
    withWorld(1, async ([comm]) => {
      const owner = comm.allocate(8192, 'plain');
      refused(() => comm.wrapMemory(0x1000n, 8), 'ERR_INVALID_ARGUMENT', /no device memory/);
      refused(() => comm.wrapMemory(owner.address, 2 ** 44), 'ERR_OUT_OF_BOUNDS', /leave their allocation/);
      refused(() => comm.wrapMemory(0n, 8), 'ERR_INVALID_ARGUMENT', /address/);
    }));

  it('of another GPU is refused', async (t) => {
    await withWorld(2, async (comms) => {
      if (comms[0].device.index === comms[1].device.index) return t.skip('one GPU');
      const far = comms[1].allocate(4096, 'plain');
      refused(() => comms[0].wrapMemory(far.address, 4096), 'ERR_INVALID_ARGUMENT', /is on GPU/);
    });
  });
});

describe('shares', () => {
  it('that do not fit what is behind them are refused, and nothing breaks', () =>
    withWorld(1, async ([comm], [stream]) => {
      const ipc = comm.allocate(4096, 'plain').share();
      const symmetric = comm.allocate(4096);
      const fd = symmetric.share();
      refused(() => comm.importMemory(ipc), 'ERR_INVALID_ARGUMENT', /of this process/);
      const garbage = { ...ipc, handle: new Uint8Array(64).fill(1) };
      refused(() => comm.importMemory(garbage), 'ERR_INVALID_ARGUMENT', /handle/);
      const wrong = (fields) => () => comm.importMemory({ ...fd, ...fields });
      refused(wrong({ fd: 0, processId: undefined }), 'ERR_INVALID_ARGUMENT', /not one of device memory/);
      refused(wrong({ processId: 2 ** 22 }), 'ERR_INVALID_ARGUMENT', /there is no process/);
      refused(wrong({ allocationBytes: fd.allocationBytes + 1 }), 'ERR_INVALID_ARGUMENT', /multiples of/);
      refused(wrong({ allocationBytes: fd.allocationBytes * 2 }), 'ERR_INVALID_ARGUMENT', /has no/);
      refused(wrong({ byteOffset: fd.allocationBytes }), 'ERR_OUT_OF_BOUNDS', /lie outside/);
      // By a descriptor, a process opens its own memory again.
      const again = comm.importMemory(fd);
      assert.notEqual(again.address, symmetric.address);
      stream.fill(symmetric, 9);
      await stream.synchronize();
      assert.ok((await bytesOf(stream, again)).every((byte) => byte === 9));
    }));
});

describe('wrapped streams', () => {
  it('run the work of both holders in order', () =>
    withWorld(1, async ([comm], [stream]) => {
      const wrapped = comm.wrapStream(stream.handle);
      assert.equal(wrapped.handle, stream.handle);
      const [a, b] = [comm.allocate(64 << 20, 'plain'), comm.allocate(64 << 20, 'plain')];
      for (let round = 1; round <= 20; round++) {
        stream.fill(a, round);
        wrapped.copy({ buffer: b }, { buffer: a }, a.bytes);
      }
      stream.fill(a, 99);
      const seen = await bytesOf(wrapped, b);
      assert.ok(seen.every((byte) => byte === 20));
      await wrapped.dispose();
      stream.fill(b, 3);
      assert.equal((await bytesOf(stream, b))[0], 3);
    }));

  it('refuse work while the other holder records a graph', () =>
    withWorld(1, async ([comm], [stream]) => {
      const wrapped = comm.wrapStream(stream.handle);
      const buffer = comm.allocate(4096, 'plain');
      for (const [recorder, other] of [
        [stream, wrapped],
        [wrapped, stream],
      ]) {
        const graph = recorder.capture(() => {
          recorder.fill(buffer, 5);
          refused(() => other.fill(buffer, 6), 'ERR_INVALID_STATE', /somebody else records/);
          refused(() => comm.wrapStream(stream.handle), 'ERR_INVALID_STATE', /somebody else records/);
        });
        stream.fill(buffer, 1);
        wrapped.launch(graph);
        assert.equal((await bytesOf(stream, buffer))[0], 5);
      }
    }));

  it('are no default streams', () =>
    withWorld(1, async ([comm]) => {
      for (const address of [0n, 1n, 2n])
        refused(() => comm.wrapStream(address), 'ERR_INVALID_ARGUMENT', /default stream/);
    }));

  it('of another GPU are refused', async (t) => {
    await withWorld(2, async (comms, streams) => {
      if (comms[0].device.index === comms[1].device.index) return t.skip('one GPU');
      refused(() => comms[0].wrapStream(streams[1].handle), 'ERR_INVALID_ARGUMENT', /is on GPU/);
    });
  });
});
