import { matchesGlob } from "node:path";

/**
 * A test with a process of its own (a daemon, a server, a child that is killed), or with a cgroup or mount of the
 * machine.
 */
const PROCESS = "test/**/*.process.test.ts";
/** A test that needs its own process, because it replaces modules or checks what its process loads, opens or locks. */
const ALONE = "test/**/*.alone.test.ts";

/** A test with a simulated node in a folder whose other tests are unit tests. */
const SIM = "test/**/*.sim.test.ts";

/**
 * The vitest projects with their test files. INVARIANT: a file is in at most one of them; all remaining files are in
 * `unit`.
 */
export const PROJECTS = {
  /**
   * Tests of an interface with everything behind it (server, store, device plugins), with answers of a real kubelet, or
   * with a fuzzer's requests.
   */
  contract: [
    "test/contract/**/*.test.ts",
    "test/fuzz/**/*.test.ts",
    "test/vectors.test.ts",
    "test/api/**/!(*.process|*.alone).test.ts",
    "test/db/**/!(*.process).test.ts",
    "test/replay/**/*.test.ts",
    "test/actuator/{deviceplugin,dra}/**/!(*.process|*.alone).test.ts",
  ],
  /**
   * Tests in which the node, its clock, its disk or its name is simulated and the loop is real; and tests of rules that
   * hold for every input: seeded random inputs, or all inputs of a small domain.
   */
  sim: ["test/properties/**/*.test.ts", "test/sim/**/*.test.ts", "test/actuator/pods/node/**/*.test.ts", SIM],
  /** Tests of the command line, most of it within the tests' own process, and of the package. */
  cli: ["test/cli/**/*.test.ts"],
  /**
   * Tests of the documents' commands, containerd, cgroups, virtual machines, a kubelet, and servers that are killed.
   */
  e2e: ["test/e2e/**/*.test.ts", "test/docs/**/*.test.ts", PROCESS],
  alone: [ALONE],
  /** Tests of the pages: their text, and their behaviour in a browser. */
  ui: ["test/ui/**/*.test.ts"],
  /** Tests inside workerd; all other tests run on Node. */
  workers: ["test/workers/**/*.test.ts"],
};

/** The projects that name a test file; none: it is in `unit`. */
export const projectsOf = (file: string): readonly string[] =>
  Object.entries(PROJECTS).flatMap(([name, globs]) => globs.flatMap((glob) => (matchesGlob(file, glob) ? [name] : [])));
