// SPDX-License-Identifier: Apache-2.0
// `nccl-ext doctor`: is this machine ready, and what to do about what is not.

import { readFile } from 'node:fs/promises';
import { version } from '@nccl-ext/core';
import { backendArguments, readBackendChoice } from '../arguments/backend-arguments.js';
import { type Command, defineLeaf, type Outcome, type Session } from '../command.js';
import { backendChecks } from '../doctor/backend-checks.js';
import { doctorText } from '../doctor/doctor-text.js';
import { embeddedCheck } from '../doctor/embedded-check.js';
import { variableChecks } from '../doctor/gpu-variables.js';
import { launcherCheck } from '../doctor/launcher-check.js';
import { machineCheck, nodeCheck } from '../doctor/machine-checks.js';
import { optionChecks } from '../doctor/option-checks.js';
import { sharingChecks } from '../doctor/sharing-checks.js';
import { readSharingFacts } from '../doctor/sharing-facts.js';

export const doctorCommand: Command = defineLeaf({
  meta: { name: 'doctor', description: 'Check this machine; every line that is not right says its fix' },
  usage: ['[options]'],
  args: { backend: backendArguments.backend! },
  examples: [
    { what: 'What runs here, and what would improve it', line: 'nccl-ext doctor' },
    { what: 'Can worlds run on GPUs here', line: 'nccl-ext doctor --backend cuda' },
    { what: 'For a bug report', line: 'nccl-ext doctor --json' },
  ],
  run: runDoctor,
});

async function runDoctor({ arguments: args, env }: Session): Promise<Outcome> {
  const options = optionChecks(env, readBackendChoice(args));
  const backend = await backendChecks(options.backend);
  const onGpus = backend.probe?.driver.ok === true;
  const checks = [
    nodeCheck(await neededNode()),
    machineCheck(),
    ...backend.checks,
    ...(onGpus ? [...sharingChecks(readSharingFacts(env), env), ...variableChecks(env)] : []),
    await embeddedCheck(),
    launcherCheck(env),
    ...options.checks,
  ];
  const ok = checks.every(({ status }) => status !== 'failed');
  const findings = { version, ok, backend: backend.chosen ?? null, checks, options: options.options };
  const { probe = null, communicator = null } = backend;
  return { ok, json: { ...findings, probe, communicator }, text: (style) => doctorText(findings, style) };
}

async function neededNode(): Promise<string> {
  const manifest = await readFile(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { engines: { node: string } }).engines.node;
}
