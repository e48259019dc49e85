import { availableParallelism } from "node:os";
import { join } from "node:path";
import { cloudflareTest, readD1Migrations } from "@cloudflare/vitest-pool-workers";
import { defineConfig } from "vitest/config";
import LongFirst from "./test/long-first.ts";

// what tests start need not compile the same files again, hundreds of times
process.env["NODE_COMPILE_CACHE"] ??= join(import.meta.dirname, "node_modules/.cache/compiled");

/** Of a machine that is slow and loaded. */
const PATIENCE = { testTimeout: 60_000, hookTimeout: 60_000, expect: { poll: { timeout: 30_000, interval: 20 } } };

/** A test beside a process of its own (a daemon, a server, a child that is killed), or in a cgroup or mount of the machine's. */
const PROCESS = "test/**/*.process.test.ts";
/** Every test file is in one project, by its folder; `npm test -- --project unit test/decide/eviction` runs one room's. */
const PROJECTS = {
  /** One interface over all its implementations, answers of a real kubelet, requests of a fuzzer. */
  contract: ["test/contract/**/*.test.ts", "test/fuzz/**/*.test.ts", "test/vectors.test.ts"],
  /** The node and its clock are simulated; the loop is the real one. */
  sim: ["test/sim/**/*.test.ts"],
  /** The command line, the package, containerd, cgroups, virtual machines, a kubelet. */
  e2e: ["test/e2e/**/*.test.ts", "test/cli/**/*.test.ts", PROCESS],
  /** Pages: their text, and in a browser. */
  ui: ["test/ui/**/*.test.ts"],
  /** Inside workerd; everything else runs on Node. */
  workers: ["test/workers/**/*.test.ts"],
};
type Project = keyof typeof PROJECTS | "unit";

const projectOf = (name: Project, include: readonly string[], exclude: readonly string[] = []) => ({
  test: { name, include: [...include], exclude: [...exclude], ...PATIENCE },
});

export default defineConfig({
  test: {
    reporters: ["default", "./test/closing-line.ts"],
    // much of the time is spent waiting for other processes: one file more than there are processors
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: LongFirst },
    onConsoleLog: (text) => !text.startsWith('{"level":'),
    projects: [
      // what needs nothing but the code: no process, no container runtime, no browser
      projectOf("unit", ["test/**/*.test.ts"], Object.values(PROJECTS).flat()),
      projectOf("contract", PROJECTS.contract),
      projectOf("sim", PROJECTS.sim),
      projectOf("e2e", PROJECTS.e2e),
      projectOf("ui", PROJECTS.ui),
      {
        plugins: [
          cloudflareTest(async () => ({
            wrangler: { configPath: "./wrangler.toml" },
            miniflare: {
              bindings: { MIGRATIONS: await readD1Migrations("migrations") },
              // beside wrangler.toml's own: for tests that need an empty history of their own
              d1Databases: { SWEPT: "swept", UNMIGRATED: "unmigrated" },
            },
          })),
        ],
        ...projectOf("workers", PROJECTS.workers),
      },
    ],
  },
});
