// SPDX-License-Identifier: Apache-2.0
// `nccl-ext selftest`: runs the conformance cases here, on whatever backend is installed, in this process or as one of several.

import { runCases, selectCases } from '@nccl-ext/conformance';
import { localWorld, NcclExtError } from '@nccl-ext/core';
import { backendArguments, readBackendInput, requireGpuFor } from '../arguments/backend-arguments.js';
import { pathArgument, readPath } from '../arguments/path-argument.js';
import { type Command, defineLeaf, type Outcome, type Session } from '../command.js';
import { joinProcesses } from '../selftest/selftest-processes.js';
import { selftestJson, selftestText } from '../selftest/selftest-report.js';

export const selftestCommand: Command = defineLeaf({
  meta: { name: 'selftest', description: 'Run the conformance cases on this machine' },
  usage: ['[options]'],
  args: {
    group: {
      type: 'string',
      valueHint: 'NAME',
      description:
        'A group, several with commas, ep (all of expert parallelism) or all; default all that are quick',
    },
    filter: {
      type: 'string',
      valueHint: 'TEXT',
      description: 'Only cases whose name has this text, or one of several with | between them',
    },
    ranks: { type: 'string', valueHint: 'N', description: 'Leave out cases that need more ranks' },
    sms: {
      type: 'string',
      valueHint: 'N',
      description:
        'SMs of a GPU for each reshard; 0: copy engines alone move the bytes, what they cannot do is skipped; default the share of a rank',
    },
    backend: backendArguments.backend!,
    workers: backendArguments.workers!,
    path: pathArgument,
  },
  examples: [
    { what: 'Everything that is quick', line: 'nccl-ext selftest' },
    { what: 'Captured graphs only, at most 8 ranks', line: 'nccl-ext selftest --group graphs --ranks 8' },
    { what: 'Expert parallelism only', line: 'nccl-ext selftest --group ep' },
    {
      what: 'With a process per rank, each one rank of every world',
      line: 'nccl-ext run -n 4 nccl-ext selftest --backend cuda',
    },
    { what: 'Reshards by copy engines alone', line: 'nccl-ext selftest --backend cuda --sms 0' },
    {
      what: 'Transfers that send instead of writing',
      line: 'nccl-ext selftest --backend cuda --path sendrecv',
    },
    { what: 'For a script', line: 'nccl-ext selftest --group all --json' },
  ],
  run: runSelftest,
});

async function runSelftest({ arguments: args, env, signal, progress }: Session): Promise<Outcome> {
  const input = readBackendInput(args, env);
  const { backend, backendReason, workers } = input;
  const group = args.list('group');
  const filter = args.text('filter')?.split('|');
  const transferPath = readPath(args);
  const most = args.integer('ranks', 1, 1024);
  const sms = args.integer('sms', 0, 1024);
  requireGpuFor(args, ['sms', 'path'], backend);
  const processes = await joinProcesses({ ...input, transferPath }, env);
  try {
    const maxRanks = processes === undefined ? most : Math.min(most ?? processes.size, processes.size);
    const cases = selectCases({
      ...(group === undefined ? {} : { group }),
      ...(filter === undefined ? {} : { filter }),
      ...(maxRanks === undefined ? {} : { maxRanks }),
    });
    if (cases.length === 0) throw noCase(['group', 'filter', 'ranks'].filter((name) => args.has(name)));
    const summary = await runCases(cases, {
      signal,
      sms,
      ...(processes === undefined ? {} : { processes: processes.group }),
      world: (request) => localWorld({ ...request, backend, workers, transferPath, signal }),
      onResult: ({ name }, done, total) => progress.say(`${done} of ${total} cases  ${name}`),
    });
    signal.throwIfAborted();
    // All processes found the same. Rank 0 says it: one that failed before would have it ended.
    const where = { backend, backendReason, processes: processes?.size };
    const silent = processes !== undefined && processes.rank > 0;
    return {
      ok: summary.failed === 0 || silent,
      json: silent ? undefined : selftestJson(summary, where),
      text: (style) => (silent ? '' : selftestText(summary, where, style)),
    };
  } finally {
    await processes?.leave();
  }
}

/** The options that were given leave nothing; at least one is, because without any there are cases. */
function noCase(given: readonly string[]): NcclExtError {
  const options = given.map((name) => `--${name}`);
  const message = `No case matches ${options.join(' and ')}${options.length > 1 ? ' together' : ''}.`;
  return new NcclExtError('ERR_INVALID_ARGUMENT', message, {
    help:
      options.length > 1
        ? 'Leave one of them out.'
        : `Leave it out, or give another; \`nccl-ext selftest --json\` lists the names of cases.`,
    field: options.join(', '),
  });
}
