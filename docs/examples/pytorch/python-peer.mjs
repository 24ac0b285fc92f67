// SPDX-License-Identifier: Apache-2.0
// Starts peer.py and asks it: one JSON request per line, one answer per line.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const script = fileURLToPath(new URL('peer.py', import.meta.url));

export class PythonPeer {
  #child;
  #answers;

  /** `descriptor`, if there is one, is descriptor 3 of the new process: a child inherits it, which no ptrace rule forbids. */
  constructor({ env = {}, descriptor } = {}) {
    // Loading all of PyTorch's kernels at once, as ranks that share a GPU want it of theirs, takes long.
    const { PYTHON = 'python3', CUDA_MODULE_LOADING: _, ...own } = process.env;
    const extra = descriptor === undefined ? [] : [descriptor];
    this.#child = spawn(PYTHON, ['-B', script], {
      env: { ...own, ...env },
      stdio: ['pipe', 'pipe', 'inherit', ...extra],
    });
    this.#child.stdin.on('error', () => {}); // It died; the answer that does not come says so.
    this.#answers = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
    this.failed = once(this.#child, 'error').then(([error]) => {
      throw new Error(`cannot start Python (the variable PYTHON says which): ${error.message}`);
    });
    this.failed.catch(() => {});
  }

  /** The answer to a call of peer.py; throws what it says when it fails. */
  async ask(call, parameters = {}) {
    this.#child.stdin.write(`${JSON.stringify({ call, ...parameters })}\n`);
    const { value, done } = await Promise.race([this.#answers.next(), this.failed]);
    if (done) throw new Error(`Python ended before it answered ${call}`);
    const answer = JSON.parse(value);
    if (!answer.ok) throw Object.assign(new Error(`${call}: ${answer.error}`), { errno: answer.errno });
    return answer;
  }

  /** Ends Python after its last answer. */
  async close() {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const closed = once(this.#child, 'close');
    this.#child.stdin.end();
    await closed;
  }
}
