import { resolve } from "node:path";
import { KUBELET_DIRECTORY } from "../../../actuator/core/setting-faults.ts";
import { readStateFiles } from "../../../actuator/machine/files.ts";
import { nodeNameOf } from "../../../actuator/machine/node.ts";
import { observeMachine } from "../../../actuator/machine/observe.ts";
import { readManifests } from "../../../actuator/manifests/read-manifests.ts";
import { driverOf, snapshotOf } from "../../../actuator/pass/snapshot.ts";
import { ok, type Result } from "../../base/result.ts";
import { podsOfAnother, podsOfOthers } from "../../decide/pods/pods-of-other-nodes.ts";
import { issueText, type Origin } from "../../documents/inputs/origin.ts";
import { problemText } from "../../documents/problem.ts";
import { decodeSnapshot } from "../../model/decode.ts";
import { NEWEST } from "../../profiles/index.ts";
import { reasonText } from "../../text/tables/index.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";
import { readPods } from "./pods.ts";
import { leftOutOf, leftOutOfPods, readPart } from "./read.ts";
import type { RuntimeParts } from "./runtime.ts";

export interface MachineSnapshotOptions {
  readonly pods?: string;
  readonly manifests?: string;
  readonly config?: string;
  readonly nodeName?: string;
  /** The kubelet's directory with its state files. */
  readonly kubeletDir?: string;
  readonly cgroupDriver?: "cgroupfs" | "systemd";
  /** CRI v1 over a unix socket; without it, the runtime is unknown. */
  readonly runtimeEndpoint?: string;
}
interface MachineSnapshot {
  readonly snapshot: Readonly<Record<string, unknown>>;
  /** The parts that were not given, or could not be read from the machine, the configuration or a manifest; the snapshot lacks them. */
  readonly missing: readonly string[];
}

/** This machine as a validated NodeSnapshot, with pods and configuration from files. Errors: those of the files. */
export async function readMachine(options: MachineSnapshotOptions): Promise<Result<MachineSnapshot, Fault>> {
  const kubeletDirectory = options.kubeletDir ?? KUBELET_DIRECTORY;
  const machine = observeMachine({ kubeletDirectory });
  const { assignments, missing } = readStateFiles(kubeletDirectory);
  const nodeName = options.nodeName ?? nodeNameOf(machine) ?? "node";
  const origins: Origin[] = [];
  const configuration = await readConfiguration(options.config, origins);
  if (!configuration.ok) return configuration;
  const pods = await readPodsOf(options, nodeName, origins);
  if (!pods.ok) return pods;
  const runtime = await readRuntimeOf(options.runtimeEndpoint, kubeletDirectory);
  if (!runtime.ok) return runtime;
  const { missing: unreadOfRuntime = [], ...runtimeParts } = runtime.value;
  const snapshot = snapshotOf({
    machine,
    kubeletConfiguration: configuration.value.posted,
    ...(pods.value === undefined ? {} : { pods: pods.value.pods }),
    cgroup: { driver: options.cgroupDriver ?? driverOf(configuration.value.posted, NEWEST) },
    nodeName,
    ...(assignments === undefined ? {} : { assignments }),
    ...runtimeParts,
  });
  const decoded = decodeSnapshot(snapshot);
  if (!decoded.ok) return fault(EXIT.badInput, ...decoded.error.map((issue) => issueText(issue, origins)));
  const ofAnother = podsOfAnother(decoded.value);
  if (ofAnother !== undefined) return fault(EXIT.badInput, `${ofAnother.message}; or name their node with --node-name`);
  const ofOthers = podsOfOthers(decoded.value);
  const unread = [...machine.missing, ...missing, ...unreadOfRuntime].map(
    ({ path, why }) => `not known of this machine: ${path}: ${why}`,
  );
  const notGiven = [
    ...(pods.value === undefined ? [NO_PODS] : []),
    ...(options.config === undefined ? [NO_CONFIGURATION] : []),
    ...(ofOthers === undefined ? [] : [reasonText(ofOthers, false)]),
  ];
  const { leftOut } = configuration.value;
  return ok({ snapshot, missing: [...notGiven, ...leftOut, ...unread, ...(pods.value?.problems ?? [])] });
}

const NO_PODS =
  "the snapshot has no pods, and decisions that need them are refused: give them with --pods FILE or --manifests DIR";
const NO_CONFIGURATION =
  "the snapshot has no kubeletConfiguration, and decisions use the kubelet's defaults: give it with --config FILE";

/** The client of the runtime is loaded only if one is named. */
async function readRuntimeOf(
  endpoint: string | undefined,
  kubeletDirectory: string,
): Promise<Result<Partial<RuntimeParts>, Fault>> {
  if (endpoint === undefined) return ok({});
  const { readRuntime } = await import("./runtime.ts");
  return readRuntime(endpoint, kubeletDirectory);
}

async function readConfiguration(
  file: string | undefined,
  origins: Origin[],
): Promise<Result<{ readonly posted?: unknown; readonly leftOut: readonly string[] }, Fault>> {
  if (file === undefined) return ok({ leftOut: [] });
  const read = await readPart("config", file);
  if (!read.ok) return read;
  const { posted, document, base } = read.value;
  if (document === null) return ok({ posted, leftOut: [] });
  origins.push({ at: ["kubeletConfiguration"], source: document, base });
  return ok({ posted, leftOut: leftOutOf(document, base, posted, NEWEST) });
}

interface PodsAndProblems {
  readonly pods: readonly unknown[];
  readonly problems: readonly string[];
}

/** Reads the pods; undefined if none are given. */
async function readPodsOf(
  { pods, manifests }: MachineSnapshotOptions,
  nodeName: string,
  origins: Origin[],
): Promise<Result<PodsAndProblems | undefined, Fault>> {
  if (pods !== undefined) {
    const read = await readPods(pods, nodeName);
    if (!read.ok) return read;
    origins.push(...read.value.origins);
    const problems = [...read.value.leftOut, ...leftOutOfPods(read.value.origins, NEWEST)];
    return ok({ pods: read.value.pods, problems });
  }
  if (manifests === undefined) return ok(undefined);
  const read = await readManifests(manifests, nodeName);
  const unreadable = read.problems.find(({ file, document }) => file === resolve(manifests) && document === undefined);
  if (unreadable !== undefined) return fault(EXIT.badInput, problemText(unreadable));
  return ok({ pods: read.pods, problems: read.problems.map((problem) => `left out: ${problemText(problem)}`) });
}
