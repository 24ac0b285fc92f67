import { defineConfig } from 'vitest/config';

// `npm run test:installed`: what a user gets. Apart from the other tests because it takes half a minute, and `npm run ci:native` runs it.
export default defineConfig({
  test: { include: ['scripts/installed.test.mjs'], pool: 'forks', testTimeout: 30_000 },
});
