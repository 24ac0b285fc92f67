#!/usr/bin/env node
// Committed shim, so that package managers can link the command before the first build.
import { existsSync } from 'node:fs';

const entry = new URL('../dist/main.js', import.meta.url);
if (existsSync(entry)) {
  await import(entry.href);
} else {
  process.stderr.write('nccl-ext is not built. In a clone of the repository run: npm run build\n');
  process.exitCode = 2;
}
