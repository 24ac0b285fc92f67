// `npm run build`: every package in dependency order, through turbo, which skips what did not change.

import { pnpm } from './lib.mjs';

process.exitCode = pnpm(['exec', 'turbo', 'run', 'build', '--output-logs=errors-only'], {
  env: { ...process.env, TURBO_TELEMETRY_DISABLED: '1' },
});
