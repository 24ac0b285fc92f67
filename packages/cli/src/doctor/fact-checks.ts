// SPDX-License-Identifier: Apache-2.0
// What a CUDA backend tells of its communicator, in the words of the guide, with what it takes to have more.

import { type Check, ok, warning } from './check.js';

interface Line {
  readonly name: string;
  /** The value that is less than it could be, and then: what follows from it, whether it is in the way, and how to get it. */
  readonly lacking?: {
    readonly when: (value: string) => boolean;
    readonly effect: string;
    readonly status: 'absent' | 'warning';
    readonly fix: string;
  };
}

const isNo = (value: string): boolean => value === 'no';

// By the keys of Runtime::factsOf (native/runtime/ranks.cc).
const lines: Readonly<Record<string, Line>> = {
  ranks: { name: 'NCCL ranks' },
  lsaTeams: {
    name: 'LSA teams',
    lacking: {
      when: (value) => Number(value) > 1,
      effect: 'ranks of different teams do not reach each other by loads and stores',
      status: 'warning',
      fix: 'On one machine see the line GPU peers; between machines it is as it should be.',
    },
  },
  deviceApi: {
    name: 'Device API',
    lacking: {
      when: isNo,
      effect: 'kernels reach no peer: windows and barriers are refused',
      status: 'warning',
      fix: 'GPUs must reach each other (line GPU peers), or have a network with GIN; NCCL_CUMEM_ENABLE must not be 0.',
    },
  },
  windows: {
    name: 'Windows',
    lacking: {
      when: isNo,
      effect: 'windows and barriers are refused',
      status: 'warning',
      fix: 'See the line Device API.',
    },
  },
  multicast: {
    name: 'Multicast',
    lacking: {
      when: isNo,
      effect: 'nothing of nccl-ext needs it',
      status: 'absent',
      fix: 'NVLink multicast needs NVSwitch and one rank per GPU.',
    },
  },
  gin: {
    name: 'GIN',
    lacking: {
      when: (value) => value === 'none',
      effect: 'only needed between NVLink domains',
      status: 'absent',
      fix: 'It needs an RDMA network that NCCL supports on all ranks; NCCL_DEBUG=INFO says what NCCL found.',
    },
  },
  railedGin: { name: 'GIN on rails' },
  hostRma: { name: 'Host RMA' },
};

/** One line per fact; one that has no line here is shown as it is called. */
export function factChecks(facts: Readonly<Record<string, string>>): Check[] {
  return Object.entries(facts).map(([key, value]) => {
    const { name, lacking } = lines[key] ?? { name: key };
    if (lacking === undefined || !lacking.when(value)) return ok(name, value);
    const { effect, status, fix } = lacking;
    const found = `${value}: ${effect}`;
    return status === 'warning' ? warning(name, found, fix) : { name, status, found, fix };
  });
}
