// SPDX-License-Identifier: Apache-2.0
// `nccl-ext bench m2n`: reshards against the copy ceiling that the same threads or GPUs reach in the same run.

import { benchDevice } from '../bench/bench-device.js';
import { benchHost } from '../bench/bench-host.js';
import { benchJson, benchText } from '../bench/bench-report.js';
import { type M2nInput, m2nArguments, readM2nInput } from '../bench/m2n-input.js';
import { type Command, defineLeaf, type Outcome, type Session } from '../command.js';
import { requireOutput, writeWhole } from '../output/write-file.js';

export const benchM2nCommand: Command = defineLeaf({
  meta: { name: 'm2n', description: 'Measure reshards against the copy ceiling of this machine' },
  usage: ['[options]'],
  args: m2nArguments,
  examples: [
    { what: 'On the GPUs here, or without a GPU backend by threads', line: 'nccl-ext bench m2n' },
    {
      what: 'One thread, a small tensor, for a script',
      line: 'nccl-ext bench m2n --backend embedded --workers 1 --bytes 64MiB --json',
    },
    {
      what: 'Several SM budgets and sizes on the GPUs here',
      line: 'nccl-ext bench m2n --backend cuda --sweep 8,16 --bytes 1GiB,4GiB',
    },
    {
      what: 'Ranks that send have 28 SMs, the others 4',
      line: 'nccl-ext bench m2n --backend cuda --sms 28,4',
    },
    { what: 'Kernels beside copy engines', line: 'nccl-ext bench m2n --backend cuda --sweep 64,0' },
    { what: 'A process per GPU', line: 'nccl-ext run -n 8 nccl-ext bench m2n --backend cuda' },
  ],
  run: runBench,
});

async function runBench(session: Session): Promise<Outcome> {
  const { signal, progress } = session;
  const input = await readM2nInput(session);
  const { save } = input;
  if (save !== undefined) await requireOutput({ option: 'save', path: save, extension: '.json', inputs: [] });
  const result = await measure(input, { signal, progress });
  if (!input.reports) return { ok: true, json: undefined, text: () => '' };
  const json = benchJson(result);
  if (save !== undefined) await writeWhole(save, `${JSON.stringify(json, undefined, 2)}\n`, signal);
  return { ok: true, json, text: (style) => benchText(result, input.backendReason, style) };
}

function measure(
  input: M2nInput,
  session: Pick<Session, 'signal' | 'progress'>,
): ReturnType<typeof benchHost> {
  return input.kind === 'host' ? benchHost({ ...input, ...session }) : benchDevice({ ...input, ...session });
}
