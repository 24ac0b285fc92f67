// SPDX-License-Identifier: Apache-2.0
// Who sends and who receives: half of the GPUs to the other half, so that all of it goes over links; on one GPU half of its ranks.

export interface Sides {
  readonly sources: readonly number[];
  readonly destinations: readonly number[];
}

/** `gpus[r]` names the GPU of rank r. An even number of ranks. */
export function sidesOf(gpus: readonly string[]): Sides {
  const order = [...new Set(gpus)];
  const byGpu = gpus
    .map((gpu, rank) => ({ rank, place: order.indexOf(gpu) }))
    .sort((a, b) => a.place - b.place || a.rank - b.rank)
    .map(({ rank }) => rank);
  const half = byGpu.length / 2;
  return { sources: byGpu.slice(0, half), destinations: byGpu.slice(half) };
}

/** The GPU of each rank of one process: consecutive ranks side by side, on as many of the GPUs as there are ranks, an even number of them. */
export function spreadRanks(ranks: number, gpus: number): number[] {
  const used = gpus < 2 ? 1 : Math.min(ranks, gpus - (gpus % 2));
  return Array.from({ length: ranks }, (_, rank) => Math.floor((rank * used) / ranks));
}
