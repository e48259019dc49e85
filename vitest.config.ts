import { availableParallelism } from "node:os";
import { join } from "node:path";
import { cloudflareTest, readD1Migrations } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";
import LongFirst from "./test/long-first.ts";
import { PROJECTS } from "./test/projects.ts";
import { BUNDLED, bundle } from "./test/workers/bundle.ts";

// what tests start need not compile the same files again, hundreds of times
process.env["NODE_COMPILE_CACHE"] ??= join(import.meta.dirname, "node_modules/.cache/compiled");

/** Timeouts for a machine that is slow and loaded. */
const PATIENCE = { testTimeout: 60_000, hookTimeout: 60_000, expect: { poll: { timeout: 30_000, interval: 20 } } };

/** Timeouts for what other processes bring about: containers, servers, browsers. */
const MORE_PATIENCE = {
  testTimeout: 180_000,
  hookTimeout: 180_000,
  expect: { poll: { timeout: 90_000, interval: 100 } },
};

const HOOKS = join(import.meta.dirname, "test/module-hooks.ts");
/** Node itself loads the files, as it does when the sources are started: nothing is transformed for the tests. */
const NATIVE = {
  experimental: { viteModuleRunner: false },
  // what one test leaves is gone in few large collections: many small ones take a sixth of the processor time
  execArgv: ["--import", HOOKS, "--min-semi-space-size=64", "--max-semi-space-size=64"],
};
/** Files share the modules that one of them has loaded: most of the time would go into loading them for each anew. */
const SHARED = { isolate: false };

const projectOf = (name: keyof typeof PROJECTS, more: object) => ({
  test: { name, include: PROJECTS[name], ...NATIVE, ...more },
});

/** The processes that its tests start, and the threads of their APIs, are those of the package, which is built before. */
const packagedOf = (name: keyof typeof PROJECTS, more: object) =>
  projectOf(name, { ...more, globalSetup: "./test/cli/build-once.ts" });

export default defineConfig({
  test: {
    reporters: ["default", "./test/closing-line.ts"],
    // some wait for other processes: with two files more than there are processors none of these is idle
    maxWorkers: availableParallelism() + 2,
    sequence: { sequencer: LongFirst },
    onConsoleLog: (text) => !text.startsWith('{"level":'),
    projects: [
      {
        test: {
          // what needs nothing but the code: no process, no container runtime, no browser
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
              // beside wrangler.toml's own: for tests that need an empty history of their own
              d1Databases: { MOVED: "moved", SWEPT: "swept", UNMIGRATED: "unmigrated" },
              // the objects of wrangler.toml's other way, for tests that ask for it
              durableObjects: { OBJECTS: { className: "NodeObject", useSQLite: true } },
            },
          })),
        ],
        test: { name: "workers", include: PROJECTS.workers, ...PATIENCE },
      },
    ],
  },
});
