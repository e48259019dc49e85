import type { Refusal } from "../../model/decision.ts";
import { isActive, isTerminal, type Pod, podUid } from "../../model/pod.ts";
import { err, ok, type Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type CpuManager, cpuManager } from "../cpus/manager.ts";
import type { DeviceCheckpoint } from "../devices/checkpoint.ts";
import type { Inventories } from "../devices/inventory.ts";
import { type DeviceManager, deviceManager } from "../devices/manager.ts";
import { type MemoryManager, memoryManager } from "../memory/manager.ts";
import { type Admission, admitPod, type NamedProvider } from "../topology/admit.ts";
import { type NumaNodes, numaNodes } from "../topology/numa-nodes.ts";
import type { MergeRefusal } from "../topology/reachable.ts";
import { tooManyHints } from "./hint-bound.ts";
import { answersOf, checkpointOf, pluginsOf } from "./plugins.ts";
import { withUid } from "./pods.ts";
import { type Settings, settingsOf } from "./settings.ts";
import { type Started, startManagers } from "./start.ts";

/** The managers of a node in working copies of their own. */
export interface Managers {
  readonly cpus: CpuManager;
  readonly memory: MemoryManager;
  readonly devices: DeviceManager;
}
/** A node whose kubelet runs, with all that its managers know. */
export interface ManagedNode extends Started {
  readonly snapshot: Snapshot;
  readonly settings: Settings;
  readonly numa: NumaNodes;
  /** Those that hold what they have: one that has failed holds it until its containers have stopped. kubelet 1.36: GetActivePods. */
  readonly active: readonly Pod[];
  readonly inventories: Inventories;
  /** Why kubelet_internal_checkpoint was not taken; null: it was, or there is none. */
  readonly checkpointError: string | null;
  readonly checkpoint: DeviceCheckpoint | undefined;
}
/** The node, or why its kubelet does not start. */
export type NodeStart = Result<ManagedNode, readonly string[]>;

/** Several kinds ask the same of one snapshot, which no one changes. */
const STARTS = new WeakMap<
  Snapshot,
  { readonly start: Result<NodeStart, Refusal>; readonly needs: readonly string[] }
>();

/** What a snapshot says of a node's managers; `needs` gets what would have told more. */
export function managedNode(snapshot: Snapshot, needs: string[]): Result<NodeStart, Refusal> {
  const known = STARTS.get(snapshot);
  if (known !== undefined) {
    needs.push(...known.needs);
    return known.start;
  }
  const missed: string[] = [];
  const start = startOf(snapshot, missed);
  STARTS.set(snapshot, { start, needs: missed });
  needs.push(...missed);
  return start;
}

function startOf(snapshot: Snapshot, needs: string[]): Result<NodeStart, Refusal> {
  const settings = settingsOf(snapshot);
  if (!settings.ok) return settings;
  const started = startManagers(snapshot, settings.value);
  if (!started.ok) return started;
  if (!started.value.ok) return ok(started.value);
  const checkpoint = checkpointOf(snapshot);
  const { numaNodes: listed, cpus = [] } = snapshot.machine ?? {};
  const node: ManagedNode = {
    ...started.value.value,
    snapshot,
    settings: settings.value,
    numa: numaNodes(new Set(listed?.map(({ id }) => id) ?? cpus.map(({ numa }) => numa))),
    active: (snapshot.pods ?? []).filter(isActive).map(withUid),
    inventories: pluginsOf(snapshot, checkpoint.value, needs),
    checkpoint: checkpoint.value,
    checkpointError: checkpoint.error,
  };
  return withReadmitted(node, needs);
}

/** Fresh copies of the managers as they are, after what pods hold that are gone was taken back. `asking` counts as active. */
export function managersOf(node: ManagedNode, asking: Pod | null): Managers {
  const isAsking = (pod: Pod): boolean => asking !== null && podUid(pod) === podUid(asking);
  const active = asking === null ? node.active : [...node.active.filter((pod) => !isAsking(pod)), asking];
  const sourcesReady = node.snapshot.kubelet?.sourcesReady ?? true;
  const cpus = cpuManager(node.cpuPolicy, node.cpuState, node.settings.podLevel);
  const { policy, state } = node.memory;
  const memory = memoryManager({ policy, state, podLevel: node.settings.podLevel });
  const devices = deviceManager({
    inventories: node.inventories,
    checkpoint: node.checkpoint,
    nodes: node.numa,
    sourcesReady,
    activePods: new Set(active.map((pod) => podUid(pod) ?? "")),
    runningAtStart: runningOf(node.active),
    prefer: answersOf(node.snapshot),
  });
  if (sourcesReady) {
    cpus.removeStale(active);
    memory.removeStale(active);
    devices.purge();
  }
  return { cpus, memory, devices };
}

function runningOf(pods: readonly Pod[]): (podUid: string, container: string) => boolean {
  const running = new Set<string>();
  for (const pod of pods) {
    for (const { name, state } of [
      ...(pod.status?.initContainerStatuses ?? []),
      ...(pod.status?.containerStatuses ?? []),
    ]) {
      if (state?.running !== undefined) running.add(`${podUid(pod)}/${name}`);
    }
  }
  return (uid, container) => running.has(`${uid}/${container}`);
}

/** In the kubelet's order. */
export const providersOf = ({ devices, cpus, memory }: Managers): readonly NamedProvider[] => [
  { name: "devices", provider: devices },
  { name: "cpus", provider: cpus },
  { name: "memory", provider: memory },
];

/** Lets a pod in; the managers are changed by it. */
export const admit = (node: ManagedNode, managers: Managers, pod: Pod): Result<Admission, MergeRefusal> =>
  admitPod(node.topology, providersOf(managers), pod, node.settings.podLevel);

/**
 * A manager that is on and whose file was not posted has begun anew, and a kubelet that starts asks it for the pods that are
 * there already, by the time they were made, but not for one that has ended. So does this; a pod that is refused then goes
 * without. kubelet 1.36: HandlePodAdditions.
 */
function withReadmitted(node: ManagedNode, needs: string[]): Result<NodeStart, Refusal> {
  const files = node.snapshot.assignments ?? {};
  const missing: string[] = [];
  if (node.cpuPolicy.name === "static" && files.cpu_manager_state === undefined) missing.push("cpu_manager_state");
  if (node.memory.policy === "Static" && files.memory_manager_state === undefined) missing.push("memory_manager_state");
  if (node.inventories.size > 0 && files.kubelet_internal_checkpoint === undefined) {
    missing.push("kubelet_internal_checkpoint");
  }
  if (missing.length === 0) return ok(ok(node));
  const readmitted = byCreation(node.active.filter((pod) => !isTerminal(pod)));
  if (readmitted.length === 0) return ok(ok(node));
  needs.push(...missing.map((name) => `assignments.${name}`));
  const tooLarge = tooManyHints(node.topology, node.numa, readmitted, "node");
  if (tooLarge !== undefined) return err({ code: "too_large", message: tooLarge, needs });
  const managers = managersOf(node, null);
  for (const pod of readmitted) admit(node, managers, pod);
  const memory = { ...node.memory, state: managers.memory.state };
  const checkpoint = managers.devices.checkpoint();
  return ok(ok({ ...node, cpuState: managers.cpus.state(), memory, checkpoint }));
}
/** Those without a time come first, as they were listed. */
function byCreation(pods: readonly Pod[]): readonly Pod[] {
  const at = (pod: Pod): number => Date.parse(pod.metadata.creationTimestamp ?? "") || 0;
  return pods.toSorted((a, b) => at(a) - at(b));
}
