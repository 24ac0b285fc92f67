// SPDX-License-Identifier: Apache-2.0
// `nccl-ext plan ep`: who receives how much, what travels, what it takes in memory and time at least, without data and for any number of ranks.

import { dtypeArgument } from '../arguments/dtype-argument.js';
import { type Command, defineLeaf, type Outcome, type Session } from '../command.js';
import { readEpInput } from '../plan-ep/ep-input.js';
import { epPlanJson } from '../plan-ep/ep-plan-json.js';
import { epPlanText } from '../plan-ep/ep-plan-text.js';
import { planEp } from '../plan-ep/plan-ep.js';

export const planEpCommand: Command = defineLeaf({
  meta: { name: 'ep', description: 'Plan a step of expert parallelism: rows, links, memory, least time' },
  usage: ['--trace FILE [options]', '[--routing uniform|zipf] [options]'],
  args: {
    config: {
      type: 'string',
      valueHint: 'FILE.json',
      description: 'The configuration of a group, as createEpGroup takes it, placement of experts included',
    },
    ranks: { type: 'string', valueHint: 'N', description: 'Ranks; default 8, or those of the trace' },
    experts: { type: 'string', valueHint: 'N', description: 'Experts, evenly spread; default 256' },
    'top-k': {
      type: 'string',
      valueHint: 'N',
      description: 'Experts per token; default 8, or that of the trace',
    },
    hidden: { type: 'string', valueHint: 'N', description: 'Elements of a row; default 7168' },
    dtype: dtypeArgument,
    layout: {
      type: 'string',
      valueHint: 'NAME',
      description: 'expert-major, rank-major, flat (the default) or packed',
    },
    alignment: { type: 'string', valueHint: 'N', description: 'Of the zones of --layout packed; default 1' },
    quantization: {
      type: 'string',
      valueHint: 'NAME',
      description: 'What dispatch makes of rows: none (the default), fp8, fp8-pow2 or mxfp8',
    },
    budget: {
      type: 'string',
      valueHint: 'N',
      description: 'Rows that a rank receives at most; default as many as come (eager)',
    },
    trace: {
      type: 'string',
      valueHint: 'FILE',
      description:
        'Experts of each token: JSON { "topkIdx": [rank][token][k] }, or safetensors with [tokens, top-k] per rank',
    },
    routing: {
      type: 'string',
      valueHint: 'KIND',
      description: 'Made up instead: uniform (the default) or zipf',
    },
    skew: { type: 'string', valueHint: 'S', description: 'Exponent of --routing zipf; default 1' },
    seed: { type: 'string', valueHint: 'N', description: 'Of what is made up; default 1' },
    tokens: {
      type: 'string',
      valueHint: 'N',
      description: 'Tokens per rank of what is made up; default 128',
    },
    topology: {
      type: 'string',
      valueHint: 'NAME|FILE',
      description: 'Where ranks are, as in plan m2n; by default one NVLink domain',
    },
  },
  examples: [
    {
      what: 'A decode step of DeepSeek-V3 on 8 GPUs',
      line: 'nccl-ext plan ep --ranks 8 --tokens 128 --layout expert-major',
    },
    {
      what: 'Hot experts on 32 ranks of four nodes, packed for a grouped GEMM',
      line: 'nccl-ext plan ep --ranks 32 --tokens 4096 --routing zipf --layout packed --alignment 128 --topology dgx-h100',
    },
    {
      what: 'What a recorded routing would do, for a script',
      line: 'nccl-ext plan ep --trace routing.json --experts 64 --json',
    },
  ],
  run: runPlan,
});

async function runPlan(session: Session): Promise<Outcome> {
  const input = await readEpInput(session);
  session.progress.say('counting');
  const facts = planEp(input);
  return { ok: true, json: epPlanJson(facts), text: (style) => epPlanText(facts, style) };
}
