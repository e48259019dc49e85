import { SMALL_STEPS } from "../server/heap.ts";

/** The entry of the command line. It loads next to nothing before it knows whether the command needs another kind of process. */

/** V8 flags and environment that a command's process needs from the start. */
interface ProcessNeeds {
  readonly flags: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** True for Node 24 and newer: older versions may not know the flag. */
const hasFeedbackCounts = Number.parseInt(process.versions.v8, 10) >= 13;
/**
 * For a daemon next to other people's pods: it keeps little garbage, which V8 would let grow with the machine's memory, discards
 * machine code that has not run for a while, and does without the optimizing compilers, which take 12 MB: each second's sync takes
 * a millisecond longer without them. Code that runs fewer than 64 times, as most of the start does, gets neither feedback nor
 * machine code (2 MB). glibc returns large blocks at once, and has no arena per thread (5 MB).
 */
export const DAEMON_FLAGS = [
  "--max-semi-space-size=2",
  "--optimize-for-size",
  "--flush-baseline-code",
  "--no-opt",
  "--no-maglev",
];
export const DAEMON: ProcessNeeds = {
  flags: [...DAEMON_FLAGS, ...(hasFeedbackCounts ? ["--invocation-count-for-feedback-allocation=64"] : [])],
  env: { MALLOC_ARENA_MAX: "1", MALLOC_MMAP_THRESHOLD_: "16384" },
};
/**
 * A request leaves only garbage, which V8 would let grow; deciding threads have their own young generation size. An idle thread
 * collects its garbage itself, which V8 must allow. The first snapshots of nodes are kept as objects: from that V8 would conclude that
 * what the same code makes for each later turn lasts too, and would put it with the old objects (50 kB a turn, which only a full
 * collection finds). Bodies and responses use malloc, and V8's compilers blocks of 32 KB (20 MB of them when the threads get busy): glibc returns such
 * blocks at once, and keeps one arena for all threads instead of one each, whose free parts no other thread can use. It asks for little more
 * than it needs, so that the end of the arena is more often free (4 MB; asking for still less makes the writing of the history twice as slow).
 */
const API: ProcessNeeds = {
  flags: ["--max-semi-space-size=8", "--no-allocation-site-pretenuring", SMALL_STEPS, "--expose-gc"],
  env: {
    MALLOC_ARENA_MAX: "1",
    MALLOC_MMAP_THRESHOLD_: "32768",
    MALLOC_TRIM_THRESHOLD_: "65536",
    MALLOC_TOP_PAD_: "65536",
  },
};
/** A replay needs some 100 MB for any history, plus garbage that V8 would let grow with the machine's memory. */
const REPLAY: ProcessNeeds = { flags: ["--max-semi-space-size=16", "--max-old-space-size=512"], env: {} };
/** Objects of a whole cluster pass through a follower, which keeps little of them: V8 would let their garbage grow. */
export const FOLLOWER_FLAGS = ["--max-semi-space-size=8", SMALL_STEPS];

/** Runs one command line, without the program's own name. Sets the exit code; never rejects because of user input. */
export async function start(argv: readonly string[]): Promise<void> {
  const isDaemon = startsDaemon(argv);
  if (isDaemon) restartWith(DAEMON);
  else if (argv[0] === "replay") restartWith(REPLAY);
  else if (followsCluster(argv)) restartWith({ flags: FOLLOWER_FLAGS, env: {} });
  else if (argv[0] === "api" || argv[0] === "up") restartWith(API);
  // a SIGHUP before the settings file is first read needs no reload, and must not end the process; it is caught after the restart,
  // which would lose the handler
  if (isDaemon && readsSettingsFile(argv)) process.on("SIGHUP", () => {});
  const { main } = isDaemon
    ? await import("./daemon.ts")
    : argv[0] === "api"
      ? await import("./serving.ts")
      : await import("./main.ts");
  await main(argv);
}

/** Whether the actuator runs permanently; single passes end soon. */
const startsDaemon = (argv: readonly string[]): boolean =>
  argv[0] === "actuator" && !argv.some((arg) => ["--once", "--dry-run", "--help", "-h"].includes(arg));

const followsCluster = ([command, ...args]: readonly string[]): boolean =>
  command === "collect" ||
  (command === "up" && args.some((arg) => /^--(?:context|kubeconfig|cluster|user|as)(?:=|$)/.test(arg)));

/** Whether the settings are a file, which is read again at SIGHUP. */
const readsSettingsFile = (argv: readonly string[]): boolean =>
  argv.some((arg, i) => {
    const match = /^--settings(?:=(.*))?$/.exec(arg);
    return match !== null && (match[1] ?? argv[i + 1]) !== "-";
  });

/**
 * Replaces this process by one with the same id and the missing flags; returns if none is missing. Flags and variables that the
 * user set stay. The child of a launcher on an older Node stays as it is: it would lose its parent.
 */
function restartWith({ flags, env }: ProcessNeeds): void {
  const given = [...process.execArgv, ...(process.env["NODE_OPTIONS"] ?? "").split(" ")].map(nameOf);
  const missing = flags.filter((flag) => !given.includes(nameOf(flag)));
  if (missing.length === 0 || process.connected || process.execve === undefined) return;
  // Node warns that this function is experimental, which does not concern the user
  process.emitWarning = () => {};
  const args = [process.execPath, ...process.execArgv, ...missing, ...process.argv.slice(1)];
  process.execve(process.execPath, args, { ...env, ...process.env });
}
const nameOf = (flag: string): string | undefined => flag.split("=")[0];
