import { availableParallelism } from "node:os";
import { join } from "node:path";
import { cloudflareTest, readD1Migrations } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";
import LongFirst from "./test/long-first.ts";
import { PROJECTS } from "./test/projects.ts";
import { BUNDLED, bundle } from "./test/workers/bundle.ts";

// otherwise the processes that tests start would compile the same files hundreds of times
process.env["NODE_COMPILE_CACHE"] ??= join(import.meta.dirname, "node_modules/.cache/compiled");

/** Timeouts for a machine that is slow and loaded. */
const PATIENCE = { testTimeout: 60_000, hookTimeout: 60_000, expect: { poll: { timeout: 30_000, interval: 20 } } };

/** Timeouts for changes that other processes make: containers, servers, browsers. */
const MORE_PATIENCE = {
  testTimeout: 180_000,
  hookTimeout: 180_000,
  expect: { poll: { timeout: 90_000, interval: 100 } },
};

const HOOKS = join(import.meta.dirname, "test/module-hooks.ts");
/** Node loads the files natively, as when the sources are started: vitest does not transform them. */
const NATIVE = {
  experimental: { viteModuleRunner: false },
  // few large garbage collections remove what a test has left: many small ones would take a sixth of the CPU time
  execArgv: ["--import", HOOKS, "--min-semi-space-size=64", "--max-semi-space-size=64"],
};
/** Test files share loaded modules: loading them again for each file would take most of the time. */
const SHARED = { isolate: false };

const projectOf = (name: keyof typeof PROJECTS, more: object) => ({
  test: { name, include: PROJECTS[name], ...NATIVE, ...more },
});

/** A project whose tests start processes, and APIs with threads, from the package, which is built before the tests. */
const packagedOf = (name: keyof typeof PROJECTS, more: object) =>
  projectOf(name, { ...more, globalSetup: "./test/cli/build-once.ts" });

export default defineConfig({
  test: {
    reporters: ["default", "./test/closing-line.ts"],
    // some tests wait for other processes: with two workers more than processors, no processor is idle
    maxWorkers: availableParallelism() + 2,
    sequence: { sequencer: LongFirst },
    onConsoleLog: (text) => !text.startsWith('{"level":'),
    projects: [
      {
        test: {
          // tests that need only the code: no processes, no container runtime, no browser
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: Object.values(PROJECTS).flat(),
          ...NATIVE,
          ...SHARED,
          ...PATIENCE,
        },
      },
      packagedOf("contract", { ...SHARED, ...PATIENCE }),
      projectOf("sim", { ...SHARED, ...PATIENCE }),
      packagedOf("cli", { ...SHARED, ...MORE_PATIENCE }),
      packagedOf("e2e", { ...SHARED, ...MORE_PATIENCE }),
      packagedOf("alone", MORE_PATIENCE),
      packagedOf("ui", { ...SHARED, ...MORE_PATIENCE }),
      {
        plugins: [
          bundle(),
          cloudflareTest(async () => ({
            wrangler: { configPath: "./wrangler.toml" },
            miniflare: {
              modulesRules: [BUNDLED],
              bindings: { MIGRATIONS: await readD1Migrations("migrations") },
              // in addition to wrangler.toml's databases: for tests that need their own empty history
              d1Databases: { MOVED: "moved", SWEPT: "swept", UNMIGRATED: "unmigrated" },
              // the Durable Objects of wrangler.toml's other environment, for tests that use them
              durableObjects: { OBJECTS: { className: "NodeObject", useSQLite: true } },
            },
          })),
        ],
        test: { name: "workers", include: PROJECTS.workers, ...PATIENCE },
      },
    ],
  },
});
