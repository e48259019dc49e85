import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { err, ok, type Result } from "../api/model/result.ts";
import { openHierarchy } from "./cgroupfs/hierarchy.ts";
import { type ApiAccess, ApiClient, localClient } from "./client.ts";
import type { ActuatorConfig } from "./config.ts";
import { type PassReport, runPass } from "./loop.ts";
import { observeMachine } from "./machine/observe.ts";
import { readStateFiles } from "./machine/state-files.ts";
import { formText, isConfiguration } from "./manifests/document-form.ts";
import { readObjects } from "./manifests/read-objects.ts";
import { Outbox } from "./outbox.ts";
import { openState } from "./own-state.ts";
import { podsSource } from "./pods-source.ts";
import type { LoopPorts, Problem } from "./ports.ts";
import type { Recovery } from "./recover.ts";

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
  readonly release: () => void;
}

async function preparePorts(options: ActuatorOptions): Promise<Result<Prepared, string>> {
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
  const client = clientOf(options);
  if (!client.ok) {
    lock?.release();
    return client;
  }
  const ports: LoopPorts = {
    observeMachine: () => observeMachine({ kubeletDirectory: config.kubeletDir }),
    readPods: podsSource(config),
    readConfiguration: () => readConfiguration(config.kubeletConfiguration),
    readStateFiles: () => readStateFiles(config.kubeletDir),
    client: client.value,
    hierarchy: opened.ok ? opened.value : null,
    journal,
  };
  return ok({ ports, release: () => lock?.release() });
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
  const [first] = read.value;
  if (first === undefined) return err({ from: "configuration", message: `${file} holds no document` });
  if (isConfiguration(first.value)) return ok(first.value);
  return err({ from: "configuration", message: `${file} is ${formText(first.value)}, no KubeletConfiguration` });
}
