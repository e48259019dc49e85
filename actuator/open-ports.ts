import { err, ok, type Result } from "../api/model/result.ts";
import { openHierarchy } from "./cgroupfs/hierarchy.ts";
import { clientOf } from "./client-of.ts";
import { readConfiguration } from "./configuration-file.ts";
import type { Collector } from "./gc/collector.ts";
import { type OpenCollector, openCollector, podsOrNone, type Shared } from "./gc/open.ts";
import { observeMachine } from "./machine/observe.ts";
import { readStateFiles } from "./machine/state-files.ts";
import type { ActuatorOptions } from "./main.ts";
import { openState } from "./own-state.ts";
import { toldFiles } from "./pods/devices/told.ts";
import { livePodsSource } from "./pods-source.ts";
import type { LoopPorts, Problem } from "./ports.ts";
import type { Counters } from "./status/counters.ts";
import { toldClient } from "./told-client.ts";

export interface OpenPorts {
  readonly ports: LoopPorts;
  /** Null: garbage collection is off. */
  readonly collector: Collector | null;
  readonly release: () => void;
}

/** Errors: this machine or its state directory cannot be used, with why. */
export async function openPorts(
  options: ActuatorOptions,
  stop: AbortSignal,
  counters: Counters,
): Promise<Result<OpenPorts, string>> {
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
  let configurationNotices: readonly Problem[] = [];
  let lastConfiguration: Result<unknown, Problem> | null = null;
  const shared = {
    // where pods are run, the node's disk is the one that their volumes lie on
    observeMachine: () =>
      observeMachine({ kubeletDirectory: config.pods === "off" ? config.kubeletDir : config.podsDirectory }),
    readPods: livePodsSource(config),
    readConfiguration: async () => {
      const read = await readConfiguration(config.kubeletConfiguration, (notices) => {
        configurationNotices = notices;
      });
      if (read.ok) lastConfiguration = read;
      if (read.ok || lastConfiguration === null) return read;
      const message = `${read.error.message}; the last good configuration stays in force`;
      configurationNotices = [{ ...read.error, message }];
      return lastConfiguration;
    },
    configurationNotices: () => configurationNotices,
  };
  const parties = await openParties(options, shared, stop, counters);
  if (!parties.ok) {
    lock?.release();
    return parties;
  }
  const { client, collecting } = parties.value;
  const ports: LoopPorts = {
    ...shared,
    readStateFiles: () => toldFiles(readStateFiles(config.kubeletDir)),
    client,
    hierarchy: opened.ok ? opened.value : null,
    journal,
    lastLook: { current: null },
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
  counters: Counters,
): Promise<Result<Parties, string>> {
  const { config } = options;
  const opened = clientOf(options);
  if (!opened.ok) return opened;
  const client = toldClient(opened.value, counters, options.onDecision);
  if (config.garbageCollection === "off") return ok({ client, collecting: null });
  const ofCollector = { ...shared, readPods: podsOrNone(config, shared.readPods), client };
  const how = { stop, joinsEviction: config.pods === "off", onFault: counters.runtimeCallFailed };
  const collecting = await openCollector(ofCollector, options, how);
  return collecting.ok ? ok({ client, collecting: collecting.value }) : collecting;
}
