// SPDX-License-Identifier: Apache-2.0
// Kernels of the user's, loaded on one rank's GPU.

import type { ModuleHandle, RuntimeSpi } from '../contract/index.js';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { requireText } from '../errors/require-kind.js';
import type { Communicator } from './communicator.js';
import { Kernel } from './kernel.js';
import { Resource } from './resource.js';
import { check, unwrap } from './unwrap.js';

/** A loaded cubin or PTX, made by {@link Communicator.loadModule}. ERR_BUSY on dispose while a launch or a graph uses a kernel of it. */
export class KernelModule extends Resource {
  readonly communicator: Communicator;
  readonly #runtime: RuntimeSpi;
  readonly #handle: ModuleHandle;

  /** @internal Use `communicator.loadModule`. */
  constructor(communicator: Communicator, runtime: RuntimeSpi, handle: ModuleHandle) {
    super('module', communicator);
    this.communicator = communicator;
    this.#runtime = runtime;
    this.#handle = handle;
  }

  /** The kernel of this name: `extern "C"`, or as the compiler mangled it. ERR_INVALID_ARGUMENT when there is none. */
  kernel(name: string): Kernel {
    this.assertUsable();
    requireText('name', name);
    if (name === '') throw new NcclExtError('ERR_INVALID_ARGUMENT', 'name is empty.', { field: 'name' });
    return new Kernel(this, this.#runtime, unwrap(this.#runtime.kernelOf(this.#handle, name)), name);
  }

  protected override release(): void {
    check(this.#runtime, this.#runtime.unloadModule(this.#handle));
  }
}
