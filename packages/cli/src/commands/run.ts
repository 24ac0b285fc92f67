// SPDX-License-Identifier: Apache-2.0
// `nccl-ext run`: starts a script once per rank on this machine, where neither torchrun nor mpirun need be installed.

import { NcclExtError } from '@nccl-ext/core';
import { defineLeaf, type Outcome, type Session } from '../command.js';
import { styleFor } from '../output/style.js';
import { findScript } from '../run/find-script.js';
import { PrefixedLines } from '../run/prefixed-lines.js';
import { rankEnvironments, refuseLauncher } from '../run/rank-environment.js';
import { rankPrefix } from '../run/rank-prefix.js';
import { runRanks } from '../run/run-ranks.js';
import { failureText, runJson } from '../run/run-report.js';
import type { RunSession, ScriptCommand, TextOutput } from '../run/run-session.js';

export const runCommand: ScriptCommand = {
  ...defineLeaf({
    meta: { name: 'run', description: 'Run a script as several ranks, one process each, on this machine' },
    usage: ['-n N [options] [--] SCRIPT [ARGUMENT...]'],
    args: {
      ranks: {
        type: 'string',
        alias: 'n',
        valueHint: 'N',
        description: 'Processes to start, 1 to 1024; each gets RANK, WORLD_SIZE and where to meet',
      },
    },
    examples: [
      { what: 'Four ranks of a script', line: 'nccl-ext run -n 4 train.mjs' },
      {
        what: 'All that follows the script is for the script',
        line: 'nccl-ext run -n 2 train.mjs --steps 100 --json',
      },
      {
        what: 'A command of nccl-ext that joins its ranks, where no file has the name',
        line: 'nccl-ext run -n 2 nccl-ext bench m2n --backend cuda',
      },
      {
        what: 'How each rank ended, for a script; output of the ranks goes to stderr',
        line: 'nccl-ext run --json -n 8 train.mjs',
      },
    ],
    run: (session: Session) => runScript(session as RunSession),
  }),
  takesScript: true,
};

async function runScript(session: RunSession): Promise<Outcome> {
  const { arguments: args, env, signal, stderr } = session;
  refuseLauncher(env);
  const ranks = args.integer('ranks', 1, 1024);
  if (ranks === undefined) throw noRanks();
  const [name, ...rest] = session.words;
  const script = await findScript(name);
  const environments = await rankEnvironments(env, ranks);
  signal.throwIfAborted();
  // With --json, stdout is for the object alone.
  const stdout = args.flag('json') ? stderr : session.stdout;
  const linesOf = (rank: number, output: TextOutput): PrefixedLines =>
    new PrefixedLines(rankPrefix(rank, styleFor(output, env)), (text) => output.write(text));
  const starts = environments.map((own, rank) => ({
    rank,
    args: [...process.execArgv, script, ...rest],
    env: own,
    stdout: linesOf(rank, stdout),
    stderr: linesOf(rank, stderr),
  }));
  const result = await runRanks(starts, signal);
  signal.throwIfAborted();
  const { failure } = result;
  if (failure !== undefined) stderr.write(failureText(result, failure, styleFor(stderr, env)));
  return { ok: failure === undefined, json: runJson(result), text: () => '' };
}

function noRanks(): NcclExtError {
  return new NcclExtError('ERR_INVALID_ARGUMENT', '--ranks is missing.', {
    help: 'Write -n N before the script, as in nccl-ext run -n 4 script.mjs.',
    field: '--ranks',
  });
}
