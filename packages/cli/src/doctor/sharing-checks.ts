// SPDX-License-Identifier: Apache-2.0
// How processes of this machine can share GPU memory and GPUs: CUDA IPC, file descriptors, /dev/shm, MPS.

import { bytesText } from '../output/units.js';
import { type Check, ok, warning } from './check.js';
import type { SharingFacts } from './sharing-facts.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** Of a machine whose GPUs are usable. */
export function sharingChecks(facts: SharingFacts, env: Environment): Check[] {
  return [ipcCheck(), descriptorCheck(facts), ...sharedMemoryCheck(facts), mpsCheck(facts, env)];
}

function ipcCheck(): Check {
  return ok('Sharing by IPC', 'memory of cudaMalloc, between processes that see the same GPU and /dev');
}

/** pidfd_getfd takes a descriptor of another process; the kernel asks whether ptrace would be allowed. */
function descriptorCheck({ kernel, ptraceScope = 0, maySysPtrace, filtered }: SharingFacts): Check {
  const name = 'Sharing by fd';
  const send = 'or send the descriptor over a Unix socket (SCM_RIGHTS)';
  const capability = 'give this process CAP_SYS_PTRACE (docker run --cap-add SYS_PTRACE)';
  if (olderThan(kernel, 5, 6))
    return warning(name, `kernel ${kernel} has no pidfd_getfd`, `Use kernel 5.6 or newer, ${send}.`);
  if (maySysPtrace) return ok(name, 'VMM memory of any process (this one has CAP_SYS_PTRACE)');
  if (ptraceScope >= 3)
    return warning(
      name,
      'kernel.yama.ptrace_scope 3 forbids pidfd_getfd',
      `Restart with a lower one, ${send}.`,
    );
  if (ptraceScope === 2)
    return warning(
      name,
      'kernel.yama.ptrace_scope 2 forbids pidfd_getfd without CAP_SYS_PTRACE',
      `Set kernel.yama.ptrace_scope to 0 or 1, ${capability}, ${send}.`,
    );
  if (ptraceScope === 1)
    return warning(
      name,
      'VMM memory of processes that this one started (kernel.yama.ptrace_scope 1)',
      `For others set kernel.yama.ptrace_scope to 0, ${capability}, let the exporter call prctl(PR_SET_PTRACER), ${send}.`,
    );
  if (filtered)
    return warning(
      name,
      'VMM memory of processes of the same user, unless the seccomp filter of this container forbids pidfd_getfd',
      `Where it fails with EPERM, ${capability}, ${send}.`,
    );
  return ok(name, 'VMM memory of processes of the same user');
}

/** NCCL keeps its proxies' buffers there; Docker gives 64 MiB. */
const leastSharedMemory = 256e6;

function sharedMemoryCheck({ sharedMemoryBytes: bytes }: SharingFacts): Check[] {
  const name = '/dev/shm';
  const fix = 'Give the container more: docker run --shm-size=1g --ulimit memlock=-1.';
  if (bytes === undefined) return [warning(name, 'is not there; NCCL needs it between processes', fix)];
  if (bytes >= leastSharedMemory) return [ok(name, bytesText(bytes))];
  return [warning(name, `${bytesText(bytes)}; NCCL may need more between processes`, fix)];
}

function mpsCheck({ mpsDirectory }: SharingFacts, env: Environment): Check {
  const name = 'MPS';
  const limit = env.CUDA_MPS_ACTIVE_THREAD_PERCENTAGE;
  if (mpsDirectory === undefined)
    return {
      name,
      status: 'absent',
      found:
        'not running; processes on one GPU take turns of milliseconds, ranks of one process run side by side',
      fix: 'Only for several processes on one GPU: nvidia-cuda-mps-control -d.',
    };
  if (limit !== undefined && limit !== '' && limit !== '100')
    return warning(
      name,
      `runs in ${mpsDirectory}; CUDA_MPS_ACTIVE_THREAD_PERCENTAGE is ${limit}, which can keep kernels that wait for each other from running together`,
      'Unset it and limit SMs with NCCL_EXT_SMS instead.',
    );
  return ok(name, `runs in ${mpsDirectory}: processes on one GPU run side by side`);
}

function olderThan(release: string, major: number, minor: number): boolean {
  const match = /^(\d+)\.(\d+)/.exec(release);
  if (match === null) return false;
  const [have, part] = [Number(match[1]), Number(match[2])];
  return have < major || (have === major && part < minor);
}
