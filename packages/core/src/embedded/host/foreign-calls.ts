// SPDX-License-Identifier: Apache-2.0
// Calls about memory, streams and kernels of a GPU, which this backend has none of: each is refused with the way around it.

import type { ErrorRecord, RuntimeSpi } from '../../contract/index.js';
import { errorRecord, failed, isError } from './errors.js';
import type { BackendState } from './state.js';

type ForeignCalls = Pick<
  RuntimeSpi,
  | 'wrapMemory'
  | 'exportMemory'
  | 'importMemory'
  | 'wrapStream'
  | 'loadModule'
  | 'unloadModule'
  | 'kernelOf'
  | 'launchKernel'
>;

const ownMemory = 'Allocate a buffer and upload into it, or install a GPU backend.';
const ownStream = 'Create a stream, or install a GPU backend.';
const noKernels =
  'Compute on the host through buffer.view() between two synchronizes, or install a GPU backend.';

export function foreignCalls(state: BackendState): ForeignCalls {
  const ofRank = (handle: number, op: string, detail: string, help: string): ErrorRecord => {
    const rank = state.rank(handle, op);
    return isError(rank) ? rank : unsupported(op, detail, help, rank.rank);
  };
  const noModule = (op: string): ErrorRecord =>
    unsupported(op, 'the embedded backend runs no GPU kernels, so it has no modules of them', noKernels);
  return {
    wrapMemory: (rank) =>
      failed(ofRank(rank, 'wrapMemory', 'the embedded backend has no memory but its own', ownMemory)),
    exportMemory(handle) {
      const buffer = state.owned('buffer', handle, 'exportMemory');
      if (isError(buffer)) return failed(buffer);
      return failed(
        unsupported(
          'exportMemory',
          'all ranks of the embedded backend live in one process, no other one can open its memory',
          'Register a window to reach it from other ranks, or install a GPU backend.',
          buffer.owner.rank,
        ),
      );
    },
    importMemory: (rank) =>
      failed(ofRank(rank, 'importMemory', 'the embedded backend cannot open memory of a process', ownMemory)),
    wrapStream: (rank) =>
      failed(ofRank(rank, 'wrapStream', 'the embedded backend has no streams but its own', ownStream)),
    async loadModule(rank) {
      return failed(ofRank(rank, 'loadModule', 'the embedded backend runs no GPU kernels', noKernels));
    },
    unloadModule: () => state.refuse(noModule('unloadModule')),
    kernelOf: () => failed(noModule('kernelOf')),
    launchKernel(handle) {
      const stream = state.stream(handle, 'launchKernel');
      return state.refuse(isError(stream) ? stream : noModule('launchKernel'));
    },
  };
}

function unsupported(op: string, detail: string, help: string, rank = -1): ErrorRecord {
  return errorRecord('ERR_UNSUPPORTED', op, detail, { rank, help });
}
