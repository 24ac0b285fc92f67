// `npm run demo`: from a fresh clone with nothing but Node.js, moves a real checkpoint from a trainer's layout to an engine's layout.

import { existsSync, mkdirSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { install, root, run } from './lib.mjs';

const folder = join(root, 'demo');
const checkpoint = join(folder, 'qwen3-0.6b-3-layers', 'model.safetensors');
const report = join(folder, 'refit.html');

say('1/4  Installing (pnpm through npx; only caches outside this folder)');
must(install());
say('2/4  Building');
must(run('npx', ['tsc', '-b']));

if (existsSync(checkpoint)) {
  say(`3/4  Checkpoint is there already: ${shown(checkpoint)}`);
} else {
  say('3/4  Writing a safetensors checkpoint: shapes of Qwen3-0.6B, three layers, random bf16 values');
  const { writeDemoCheckpoint } = await import('./demo-checkpoint.mjs');
  mkdirSync(join(checkpoint, '..'), { recursive: true });
  await writeDemoCheckpoint(checkpoint);
}
process.stdout.write(`     ${(statSync(checkpoint).size / 1e6).toFixed(0)} MB\n`);

const refit = [
  'refit',
  '--checkpoint',
  shown(checkpoint),
  '--from',
  'tp=4',
  '--to',
  'tp=2,dp=2',
  '--verify',
  '--report',
  shown(report),
];
say(`4/4  npx nccl-ext ${refit.join(' ')}`);
must(run('npx', ['nccl-ext', ...refit]));

function say(text) {
  process.stdout.write(`\n${text}\n`);
}

function must(status) {
  if (status !== 0) process.exit(status);
}

function shown(path) {
  return relative(root, path);
}
