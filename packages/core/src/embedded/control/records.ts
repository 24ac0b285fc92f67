// SPDX-License-Identifier: Apache-2.0
// The records of operations, which wait in rings and make up graphs: what each number of a record means.

/** 64-bit floats per record. */
const recordWords = 8;
export const recordBytes: number = recordWords * 8;

/**
 * Operations and their arguments, which follow the number in the record:
 * copy(destination, source, bytes), fill(destination, bytes, value), host(call), record(cell, generation, slot),
 * wait(cell, generation, slot, owner), barrier(), graph(region, length, parameters), transfer(region),
 * ep(call, slot of the epoch, 1 when it completes a send).
 *
 * `slot` is -1 in a stream. In a graph it says which parameter of the launch is added to `generation`: a graph holds
 * no absolute generation. `owner` is the address of the words of the event's rank.
 */
export const operations = {
  copy: 1,
  fill: 2,
  host: 3,
  record: 4,
  wait: 5,
  barrier: 6,
  graph: 7,
  transfer: 8,
  ep: 9,
} as const;

/** One operation before it is written: its number and up to four arguments. */
export type OperationRecord = readonly [number, number, number, number, number];

const names = new Map<number, string>(Object.entries(operations).map(([name, value]) => [value, name]));

/** The name that error records carry. */
export function operationName(operation: number): string {
  return names.get(operation) ?? `operation ${operation}`;
}

/** Writes a record at element `index` of a view. */
export function writeRecord(view: Float64Array, index: number, record: OperationRecord): void {
  view[index] = record[0];
  view[index + 1] = record[1];
  view[index + 2] = record[2];
  view[index + 3] = record[3];
  view[index + 4] = record[4];
}
