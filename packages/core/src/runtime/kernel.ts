// SPDX-License-Identifier: Apache-2.0
// A kernel of the user's on a stream: in order with everything else there, and captured into graphs like it.

import type { KernelHandle, RuntimeSpi } from '../contract/index.js';
import { requireObject } from '../errors/require-kind.js';
import { requireInteger } from '../mesh/require-integer.js';
import type { KernelModule } from './kernel-module.js';
import { type KernelParameter, packParameters } from './kernel-parameters.js';
import { blockOf, type Extent, gridOf } from './launch-shape.js';
import { requireOwn } from './require-own.js';
import { type Stream, streamKind } from './stream.js';
import { check } from './unwrap.js';

/** How a kernel is launched. */
export interface LaunchOptions {
  /** Blocks: x at most 2^31 - 1, y and z at most 65535. */
  readonly grid: Extent;
  /** Threads of a block: x and y at most 1024, z at most 64, 1024 in all. */
  readonly block: Extent;
  /** Dynamic shared memory of a block in bytes; default 0. */
  readonly sharedBytes?: number;
  /** In the order of the kernel's own; default none. */
  readonly parameters?: readonly KernelParameter[];
}

/** A kernel of a {@link KernelModule}; usable as long as its module. */
export class Kernel {
  readonly module: KernelModule;
  readonly name: string;
  readonly #runtime: RuntimeSpi;
  readonly #handle: KernelHandle;

  /** @internal Use `module.kernel`. */
  constructor(module: KernelModule, runtime: RuntimeSpi, handle: KernelHandle, name: string) {
    this.module = module;
    this.name = name;
    this.#runtime = runtime;
    this.#handle = handle;
  }

  /**
   * Puts one launch on a stream of the module's rank. Buffers and windows among the parameters are busy until it has passed.
   *
   * A kernel that waits for peers must be resident on all ranks at once: keep its blocks within `communicator.device.smBudget`, and
   * give it a guard, so that a missing peer is an error instead of a hang.
   *
   * Errors: ERR_INVALID_ARGUMENT naming the parameter, ERR_FOREIGN_OBJECT, ERR_DISPOSED, ERR_QUEUE_FULL, ERR_MODULE when the launch
   * does not fit the kernel.
   *
   * @example
   * ```ts
   * if (comm.device.multiprocessors > 0) {
   *   const module = await comm.loadModule(await readFile('scale.cubin'));
   *   const scale = module.kernel('scale');
   *   const parameters = [buffer, param.u64(buffer.bytes / 4), param.f32(0.5)];
   *   scale.launch(stream, { grid: 64, block: 256, parameters });
   *   await stream.synchronize();
   * }
   * ```
   */
  launch(stream: Stream, options: LaunchOptions): void {
    this.module.assertUsable();
    const { communicator } = this.module;
    const on = requireOwn(stream, 'stream', streamKind, communicator);
    requireObject('options', options);
    const { grid, block, sharedBytes = 0, parameters = [] } = options;
    const launch = {
      grid: gridOf(grid),
      block: blockOf(block),
      sharedBytes: requireInteger('ERR_INVALID_ARGUMENT', 'sharedBytes', sharedBytes, 0, 0x7fff_ffff),
      ...packParameters(parameters, communicator),
    };
    check(this.#runtime, this.#runtime.launchKernel(on.backendHandle, this.#handle, launch));
  }
}
