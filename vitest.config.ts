import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig } from 'vitest/config';

// Tests run on sources through the export condition; only worker threads need the build.
export default defineConfig({
  resolve: { conditions: ['@nccl-ext/source'] },
  ssr: { resolve: { conditions: ['@nccl-ext/source'], externalConditions: ['@nccl-ext/source'] } },
  test: {
    include: ['packages/*/src/**/*.test.ts', '{scripts,third_party}/**/*.test.{ts,mjs}'],
    // Packs and installs every package: `npm run test:installed` (vitest.installed.config.ts).
    exclude: [...configDefaults.exclude, 'scripts/installed.test.mjs'],
    pool: 'forks',
    // Vitest leaves one core to itself; of two, that is half.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    testTimeout: 30_000,
    typecheck: {
      include: ['packages/*/src/**/*.test-d.ts'],
      tsconfig: 'tsconfig.test.json',
    },
  },
});
