/** The entry of the command line. It loads nothing before it knows whether the command wants another kind of process. */

/** V8 flags and environment that a command's process needs from its beginning. */
interface ProcessNeeds {
  readonly flags: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Those of Node 24 and newer: older ones may not know the flag. */
const hasFeedbackCounts = Number.parseInt(process.versions.v8, 10) >= 13;
/**
 * A daemon beside other people's pods keeps little garbage, which V8 would let grow with the machine's memory, forgets machine
 * code that has not run for a while, and does without the optimizing compilers, which take 12 MB: the sync of each second
 * takes a millisecond more without them. What runs fewer than 64 times, as most of a start does, gets neither feedback nor
 * machine code (2 MB). glibc gives back at once what is large, and has no arena a thread (5 MB).
 */
export const DAEMON_FLAGS = [
  "--max-semi-space-size=2",
  "--optimize-for-size",
  "--flush-baseline-code",
  "--no-opt",
  "--no-maglev",
];
const DAEMON: ProcessNeeds = {
  flags: [...DAEMON_FLAGS, ...(hasFeedbackCounts ? ["--invocation-count-for-feedback-allocation=64"] : [])],
  env: { MALLOC_ARENA_MAX: "1", MALLOC_MMAP_THRESHOLD_: "16384" },
};
/**
 * What a request makes is garbage at its end, which V8 would let grow; deciding threads have a young generation of their own size.
 * A thread that is idle collects by itself, for which V8 must let it. Bodies and answers go by malloc: glibc gives back at once what is
 * large, and keeps one arena for all threads in place of one for each, whose free parts no other thread can use.
 */
const API: ProcessNeeds = {
  flags: ["--max-semi-space-size=8", "--expose-gc"],
  env: { MALLOC_ARENA_MAX: "1", MALLOC_MMAP_THRESHOLD_: "65536", MALLOC_TRIM_THRESHOLD_: "65536" },
};
/** A replay keeps some 100 MB, whatever the history has, beside garbage that V8 would let grow with the machine's memory too. */
const REPLAY: ProcessNeeds = { flags: ["--max-semi-space-size=16", "--max-old-space-size=512"], env: {} };
/**
 * Objects of a whole cluster pass through a follower, which keeps little of them: V8 would let their garbage grow. That its heap
 * grows in small steps spares a third of the memory, and costs no CPU that can be measured.
 */
export const FOLLOWER_FLAGS = ["--max-semi-space-size=8", "--heap-growing-percent=40"];

/** Runs one command line, without the program's own name. Sets the exit code; never rejects because of what was typed. */
export async function start(argv: readonly string[]): Promise<void> {
  const isDaemon = startsDaemon(argv);
  if (isDaemon) restartWith(DAEMON);
  else if (argv[0] === "replay") restartWith(REPLAY);
  else if (followsCluster(argv)) restartWith({ flags: FOLLOWER_FLAGS, env: {} });
  else if (argv[0] === "api" || argv[0] === "up") restartWith(API);
  // a SIGHUP before the settings file was read for the first time asks for nothing more, and must not end the process;
  // it is caught after the restart, which would forget that it is
  if (isDaemon && readsSettingsFile(argv)) process.on("SIGHUP", () => {});
  const { main } = isDaemon
    ? await import("./daemon.ts")
    : argv[0] === "api"
      ? await import("./serving.ts")
      : await import("./main.ts");
  await main(argv);
}

/** The actuator that runs on; not its single passes, which end soon. */
const startsDaemon = (argv: readonly string[]): boolean =>
  argv[0] === "actuator" && !argv.some((arg) => ["--once", "--dry-run", "--help", "-h"].includes(arg));

const followsCluster = ([command, ...args]: readonly string[]): boolean =>
  command === "collect" ||
  (command === "up" && args.some((arg) => /^--(?:context|kubeconfig|cluster|user|as)(?:=|$)/.test(arg)));

/** Settings that are a file are read again at SIGHUP. */
const readsSettingsFile = (argv: readonly string[]): boolean =>
  argv.some((arg, i) => {
    const match = /^--settings(?:=(.*))?$/.exec(arg);
    return match !== null && (match[1] ?? argv[i + 1]) !== "-";
  });

/**
 * Replaces this process by one of the same id with the flags that are missing, and returns where none is. A flag or variable
 * that somebody gave is left as it is. The child of a launcher on an older Node stays as it is: it would lose its parent.
 */
function restartWith({ flags, env }: ProcessNeeds): void {
  const given = [...process.execArgv, ...(process.env["NODE_OPTIONS"] ?? "").split(" ")].map(nameOf);
  const missing = flags.filter((flag) => !given.includes(nameOf(flag)));
  if (missing.length === 0 || process.connected || process.execve === undefined) return;
  // Node calls this function experimental, which is nothing to the person who starts a daemon
  process.emitWarning = () => {};
  const args = [process.execPath, ...process.execArgv, ...missing, ...process.argv.slice(1)];
  process.execve(process.execPath, args, { ...env, ...process.env });
}
const nameOf = (flag: string): string | undefined => flag.split("=")[0];
