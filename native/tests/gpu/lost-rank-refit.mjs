// SPDX-License-Identifier: Apache-2.0
// The refit that loses a rank: rows of 128 MiB on source ranks become columns on destination ranks, and every byte is compared.
//   TEST_ROWS: of 32 KiB each, for tests without a GPU.

import { layout, mesh, shard } from '@nccl-ext/core';
import { createPlan, prepareTransfer } from '@nccl-ext/m2n';

const [rows, columns] = [Number(process.env.TEST_ROWS ?? 4096), 8192];

const sideOn = (ranks, dim) =>
  layout({
    shape: [rows, columns],
    dtype: 'i32',
    mesh: mesh({ tp: ranks.length }, { ranks }),
    placements: [shard(dim)],
  });

/** An element by its global index, other in every version. */
const elementOf = (index, version) => Math.imul(index + 1, 0x9e37_79b1) ^ Math.imul(version, 0x85eb_ca6b);

/** Local elements of part `part` of `parts`, along rows (0) or columns (1). */
function elementsOf(dim, part, parts, version) {
  const [height, width] = dim === 0 ? [rows / parts, columns] : [rows, columns / parts];
  const [top, left] = dim === 0 ? [part * height, 0] : [0, part * width];
  const elements = new Int32Array(height * width);
  for (let row = 0; row < height; row++) {
    const first = (top + row) * columns + left;
    for (let column = 0; column < width; column++)
      elements[row * width + column] = elementOf(first + column, version);
  }
  return new Uint8Array(elements.buffer);
}

/** One rank's part, prepared. */
export class Refit {
  /** Collective over `comm`; both lists divide the tensor evenly. */
  static async open(comm, sources, destinations) {
    const plan = createPlan({
      tensors: [{ name: 'w', source: sideOn(sources, 0), destination: sideOn(destinations, 1) }],
      worldSize: comm.size,
    });
    const own = { source: sources.indexOf(comm.rank), destination: destinations.indexOf(comm.rank) };
    const allocate = (part, ranks) =>
      part < 0 ? undefined : comm.allocate((rows * columns * 4) / ranks.length);
    const source = allocate(own.source, sources);
    const destination = allocate(own.destination, destinations);
    const transfer = await prepareTransfer(comm, plan, {
      sources: source ? { w: source } : {},
      destinations: destination ? { w: destination } : {},
      verify: true,
    });
    return Object.assign(new Refit(), {
      comm,
      transfer,
      source,
      destination,
      own,
      sources,
      destinations,
      stream: comm.createStream(),
    });
  }

  /** Values of a version in, or a byte of its own where they shall arrive. */
  async load(version) {
    const { stream, source, destination, own, sources } = this;
    if (source) stream.upload(source, elementsOf(0, own.source, sources.length, version));
    if (destination) stream.fill(destination, version & 0xff);
    await stream.synchronize();
  }

  /** Throws unless every byte of the destination is this version's. */
  async check(version) {
    const { stream, destination, own, destinations } = this;
    if (!destination) return;
    const seen = new Uint8Array(destination.bytes);
    stream.download(seen, destination);
    await stream.synchronize();
    const expected = elementsOf(1, own.destination, destinations.length, version);
    if (Buffer.compare(seen, expected) === 0) return;
    const at = seen.findIndex((byte, i) => byte !== expected[i]);
    throw new Error(`version ${version}: byte ${at} of ${seen.length} is ${seen[at]}, not ${expected[at]}`);
  }

  publish(publication, version) {
    return publication.publish({ transfer: this.transfer, stream: this.stream, version });
  }
}
