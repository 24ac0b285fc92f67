// SPDX-License-Identifier: Apache-2.0
// What kernels and the host share in pinned memory: the record of an error, the words by which the host stops a rank, and the numbers of
// the operations that records name. Native code has its structs from here (native/generated/records.hpp).

/** A struct field: its C type, what it holds before anybody wrote it, and what it means. */
export interface RecordField {
  readonly name: string;
  readonly type: 'i32' | 'u64';
  readonly initial: number;
  readonly doc: string;
}

/** Both structs fill a cache line of their own. */
export const deviceRecordBytes = 64;

/** Operations that records name, by number. New ones are appended: both sides of a running world hold these numbers. */
export const deviceOps = [
  'none',
  'barrier',
  'kernel',
  'copy',
  'fill',
  'upload',
  'download',
  'transfer',
] as const;

/** The error record of a stream or graph. */
export const deviceStatusFields: readonly RecordField[] = [
  { name: 'code', type: 'i32', initial: 0, doc: 'ErrorCode; 0: no record. Written last' },
  { name: 'op', type: 'i32', initial: 0, doc: 'DeviceOp' },
  { name: 'peer', type: 'i32', initial: -1, doc: 'the rank that is missing or at fault, -1 none' },
  { name: 'missing', type: 'i32', initial: 0, doc: 'ranks that did not come' },
  { name: 'expected', type: 'u64', initial: 0, doc: 'what was waited for or allowed' },
  { name: 'seen', type: 'u64', initial: 0, doc: 'what was there instead' },
  {
    name: 'claim',
    type: 'i32',
    initial: 0,
    doc: '1 from the first writer on, until the host took the record',
  },
];

/** What the host tells the running kernels of one rank. */
export const rankWordsFields: readonly RecordField[] = [
  { name: 'stop', type: 'i32', initial: 0, doc: 'ErrorCode with which every wait ends; 0: go on' },
  { name: 'peer', type: 'i32', initial: -1, doc: 'the lost peer' },
  {
    name: 'drained',
    type: 'i32',
    initial: 0,
    doc: '1 once a kernel of this rank failed: later ones do not wait',
  },
];
