// SPDX-License-Identifier: Apache-2.0
// `nccl-ext refit`: moves the parameters of a model from one layout to another, all ranks in this process.

import { NcclExtError } from '@nccl-ext/core';
import { type RefitRequest, refit, refitReport } from '@nccl-ext/m2n';
import type { Arguments } from '../arguments/arguments.js';
import { backendArguments, readBackendInput, requireGpuFor } from '../arguments/backend-arguments.js';
import { requireNoLauncher } from '../arguments/launched.js';
import { modelArguments, modelFiles, modelUsage, readModelInput } from '../arguments/model-arguments.js';
import { pathArgument, readPath } from '../arguments/path-argument.js';
import { byCopyEngines, smsArgument, smsOf } from '../arguments/sms-argument.js';
import { type Command, defineLeaf, type Outcome, type Session } from '../command.js';
import { requireOutput, writeWhole } from '../output/write-file.js';
import { refitJson } from '../refit/refit-json.js';
import { refitText } from '../refit/refit-text.js';

export const refitCommand: Command = defineLeaf({
  meta: { name: 'refit', description: 'Move the parameters of a model from one layout to another' },
  usage: modelUsage,
  args: {
    ...modelArguments,
    ...backendArguments,
    verify: {
      type: 'boolean',
      description:
        'Hash what is sent and what arrives, and compare every destination byte with the source read again',
    },
    check: {
      type: 'boolean',
      description: 'Compare every destination byte, but hash nothing: the move takes no longer for it',
    },
    repeat: {
      type: 'string',
      valueHint: 'N',
      description:
        'Publish the weights N times, as a trainer does at every step; times are medians, and the first; default 1',
    },
    sms: smsArgument,
    path: pathArgument,
    'from-gpus': {
      type: 'string',
      valueHint: 'LIST',
      description:
        'GPUs of the source ranks in turn, as in 0-3 or 0,2; by default rank modulo number of GPUs',
    },
    'to-gpus': {
      type: 'string',
      valueHint: 'LIST',
      description: 'GPUs of the destination ranks in turn; with --from-gpus',
    },
    report: { type: 'string', valueHint: 'FILE.html', description: 'Write a report: one file, no network' },
  },
  examples: [
    {
      what: 'A checkpoint from a trainer with TP 4 to two replicas with TP 2, checked, with a report',
      line: 'nccl-ext refit --checkpoint model.safetensors --from tp=4 --to tp=2,dp=2 --verify --report refit.html',
    },
    {
      what: 'Three layers of a named model with generated values, on the same ranks before and after',
      line: 'nccl-ext refit --model Qwen3-0.6B --layers 3 --from tp=4,pp=2 --to tp=8 --colocated',
    },
    {
      what: 'From half of the GPUs to the other half, three times, values made and compared on the GPUs',
      line: 'nccl-ext refit --backend cuda --model Qwen3-32B --from tp=4 --to tp=4 --from-gpus 0-3 --to-gpus 4-7 --check --repeat 3',
    },
    {
      what: 'For a script: one JSON object',
      line: 'nccl-ext refit --checkpoint ckpt/ --from pp=2,ep=4,dp=4 --to tp=4 --cast bf16 --json',
    },
    {
      what: 'What a Python process says that its ranks hold',
      line: 'nccl-ext refit --checkpoint ckpt/ --from-manifest trainer.json --to tp=4',
    },
  ],
  run: runRefit,
});

async function runRefit(session: Session): Promise<Outcome> {
  const { arguments: args, commandLine, env, signal, progress } = session;
  requireNoLauncher('refit', env);
  const report = args.text('report');
  if (report !== undefined)
    await requireOutput({ option: 'report', path: report, extension: '.html', inputs: modelFiles(args) });
  const { backendReason, ...backend } = readBackendInput(args, env);
  const run = {
    repeat: args.integer('repeat', 1, 1000),
    sourceDevices: args.indices('from-gpus'),
    destinationDevices: args.indices('to-gpus'),
    transferPath: readPath(args),
    ...readSms(args),
  };
  args.bothOrNone(['from-gpus', 'to-gpus']);
  requireGpuFor(args, ['sms', 'path', 'from-gpus', 'to-gpus'], backend.backend);
  const input = await readModelInput(args);
  try {
    const result = await refit({
      ...input.request,
      ...backend,
      ...run,
      verify: args.flag('verify'),
      check: args.flag('check') || args.flag('verify'),
      signal,
      onProgress: (state) => progress.update(state),
    });
    if (report !== undefined) {
      const { name, from, to } = input;
      const context = { model: name, from, to, command: commandLine };
      await writeWhole(report, refitReport(result, context), signal);
    }
    const facts = { result, input, report, backendReason };
    return { ok: true, json: refitJson(facts), text: (style) => refitText(facts, style) };
  } catch (error) {
    throw inOptions(error);
  } finally {
    await input.dispose();
  }
}

/** Copy engines are chosen when a transfer is prepared; SMs are a rank's. */
function readSms(args: Arguments): Pick<RefitRequest, 'sourceSms' | 'destinationSms' | 'transferSms'> {
  const asked = args.text('sms');
  if (asked === undefined) return {};
  const shares = smsOf('sms', asked, ',');
  if (byCopyEngines(shares)) return { transferSms: 0 };
  return { sourceSms: shares.senders, destinationSms: shares.receivers };
}

/** The library speaks of its devices by side; here they are options. */
function inOptions(error: unknown): unknown {
  if (!NcclExtError.is(error, 'ERR_INVALID_ARGUMENT') || error.field !== 'destinationDevices') return error;
  const { code, rank = -1 } = error;
  return new NcclExtError(
    code,
    `Rank ${rank} is a source and a destination; it cannot be on GPUs of --from-gpus and of --to-gpus.`,
    {
      rank,
      field: '--to-gpus',
      help: 'Leave both out, or have each side on ranks of its own: leave out --colocated, or give other ranks in the manifests.',
      cause: error,
    },
  );
}
