// SPDX-License-Identifier: Apache-2.0
// The bound on one GPU: how fast it copies within its own memory when nothing else runs.

import type { Communicator, DeviceBuffer, Stream, StreamEvent } from '@nccl-ext/core';
import type { Ceiling } from './ceiling.js';
import { uploadRandom } from './upload-random.js';

/**
 * Copies between two buffers of a rank's GPU, as many between two events as a sample of a reshard has executions. 1 GiB on an H200 took
 * 0.527 ms alone and 0.507 ms in a row of five: the bound of reshards back to back is that of copies back to back.
 */
export class DeviceCopies implements Ceiling {
  readonly bytes: number;
  readonly how: string;
  readonly #executions: number;
  readonly #source: DeviceBuffer;
  readonly #destination: DeviceBuffer;
  readonly #stream: Stream;
  readonly #start: StreamEvent;
  readonly #end: StreamEvent;

  static async open(communicator: Communicator, bytes: number, executions: number): Promise<DeviceCopies> {
    const copies = new DeviceCopies(communicator, bytes, executions);
    await uploadRandom(copies.#stream, copies.#source);
    return copies;
  }

  private constructor(communicator: Communicator, bytes: number, executions: number) {
    this.bytes = bytes;
    this.how = `device-to-device copies on GPU ${communicator.device.index}`;
    this.#executions = executions;
    this.#source = communicator.allocate(bytes, 'plain');
    this.#destination = communicator.allocate(bytes, 'plain');
    this.#stream = communicator.createStream();
    this.#start = communicator.createEvent();
    this.#end = communicator.createEvent();
  }

  async copy(): Promise<number> {
    this.#stream.record(this.#start);
    for (let i = 0; i < this.#executions; i++)
      this.#stream.copy({ buffer: this.#destination }, { buffer: this.#source }, this.bytes);
    this.#stream.record(this.#end);
    await this.#stream.synchronize();
    return this.#end.elapsedMs(this.#start) / this.#executions;
  }

  async dispose(): Promise<void> {
    for (const resource of [this.#stream, this.#start, this.#end, this.#source, this.#destination])
      await resource.dispose();
  }
}
