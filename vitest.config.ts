import { availableParallelism } from "node:os";
import { join } from "node:path";
import { cloudflareTest, readD1Migrations } from "@cloudflare/vitest-pool-workers";
import { defineConfig } from "vitest/config";

// what tests start need not compile the same files again, hundreds of times
process.env["NODE_COMPILE_CACHE"] ??= join(import.meta.dirname, "node_modules/.cache/compiled");

/** These run inside workerd; everything else runs on Node. */
const WORKERS = "test/workers/**/*.test.ts";
/** Of a machine that is slow and loaded. */
const PATIENCE = { testTimeout: 60_000, hookTimeout: 60_000, expect: { poll: { timeout: 30_000, interval: 20 } } };

export default defineConfig({
  test: {
    reporters: ["default", "./test/closing-line.ts"],
    // much of the time is spent waiting for other processes: one file more than there are processors
    maxWorkers: availableParallelism() + 1,
    onConsoleLog: (text) => !text.startsWith('{"level":'),
    projects: [
      { test: { name: "node", include: ["test/**/*.test.ts"], exclude: [WORKERS], ...PATIENCE } },
      {
        plugins: [
          cloudflareTest(async () => ({
            wrangler: { configPath: "./wrangler.toml" },
            miniflare: { bindings: { MIGRATIONS: await readD1Migrations("migrations") } },
          })),
        ],
        test: { name: "workers", include: [WORKERS], ...PATIENCE },
      },
    ],
  },
});
