// SPDX-License-Identifier: Apache-2.0
// What limits a reshard between GPUs: the bytes that the busiest one sends to the others, or receives from them.

/**
 * A GPU's links lead to a switch or to the one other GPU; sending and receiving go side by side, so each direction counts by itself.
 *
 * @param matrix bytes of one execution, from rank (row) to rank (column); what stays on a GPU takes no link
 * @param gpus the GPU of each rank
 */
export function busiestLinkBytes(matrix: readonly (readonly number[])[], gpus: readonly string[]): number {
  const sent = new Map<string, number>();
  const received = new Map<string, number>();
  const add = (to: Map<string, number>, gpu: string, bytes: number): unknown =>
    to.set(gpu, (to.get(gpu) ?? 0) + bytes);
  matrix.forEach((row, from) => {
    row.forEach((bytes, to) => {
      if (gpus[from] === gpus[to]) return;
      add(sent, gpus[from]!, bytes);
      add(received, gpus[to]!, bytes);
    });
  });
  return Math.max(0, ...sent.values(), ...received.values());
}
