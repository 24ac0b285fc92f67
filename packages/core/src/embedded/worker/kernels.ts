// SPDX-License-Identifier: Apache-2.0
// Binds the WebAssembly kernels to a memory: what would be slow in JavaScript runs there, in place.

import { castModule, copyModule, epModule, hashModule } from '../wasm/generated/modules.js';
import { type WasmMemory, webAssembly } from '../wasm/web-assembly.js';

type Loops = [
  c1: number,
  c2: number,
  d0: number,
  d1: number,
  d2: number,
  s0: number,
  s1: number,
  s2: number,
  i0: number,
  i1: number,
  i2: number,
  count: number,
];

/** The kernels of one memory; the `.wat` files describe the parameters. Offsets are taken modulo 2^32. */
export interface Kernels {
  copyRuns(d: number, s: number, inner: number, ...loops: Loops): void;
  castRuns(
    from: number,
    to: number,
    destinationSize: number,
    sourceSize: number,
    scratch: number,
    d: number,
    s: number,
    inner: number,
    ...loops: Loops
  ): void;
  hashRuns(
    base: number,
    inner: number,
    c1: number,
    c2: number,
    s0: number,
    s1: number,
    s2: number,
    i0: number,
    i1: number,
    i2: number,
    count: number,
    index: number,
    out: number,
  ): void;
  epSum(dtype: number, d: number, bytes: number, terms: number, count: number, payload: number): void;
  epSumFp8(dtype: number, d: number, n: number, terms: number, count: number, scratch: number): void;
  epQuantise(
    dtype: number,
    s: number,
    n: number,
    d: number,
    scales: number,
    recipe: number,
    scratch: number,
  ): void;
}

let modules: object[] | undefined;

/** Instantiates the kernels over `memory`. */
export function kernelsOf(memory: WasmMemory): Kernels {
  modules ??= [copyModule, hashModule, castModule, epModule].map(
    (base64) => new webAssembly.Module(Buffer.from(base64, 'base64')),
  );
  const imports = { arena: { memory } };
  const exports = modules.map((module) => new webAssembly.Instance(module, imports).exports);
  return Object.assign({}, ...exports) as Kernels;
}
