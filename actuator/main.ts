import { accessSync, constants, mkdirSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { err, ok, type Result } from "../api/model/result.ts";
import { type Hierarchy, openHierarchy } from "./cgroupfs/hierarchy.ts";
import { type ApiAccess, ApiClient, localClient } from "./client.ts";
import type { ActuatorConfig } from "./config.ts";
import { Journal } from "./journal.ts";
import { type Lock, takeLock } from "./lock.ts";
import { type PassReport, runPass } from "./loop.ts";
import { observeMachine } from "./machine/observe.ts";
import { readObjects } from "./manifests/read-objects.ts";
import { Outbox } from "./outbox.ts";
import { podsSource } from "./pods-source.ts";
import type { LoopPorts, Problem } from "./ports.ts";
import { type Recovery, recover } from "./recover.ts";

export interface ActuatorOptions {
  readonly config: ActuatorConfig;
  /** An API in this process: asked instead of `config.api`. */
  readonly api?: Pick<ApiAccess, "url" | "fetch" | "token">;
  readonly onPass: (report: PassReport) => void;
  readonly onProblem: (problem: Problem) => void;
  readonly onRecovery: (recovery: Recovery) => void;
}
export interface Actuator {
  /** Ends after the pass that is under way. */
  stop(): Promise<void>;
  /** Settles when it ended. */
  readonly done: Promise<void>;
}

/** Undoes a plan that was cut short, then passes again and again. Errors: this machine or its state directory cannot be used. */
export async function startActuator(options: ActuatorOptions): Promise<Result<Actuator, string>> {
  const prepared = await preparePorts(options);
  if (!prepared.ok) return prepared;
  const stopping = new AbortController();
  const done = passes(prepared.value.ports, options, stopping.signal).finally(prepared.value.release);
  return ok({
    done,
    stop: () => {
      stopping.abort();
      return done;
    },
  });
}

/** One pass and no daemon: what `--once` runs. */
export async function passOnce(options: ActuatorOptions): Promise<Result<PassReport, string>> {
  const prepared = await preparePorts(options);
  if (!prepared.ok) return prepared;
  try {
    return ok(await runPass(prepared.value.ports, options.config, 1));
  } finally {
    prepared.value.release();
  }
}

async function passes(
  ports: LoopPorts,
  { config, onPass, onProblem }: ActuatorOptions,
  stop: AbortSignal,
): Promise<void> {
  for (let sequence = 1; !stop.aborted; sequence++) {
    const report = await runPass(ports, config, sequence);
    for (const problem of report.problems) onProblem(problem);
    onPass(report);
    await sleep(config.intervalSeconds * 1000, undefined, { signal: stop }).catch(() => {});
  }
}

interface Prepared {
  readonly ports: LoopPorts;
  readonly release: () => void;
}

async function preparePorts(options: ActuatorOptions): Promise<Result<Prepared, string>> {
  const { config, onProblem } = options;
  const bootId = observeMachine().system.bootID ?? "";
  const opened = openHierarchy({ mountRoot: config.cgroupMount, root: config.cgroupRoot });
  if (!opened.ok && config.mode === "enforce") return err(`mode enforce needs cgroups: ${opened.error.message}`);
  if (!opened.ok) {
    onProblem({ from: "cgroupfs", message: `${opened.error.message}; deciding without looking at cgroups` });
  }
  const state = await openState(options, opened.ok ? opened.value : null, bootId);
  if (!state.ok) return state;
  const { journal, lock } = state.value;
  const client = clientOf(options);
  if (!client.ok) {
    lock?.release();
    return client;
  }
  const ports: LoopPorts = {
    observeMachine: () => observeMachine({ kubeletDirectory: config.kubeletDir }),
    readPods: podsSource(config),
    readConfiguration: () => readConfiguration(config.kubeletConfiguration),
    readAssignments: () => readAssignments(config.kubeletDir),
    client: client.value,
    hierarchy: opened.ok ? opened.value : null,
    journal,
  };
  return ok({ ports, release: () => lock?.release() });
}

interface State {
  readonly journal: Journal;
  /** Null in mode observe, which writes nothing. */
  readonly lock: Lock | null;
}

/** INVARIANT: who enforces holds the lock before it reads the journal. */
async function openState(
  options: ActuatorOptions,
  hierarchy: Hierarchy | null,
  bootId: string,
): Promise<Result<State, string>> {
  const { stateDir, cgroupRoot, mode } = options.config;
  try {
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  } catch (e) {
    return err(`state directory ${stateDir}: ${(e as Error).message}: name another with --state-dir`);
  }
  const file = join(stateDir, journalName(cgroupRoot));
  const lock = mode === "enforce" ? takeLock(lockFile(cgroupRoot), bootId) : ok(null);
  if (!lock.ok) return lock;
  const journal = await openJournal(file, hierarchy, bootId, options);
  if (journal.ok) return ok({ journal: journal.value, lock: lock.value });
  lock.value?.release();
  return journal;
}

async function openJournal(
  file: string,
  hierarchy: Hierarchy | null,
  bootId: string,
  options: ActuatorOptions,
): Promise<Result<Journal, string>> {
  const journal = Journal.open(file, bootId);
  if (!journal.ok) return err(journal.error.message);
  const mended = hierarchy === null ? ok(undefined) : await mend(journal.value, hierarchy, bootId, options);
  return mended.ok ? journal : mended;
}
/** Of the machine, not of a state directory: whoever writes below a root must be the only one. */
function lockFile(root: string): string {
  const name = `nodewise${root.replaceAll("/", "-")}.lock`;
  try {
    accessSync("/run", constants.W_OK);
    return join("/run", name);
  } catch {
    return join(tmpdir(), name);
  }
}
/** One journal a root, in one directory: `/nodewise/a` -> `journal-nodewise-a.jsonl`. */
const journalName = (root: string): string => `journal${root.replaceAll("/", "-")}.jsonl`;

/** An observer writes nothing, not even to mend: the plan stays open for the daemon that enforces. */
async function mend(
  journal: Journal,
  hierarchy: Hierarchy,
  bootId: string,
  options: ActuatorOptions,
): Promise<Result<undefined, string>> {
  if (options.config.mode === "observe") return ok(undefined);
  const recovery = await recover(journal, hierarchy, bootId);
  if (recovery.outcome !== "nothing") options.onRecovery(recovery);
  if (recovery.outcome === "other_root") {
    return err(
      `an unfinished plan of cgroup root ${recovery.plan?.root} must be undone first: start once with that root`,
    );
  }
  return recovery.journalError === null ? ok(undefined) : err(recovery.journalError.message);
}

function clientOf({ config, api, onProblem }: ActuatorOptions): Result<LoopPorts["client"], string> {
  const timeoutMs = config.apiTimeoutSeconds * 1000;
  if (api === undefined && config.api === undefined) return ok(localClient);
  const outbox = Outbox.open(join(config.stateDir, "outbox.jsonl"));
  if (api !== undefined) return ok(new ApiClient({ ...api, timeoutMs }, outbox, onProblem));
  try {
    const token = config.apiTokenFile === undefined ? undefined : readFileSync(config.apiTokenFile, "utf8").trim();
    const url = (config.api as string).replace(/\/+$/, "");
    return ok(new ApiClient({ url, token, timeoutMs, fetch }, outbox, onProblem));
  } catch (e) {
    return err(`apiTokenFile: ${(e as Error).message}`);
  }
}

async function readConfiguration(file: string | undefined): Promise<Result<unknown, Problem>> {
  if (file === undefined) return ok({});
  const read = await readObjects(file);
  if (!read.ok) return err({ from: "configuration", message: `${read.error.file}: ${read.error.message}` });
  const first = read.value[0];
  return first === undefined ? err({ from: "configuration", message: `${file} holds no document` }) : ok(first.value);
}

const STATE_FILES = ["cpu_manager_state", "memory_manager_state", "allocated_pods_state"];
/** A kubelet's own state files, where there is a kubelet. */
async function readAssignments(dir: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  const found = await Promise.all(
    STATE_FILES.map(async (name) => [name, await readFile(join(dir, name), "utf8").catch(() => undefined)] as const),
  );
  const present = found.filter(([, text]) => text !== undefined);
  return present.length === 0 ? undefined : Object.fromEntries(present);
}
