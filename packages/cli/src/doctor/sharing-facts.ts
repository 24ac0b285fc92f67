// SPDX-License-Identifier: Apache-2.0
// What the kernel lets processes of this machine share: what `doctor` needs to know of /proc, /dev/shm and MPS.

import { existsSync, readFileSync, statfsSync } from 'node:fs';
import { join } from 'node:path';

export interface SharingFacts {
  /** Release of the kernel, as in `6.1.0-18-amd64`. */
  readonly kernel: string;
  /** Yama's ptrace_scope, 0 to 3; undefined where the kernel has no Yama, which is as 0. */
  readonly ptraceScope: number | undefined;
  /** Whether this process has CAP_SYS_PTRACE, which ptrace_scope 1 and 2 let through. */
  readonly maySysPtrace: boolean;
  /** Whether a seccomp filter stands between this process and the kernel, as in most containers. */
  readonly filtered: boolean;
  /** Size of /dev/shm; undefined when there is none. */
  readonly sharedMemoryBytes: number | undefined;
  /** Where the MPS daemon listens; undefined when it does not run. */
  readonly mpsDirectory: string | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

export function readSharingFacts(env: Environment): SharingFacts {
  const status = textOf('/proc/self/status') ?? '';
  const scope = textOf('/proc/sys/kernel/yama/ptrace_scope');
  return {
    kernel: textOf('/proc/sys/kernel/osrelease')?.trim() ?? '',
    ptraceScope: scope === undefined ? undefined : Number.parseInt(scope, 10),
    maySysPtrace: hasSysPtrace(status),
    filtered: /^Seccomp:\s*2$/m.test(status),
    sharedMemoryBytes: sizeOf('/dev/shm'),
    mpsDirectory: mpsDirectory(env),
  };
}

/** Bit 19 of the effective capabilities in the text of /proc/self/status. */
export function hasSysPtrace(status: string): boolean {
  const digits = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0';
  return (BigInt(`0x${digits}`) >> 19n) % 2n === 1n;
}

// The daemon makes `control` in its directory, and removes it when it ends.
function mpsDirectory(env: Environment): string | undefined {
  const directory = env.CUDA_MPS_PIPE_DIRECTORY || '/tmp/nvidia-mps';
  return existsSync(join(directory, 'control')) ? directory : undefined;
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

function sizeOf(path: string): number | undefined {
  try {
    const { blocks, bsize } = statfsSync(path);
    return blocks * bsize;
  } catch {
    return undefined;
  }
}
