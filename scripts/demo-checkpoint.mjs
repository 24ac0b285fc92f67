// A checkpoint as a trainer would leave it: real names, shapes and dtype, values that look like weights and differ everywhere.

import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describeModel, namedConfigs, writeCheckpoint } from '@nccl-ext/m2n';

const layers = 3;
/** Values per chunk: the writer streams, so memory stays small. */
const chunkValues = 4 * 1024 * 1024;

/** Writes Qwen3-0.6B, cut to three layers, to `path`, and its config.json beside it. */
export async function writeDemoCheckpoint(path) {
  const model = await describeModel('Qwen3-0.6B', { layers });
  const random = bf16Weights(20261130);
  const entries = model.parameters.map(({ name, shape, dtype }) => ({
    name,
    shape,
    dtype,
    data: random(shape.reduce((product, extent) => product * extent, 1)),
  }));
  await writeCheckpoint(path, entries, { metadata: { format: 'pt' } });
  const config = { ...namedConfigs['Qwen/Qwen3-0.6B'], num_hidden_layers: layers };
  writeFileSync(join(dirname(path), 'config.json'), `${JSON.stringify(config, null, 2)}\n`);
}

/** Pseudo-random bf16 values of both signs with magnitudes from 0.008 to 0.06 (xorshift32). */
function bf16Weights(seed) {
  let state = seed;
  return function* chunks(count) {
    for (let left = count; left > 0; left -= chunkValues) {
      const values = new Uint16Array(Math.min(left, chunkValues));
      for (let i = 0; i < values.length; i++) {
        state ^= state << 13;
        state ^= state >>> 17;
        state ^= state << 5;
        values[i] = (state & 0x817f) | 0x3c00;
      }
      yield new Uint8Array(values.buffer);
    }
  };
}
