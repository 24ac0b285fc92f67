// SPDX-License-Identifier: Apache-2.0
// The process behind `nccl-ext`: its arguments, its streams, its signals and its exit code.

import { watchInterruption } from './interruption.js';

// Before anything that takes time to load: a signal that comes early must find its handler.
const interruption = watchInterruption(process);

// A reader that has seen enough (`nccl-ext ... | head`) is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  process.stderr.write(`error ${error.code ?? 'ERR_INTERNAL'} cannot write to stdout: ${error.message}\n`);
  process.exit(1);
});

/** Milliseconds that the process gets to end by itself. */
const graceMs = 2000;

try {
  const { runCli } = await import('./run-cli.js');
  process.exitCode = await runCli(process.argv.slice(2), {
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    signal: interruption.signal,
  });
} finally {
  interruption.stop();
}
// A rank that hangs, which `selftest` may find, must not keep the command from ending.
setTimeout(() => process.exit(), graceMs).unref();
