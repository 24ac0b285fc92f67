// SPDX-License-Identifier: Apache-2.0
// `nccl-ext plan m2n`: who would send what to whom, without data and for any number of ranks.

import { NcclExtError } from '@nccl-ext/core';
import { planRefit, type TransferPlan } from '@nccl-ext/m2n';
import { modelArguments, modelFiles, modelUsage, readModelInput } from '../arguments/model-arguments.js';
import { type Command, defineLeaf, type Outcome, type Session } from '../command.js';
import { requireOutput, writeWhole } from '../output/write-file.js';
import { planJson } from '../plan/plan-json.js';
import { planText } from '../plan/plan-text.js';

export const planM2nCommand: Command = defineLeaf({
  meta: {
    name: 'm2n',
    description: 'Plan the move of a model between two layouts: bytes, links, one rank’s program',
  },
  usage: modelUsage,
  args: {
    ...modelArguments,
    rank: { type: 'string', valueHint: 'R', description: 'Whose program to make; default 0' },
    output: {
      type: 'string',
      valueHint: 'FILE.json',
      description: 'Write the plan with the program of that rank',
    },
    svg: { type: 'string', valueHint: 'FILE.svg', description: 'Draw who sends what to whom' },
    tensor: {
      type: 'string',
      valueHint: 'NAME',
      description: 'With --svg: draw the tiles of this tensor before and after instead',
    },
  },
  examples: [
    {
      what: 'Kimi-K2 from 2048 training ranks to 2048 serving ranks on NVL72 racks',
      line: 'nccl-ext plan m2n --model Kimi-K2-Instruct --from ranks=2048,pp=16,ep=128 --to ranks=2048,tp=16 --topology gb200-nvl72',
    },
    {
      what: 'A picture of one tensor before and after',
      line: 'nccl-ext plan m2n --model Qwen3-0.6B --from tp=4 --to tp=2,dp=2 --svg q.svg --tensor model.layers.0.self_attn.q_proj.weight',
    },
  ],
  run: runPlan,
});

async function runPlan({ arguments: args, signal, progress }: Session): Promise<Outcome> {
  const files = { output: args.text('output'), svg: args.text('svg') };
  const inputs = modelFiles(args);
  if (files.output !== undefined)
    await requireOutput({ option: 'output', path: files.output, extension: '.json', inputs });
  if (files.svg !== undefined)
    await requireOutput({ option: 'svg', path: files.svg, extension: '.svg', inputs });
  const rank = args.integer('rank', 0, 2 ** 24) ?? 0;
  const tensor = args.text('tensor');
  if (tensor !== undefined && files.svg === undefined) {
    throw new NcclExtError('ERR_INVALID_ARGUMENT', '--tensor is for --svg, which is missing.', {
      help: 'Add --svg FILE.svg.',
      field: '--tensor',
    });
  }
  const input = await readModelInput(args);
  try {
    progress.say('planning');
    const { plan, layoutMs, planMs: withoutProgram } = await planRefit(input.request);
    requireRank(plan, rank);
    const began = performance.now();
    const program = plan.program(rank);
    const planMs = withoutProgram + performance.now() - began;
    // Drawn before anything is written: there may be no such tensor.
    const picture = files.svg === undefined ? '' : plan.toSVG(tensor === undefined ? {} : { tensor });
    if (files.output !== undefined) {
      await writeWhole(
        files.output,
        `${JSON.stringify(plan.toJSON({ ranks: [rank] }), undefined, 1)}\n`,
        signal,
      );
    }
    if (files.svg !== undefined) await writeWhole(files.svg, picture, signal);
    const facts = { input, plan, layoutMs, planMs, rank, moves: program.sends.length, files };
    return { ok: true, json: planJson(facts), text: (style) => planText(facts, style) };
  } finally {
    await input.dispose();
  }
}

function requireRank(plan: TransferPlan, rank: number): void {
  if (rank < plan.worldSize) return;
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `--rank is ${rank}, but the plan has the ranks 0 to ${plan.worldSize - 1}.`,
    { field: '--rank', expected: `0..${plan.worldSize - 1}`, seen: rank },
  );
}
