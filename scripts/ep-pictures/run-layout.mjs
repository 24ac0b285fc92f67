// Routes a few tokens over three ranks on the embedded backend and reads back what every row of a layout holds: what the pictures show.

import { localWorld } from '../../packages/core/dist/index.js';
import { allocateTensor, createEpGroup, viewTensor } from '../../packages/ep/dist/index.js';
import { alignment, experts, hidden, most, ranks, routing, tokenValue, topK } from './routing.mjs';

/**
 * Per rank: `{ rows, localExperts, expertCounts, expertOffsets, sourceCounts, total }`; those that the layout does not have are absent. A row
 * is { kind: 'token', source, token, experts }, { kind: 'padding' } or { kind: 'unwritten' }.
 */
export async function runLayout(layout) {
  const world = await localWorld({ ranks, backend: 'embedded' });
  try {
    return await world.run((comm) => runRank(comm, layout));
  } finally {
    await world.dispose();
  }
}

async function runRank(comm, layout) {
  const group = await createEpGroup(comm, {
    ...{ experts, topK, hidden, dtype: 'f32', maxTokensPerRank: most },
    debugFill: 0xff, // NaN where nothing is written
  });
  const handle = group.createHandle(layout === 'packed' ? { layout, alignment } : { layout });
  const stream = comm.createStream();
  const batch = routing[comm.rank];
  const put = (dtype, width, values) => {
    const made = allocateTensor(comm, dtype, [batch.length, width]);
    viewTensor(made).set(values.flat());
    return made;
  };
  const make = ({ dtype, shape }) => allocateTensor(comm, dtype, shape);
  const entries = (count) => allocateTensor(comm, 'i32', [count]);
  const highThroughput = layout === 'flat' || layout === 'packed';
  const counts = {
    sourceCounts: entries(ranks),
    ...(layout === 'rank-major' ? {} : { expertCounts: entries(handle.localExperts.length) }),
    ...(layout === 'packed' ? { expertOffsets: entries(handle.localExperts.length) } : {}),
    ...(highThroughput ? { total: entries(1) } : {}),
  };
  handle.route(
    put(
      'i32',
      topK,
      batch.map(({ ids }) => ids),
    ),
    highThroughput ? { stream, counts } : { stream },
  );
  const exact = highThroughput ? { rows: (await handle.counts()).rows } : {};
  const shapes = Object.entries(handle.outputShapes('dispatch', exact));
  const out = Object.fromEntries(shapes.map(([name, shape]) => [name, counts[name] ?? make(shape)]));
  handle.dispatch(
    put(
      'f32',
      hidden,
      batch.map((_, token) => Array(hidden).fill(tokenValue(comm.rank, token))),
    ),
    {
      stream,
      weights: put(
        'f32',
        topK,
        batch.map(({ weights }) => weights),
      ),
      ...(out.topkIdx === undefined ? {} : { ids: 'global' }),
      out: highThroughput ? out : { ...out, sourceCounts: counts.sourceCounts },
    },
  );
  await stream.synchronize();
  return {
    rows: readRows(out),
    localExperts: handle.localExperts,
    ...Object.fromEntries(Object.entries(counts).map(([name, tensor]) => [name, [...viewTensor(tensor)]])),
  };
}

function readRows({ tokens, topkIdx }) {
  const values = viewTensor(tokens);
  const ids = topkIdx === undefined ? undefined : viewTensor(topkIdx);
  return Array.from({ length: values.length / hidden }, (_, row) => {
    const value = values[row * hidden];
    if (Number.isNaN(value)) return { kind: 'unwritten' };
    if (value === 0) return { kind: 'padding' };
    const own = ids === undefined ? [] : [...ids.subarray(row * topK, (row + 1) * topK)];
    const [source, token] = [Math.floor((value - 1) / 8), (value - 1) % 8];
    return { kind: 'token', source, token, experts: own.filter((id) => id >= 0) };
  });
}
