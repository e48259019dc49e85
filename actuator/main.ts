import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { err, ok, type Result } from "../api/model/result.ts";
import type { ApiAccess } from "./api-access.ts";
import { openHierarchy } from "./cgroupfs/hierarchy.ts";
import { ApiClient, localClient } from "./client.ts";
import type { ActuatorConfig } from "./config.ts";
import type { Collector } from "./gc/collector.ts";
import { type CollectionEvents, type OpenCollector, openCollector, podsOrNone, type Shared } from "./gc/open.ts";
import { collectUntil } from "./gc/timers.ts";
import { type PassReport, runPass } from "./loop.ts";
import { observeMachine } from "./machine/observe.ts";
import { readStateFiles } from "./machine/state-files.ts";
import { formText, isConfiguration } from "./manifests/document-form.ts";
import { readObjects } from "./manifests/read-objects.ts";
import { Memory } from "./memory.ts";
import { Outbox } from "./outbox.ts";
import { openState } from "./own-state.ts";
import { podsSource } from "./pods-source.ts";
import type { LoopPorts, Problem } from "./ports.ts";
import type { Recovery } from "./recover.ts";

export interface ActuatorOptions extends CollectionEvents {
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
  const stopping = new AbortController();
  const prepared = await preparePorts(options, stopping.signal);
  if (!prepared.ok) return prepared;
  const { ports, collector, release } = prepared.value;
  const collections =
    collector === null
      ? []
      : [collectUntil(stopping.signal, collector, options.config, (turn) => options.onTurn?.(turn))];
  const done = Promise.all([passes(ports, options, stopping.signal), ...collections])
    .then(() => {})
    .finally(release);
  return ok({
    done,
    stop: () => {
      stopping.abort();
      return done;
    },
  });
}

/** One pass, with one of every collection where that is on, and no daemon: what `--once` runs. */
export async function passOnce(options: ActuatorOptions): Promise<Result<PassReport, string>> {
  const prepared = await preparePorts(options, new AbortController().signal);
  if (!prepared.ok) return prepared;
  const { ports, collector, release } = prepared.value;
  try {
    const report = await runPass(ports, options.config, 1);
    if (collector !== null) options.onTurn?.(await collector.turn(new Set(["container-gc", "image-gc"])));
    return ok(report);
  } finally {
    release();
  }
}

async function passes(
  ports: LoopPorts,
  { config, onPass, onProblem }: ActuatorOptions,
  stop: AbortSignal,
): Promise<void> {
  let told: readonly string[] = [];
  for (let sequence = 1; !stop.aborted; sequence++) {
    const report = await runPass(ports, config, sequence);
    for (const problem of report.problems) onProblem(problem);
    // a notice stays true from pass to pass, and is told when it is new
    for (const notice of report.notices) if (!told.includes(notice.message)) onProblem(notice);
    told = report.notices.map(({ message }) => message);
    onPass(report);
    await sleep(config.intervalSeconds * 1000, undefined, { signal: stop }).catch(() => {});
  }
}

interface Prepared {
  readonly ports: LoopPorts;
  /** Null: garbage collection is off. */
  readonly collector: Collector | null;
  readonly release: () => void;
}

async function preparePorts(options: ActuatorOptions, stop: AbortSignal): Promise<Result<Prepared, string>> {
  const { config, onProblem } = options;
  const bootId = observeMachine().system.bootID ?? "";
  const access = config.mode === "observe" ? "read" : "write";
  const opened = openHierarchy({ mountRoot: config.cgroupMount, root: config.cgroupRoot, access });
  if (!opened.ok && config.mode === "enforce") return err(`mode enforce needs cgroups: ${opened.error.message}`);
  if (!opened.ok) {
    onProblem({ from: "cgroupfs", message: `${opened.error.message}; deciding without looking at cgroups` });
  }
  const state = await openState(options, opened.ok ? opened.value : null, bootId);
  if (!state.ok) return state;
  const { journal, lock } = state.value;
  const shared = {
    observeMachine: () => observeMachine({ kubeletDirectory: config.kubeletDir }),
    readPods: podsSource(config),
    readConfiguration: () => readConfiguration(config.kubeletConfiguration),
  };
  const parties = await openParties(options, shared, stop);
  if (!parties.ok) {
    lock?.release();
    return parties;
  }
  const { client, collecting } = parties.value;
  const ports: LoopPorts = {
    ...shared,
    readStateFiles: () => readStateFiles(config.kubeletDir),
    client,
    hierarchy: opened.ok ? opened.value : null,
    journal,
  };
  const release = (): void => {
    lock?.release();
    collecting?.release();
  };
  return ok({ ports, collector: collecting?.collector ?? null, release });
}

interface Parties {
  readonly client: LoopPorts["client"];
  readonly collecting: OpenCollector | null;
}
/** Who decides, and who collects, which share what they remember. */
async function openParties(
  options: ActuatorOptions,
  shared: Omit<Shared, "client">,
  stop: AbortSignal,
): Promise<Result<Parties, string>> {
  const { config } = options;
  const client = clientOf(options);
  if (!client.ok) return client;
  if (config.garbageCollection === "off") return ok({ client: client.value, collecting: null });
  const ofCollector = { ...shared, readPods: podsOrNone(config, shared.readPods), client: client.value };
  const collecting = await openCollector(ofCollector, options, { stop, joinsEviction: true });
  return collecting.ok ? ok({ client: client.value, collecting: collecting.value }) : collecting;
}

/**
 * Who decides: the API of the settings, this process's own, or the core here. `outboxName` is a file of the state
 * directory that no other process writes. Errors: the token's file.
 */
export function clientOf(
  { config, api, onProblem }: Pick<ActuatorOptions, "config" | "api" | "onProblem">,
  outboxName = "outbox.jsonl",
): Result<LoopPorts["client"], string> {
  const timeoutMs = config.apiTimeoutSeconds * 1000;
  const memory = new Memory(config.stateDir, (message) => onProblem({ from: "memory", message }));
  if (api === undefined && config.api === undefined) return ok(localClient(memory));
  const outbox = Outbox.open(join(config.stateDir, outboxName));
  if (api !== undefined) return ok(new ApiClient({ ...api, timeoutMs }, outbox, memory, onProblem));
  try {
    const token = config.apiTokenFile === undefined ? undefined : readFileSync(config.apiTokenFile, "utf8").trim();
    const url = (config.api as string).replace(/\/+$/, "");
    return ok(new ApiClient({ url, token, timeoutMs, fetch }, outbox, memory, onProblem));
  } catch (e) {
    return err(`apiTokenFile: ${(e as Error).message}`);
  }
}

/** A KubeletConfiguration of a file; none is the kubelet's defaults. */
export async function readConfiguration(file: string | undefined): Promise<Result<unknown, Problem>> {
  if (file === undefined) return ok({});
  const read = await readObjects(file);
  if (!read.ok) return err({ from: "configuration", message: `${read.error.file}: ${read.error.message}` });
  const [first] = read.value;
  if (first === undefined) return err({ from: "configuration", message: `${file} holds no document` });
  if (isConfiguration(first.value)) return ok(first.value);
  return err({ from: "configuration", message: `${file} is ${formText(first.value)}, no KubeletConfiguration` });
}
