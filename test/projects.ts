/** A test beside a process of its own (a daemon, a server, a child that is killed), or in a cgroup or mount of the machine's. */
const PROCESS = "test/**/*.process.test.ts";
/** A test that wants its process for itself, because it replaces modules, or looks at what its process loads, opens or locks. */
const ALONE = "test/**/*.alone.test.ts";

/** A test of a simulated node in a room whose other tests are units. */
const SIM = "test/**/*.sim.test.ts";

/** The projects of vitest, each with its test files by their folder. INVARIANT: a file is in one of them, or else in `unit`. */
export const PROJECTS = {
  /** An interface with all that stands behind it (server, store, device plugins), answers of a real kubelet, requests of a fuzzer. */
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
   * The node, its clock, its disk or its name is simulated; the loop is the real one. And rules that hold for every input: seeded
   * random ones, or all of a small domain.
   */
  sim: ["test/properties/**/*.test.ts", "test/sim/**/*.test.ts", "test/actuator/pods/node/**/*.test.ts", SIM],
  /** The command line, most of it within the tests' own process, and the package. */
  cli: ["test/cli/**/*.test.ts"],
  /** Commands of the documents, containerd, cgroups, virtual machines, a kubelet, servers that are killed. */
  e2e: ["test/e2e/**/*.test.ts", "test/docs/**/*.test.ts", PROCESS],
  alone: [ALONE],
  /** Pages: their text, and in a browser. */
  ui: ["test/ui/**/*.test.ts"],
  /** Inside workerd; everything else runs on Node. */
  workers: ["test/workers/**/*.test.ts"],
};
