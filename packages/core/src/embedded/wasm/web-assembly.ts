// SPDX-License-Identifier: Apache-2.0
// The part of the WebAssembly interface that we use, which TypeScript types only together with the DOM.

/** A memory that several threads share. */
export interface WasmMemory {
  readonly buffer: SharedArrayBuffer;
}

interface WebAssemblyInterface {
  readonly Memory: new (limits: { initial: number; maximum: number; shared: true }) => WasmMemory;
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (
    module: object,
    imports: Record<string, Record<string, unknown>>,
  ) => { readonly exports: Record<string, unknown> };
}

export const webAssembly: WebAssemblyInterface = (
  globalThis as unknown as { readonly WebAssembly: WebAssemblyInterface }
).WebAssembly;

/** Bytes of one page of a WebAssembly memory. */
export const wasmPage = 65_536;
