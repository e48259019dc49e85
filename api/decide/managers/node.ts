import { perObject } from "../../base/cache.ts";
import { err, ok, type Result } from "../../base/result.ts";
import type { Refusal } from "../../model/decision.ts";
import type { PodRef } from "../../model/forms.ts";
import { containersOf, isTerminal, type Pod, podNamespace, podRef, podUid } from "../../model/pod.ts";
import type { PodAsk } from "../../model/pod-ask.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type EpochMs, epochMs } from "../../model/units.ts";
import { type EffectiveSnapshot, gateOn } from "../../profiles/effective.ts";
import { type CpuManager, cpuManager } from "../cpus/manager.ts";
import type { DeviceCheckpoint } from "../devices/checkpoint.ts";
import { readCheckpoint } from "../devices/checkpoint-read.ts";
import { type DeviceResource, type Inventories, inventoriesOf } from "../devices/inventory.ts";
import { type DeviceManager, deviceManager } from "../devices/manager.ts";
import { type PreferredAllocation, recordedAnswers } from "../devices/preferred.ts";
import { type MemoryManager, memoryManager } from "../memory/manager.ts";
import { podsHere } from "../pods/node-pods.ts";
import { qosClass } from "../resources/qos.ts";
import { type Admission, admitPod, type NamedProvider } from "../topology/admit.ts";
import { type NumaNodes, numaNodes } from "../topology/hint.ts";
import type { MergeRefusal } from "../topology/merge.ts";
import type { TopologyPolicy } from "../topology/policy.ts";
import { asManagersCount } from "./allocated-view.ts";
import { type Settings, type Started, settingsOf, startManagers } from "./start.ts";

/** Sets of NUMA nodes that one pod's hints may name, over all its containers and resources: below half a second. */
const MAX_SETS_OF_POD = 2 ** 17;
/** The limit for all pods that a restarted kubelet readmits. */
const MAX_SETS_OF_NODE = 2 ** 18;

/** Why hinting for these pods would take too long: each resource of each container is hinted at with every of 2^n sets. */
export function tooManyHints(
  topology: TopologyPolicy,
  numa: NumaNodes,
  pods: readonly Pod[],
  whose: "pod" | "node",
): string | undefined {
  if (topology.name === "none") return undefined;
  const lists = pods.reduce((sum, pod) => sum + listsOf(pod, topology.scope === "pod"), 0);
  const most = whose === "pod" ? MAX_SETS_OF_POD : MAX_SETS_OF_NODE;
  if (lists * 2 ** numa.ids.length <= most) return undefined;
  const sets = `${lists} lists of hints at the sets of ${numa.ids.length} NUMA nodes are more than ${most} sets`;
  return whose === "pod" ? sets : `${sets}: post the managers' state files, so that nobody is let in again`;
}

/** Lists of hints that the managers make for a pod; devices are hinted at whatever its class. */
function listsOf(pod: Pod, wholePod: boolean): number {
  const isGuaranteed = qosClass(pod) === "Guaranteed";
  const containers = containersOf(pod);
  const named = containers.map(({ resources }) =>
    Object.keys({ ...resources?.limits, ...resources?.requests }).filter((name) => isGuaranteed || name.includes("/")),
  );
  return wholePod ? new Set(named.flat()).size : named.reduce((sum, names) => sum + names.length, 0);
}

/** The managers of a node in working copies of their own. */
export interface Managers {
  readonly cpus: CpuManager;
  readonly memory: MemoryManager;
  readonly devices: DeviceManager;
}
/** A node whose kubelet runs, with all that its managers know. */
export interface ManagedNode extends Started {
  readonly snapshot: EffectiveSnapshot;
  readonly settings: Settings;
  readonly numa: NumaNodes;
  /**
   * Pods that hold their resources; a failed pod holds them until its containers have stopped. kubelet 1.36:
   * GetActivePods.
   */
  readonly active: readonly Pod[];
  readonly inventories: Inventories;
  /** Why kubelet_internal_checkpoint was not taken; null: it was, or there is none. */
  readonly checkpointError: string | null;
  readonly checkpoint: DeviceCheckpoint | undefined;
}
/** The node, or why its kubelet does not start. */
type NodeStart = Result<ManagedNode, readonly string[]>;

/** Reads a node's managers from a snapshot; inputs that would improve the answer are added to `needs`. */
export function managedNode(snapshot: EffectiveSnapshot, needs: string[]): Result<NodeStart, Refusal> {
  const { start, missed } = started(snapshot);
  needs.push(...missed);
  return start;
}
/** Several kinds ask the same of one snapshot. */
const started = perObject((snapshot: EffectiveSnapshot) => {
  const missed: string[] = [];
  return { start: startOf(snapshot, missed), missed };
});

function startOf(snapshot: EffectiveSnapshot, needs: string[]): Result<NodeStart, Refusal> {
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
    active: podsHere(snapshot).map(withUid),
    inventories: pluginsOf(snapshot, checkpoint.value, needs),
    checkpoint: checkpoint.value,
    checkpointError: checkpoint.error,
  };
  return withReadmitted(node, needs);
}

/** Fresh copies of the managers, after resources of removed pods were released. `asking` counts as active. */
export function managersOf(node: ManagedNode, asking: Pod | null): Managers {
  const isAsking = (pod: Pod): boolean => asking !== null && podUid(pod) === podUid(asking);
  const active = asking === null ? node.active : [...node.active.filter((pod) => !isAsking(pod)), asking];
  const sourcesReady = node.snapshot.kubelet?.sourcesReady ?? true;
  const cpus = cpuManager(node.cpuPolicy, node.cpuState, node.settings.podLevel);
  const { policy, state } = node.memory;
  const { podLevel, profile } = node.settings;
  const memory = memoryManager({ policy, state, podLevel, behaviour: profile.behaviour });
  const devices = deviceManager({
    inventories: node.inventories,
    checkpoint: node.checkpoint,
    nodes: node.numa,
    sourcesReady,
    activePods: new Set(active.map((pod) => podUid(pod) ?? "")),
    runningAtStart: runningOf(node.active),
    prefer: answersOf(node.snapshot),
    behaviour: profile.behaviour,
    claims: gateOn(node.snapshot.kubeletConfiguration, "DRAExtendedResource"),
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

/** The managers in the order in which the kubelet asks them. */
export const providersOf = ({ devices, cpus, memory }: Managers): readonly NamedProvider[] => [
  { name: "devices", provider: devices },
  { name: "cpus", provider: cpus },
  { name: "memory", provider: memory },
];

/** Lets a pod in; the managers are changed by it. */
export const admit = (node: ManagedNode, managers: Managers, pod: Pod): Result<Admission, MergeRefusal> =>
  admitPod(node.topology, providersOf(managers), asManagersCount(pod, node.settings), node.settings.podLevel);

/**
 * The managers after readmission: a manager that is on and whose file was not posted starts empty, and a starting
 * kubelet asks it for the existing pods, in order of creation, except ended ones. A pod that is refused gets nothing.
 * kubelet 1.36: HandlePodAdditions.
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
/** Pods in order of creation; those without a time come first, as listed. */
function byCreation(pods: readonly Pod[]): readonly Pod[] {
  const at = (pod: Pod): number => Date.parse(pod.metadata.creationTimestamp ?? "") || 0;
  return pods.toSorted((a, b) => at(a) - at(b));
}

/** The pod with a uid, by which the managers know pods; a pod that no API server has seen uses its name. */
export const withUid = (pod: Pod): Pod =>
  podUid(pod) === undefined
    ? { ...pod, metadata: { ...pod.metadata, uid: `${podNamespace(pod)}.${pod.metadata.name}` } }
    : pod;

/** The asked pod, with a uid; null: none. */
export function podOfAsk(snapshot: Snapshot, { pod }: PodAsk): Result<Pod | null, Refusal> {
  if (pod === null) return ok(null);
  if (typeof pod !== "string") return ok(withUid(pod));
  const found = (snapshot.pods ?? []).find((p) => `${podNamespace(p)}/${p.metadata.name}` === pod);
  if (found !== undefined) return ok(withUid(found));
  return err({ code: "no_such_pod", message: `the snapshot has no pod \`${pod}\``, needs: ["pods"] });
}

/** Looks up a pod by uid; a pod that is no longer in the snapshot has no name. */
export function podNames(pods: readonly Pod[]): (uid: string) => PodRef {
  const refs = new Map(pods.map((pod) => [podUid(pod) ?? "", podRef(pod)]));
  return (uid) => refs.get(uid) ?? { namespace: "", name: "", uid };
}

/** Devices and plugins of a snapshot, together by resource, in the order of the names. */
function deviceResources({ devices = [], devicePlugins = [] }: Snapshot): readonly DeviceResource[] {
  const listed = Map.groupBy(devices, ({ resource }) => resource);
  const plugins = new Map(devicePlugins.map((plugin) => [plugin.resource, plugin]));
  return [...new Set([...listed.keys(), ...plugins.keys()])].sort().map((resource) => {
    const plugin = plugins.get(resource);
    const state = plugin && {
      registered: plugin.registered ?? true,
      stoppedAt: timeOf(plugin.stoppedAt),
      options: plugin.options,
    };
    return { resource, devices: listed.get(resource) ?? [], plugin: state };
  });
}
const timeOf = (time: string | undefined): EpochMs | undefined =>
  time === undefined ? undefined : epochMs(Date.parse(time));

/** Returns what the kubelet knows of the node's plugins at the time of the snapshot; without a time nothing has expired. */
export function pluginsOf(snapshot: Snapshot, checkpoint: DeviceCheckpoint | undefined, needs: string[]): Inventories {
  const now = timeOf(snapshot.observedAt);
  const isStopped = (snapshot.devicePlugins ?? []).some(({ stoppedAt }) => stoppedAt !== undefined);
  if (isStopped && now === undefined) needs.push("observedAt");
  return inventoriesOf({
    resources: deviceResources(snapshot),
    checkpointed: checkpoint?.registered?.keys() ?? [],
    now: now ?? epochMs(0),
    kubeletStartedAt: timeOf(snapshot.kubelet?.startedAt),
  });
}

const answersOf = ({ devicePlugins = [] }: Snapshot): PreferredAllocation =>
  recordedAnswers(
    devicePlugins.flatMap(({ resource, preferred = [] }) =>
      preferred.map((answered) => ({ ...answered, resource, mustInclude: answered.mustInclude ?? [] })),
    ),
  );

/** The content of kubelet_internal_checkpoint, or why it was not taken; neither: there is no such file. */
interface CachedCheckpoint {
  readonly value: DeviceCheckpoint | undefined;
  readonly error: string | null;
}
export function checkpointOf({ assignments }: Snapshot): CachedCheckpoint {
  const file = assignments?.kubelet_internal_checkpoint;
  if (file === undefined) return { value: undefined, error: null };
  const read = readCheckpoint(file);
  return read.ok ? { value: read.value, error: null } : { value: undefined, error: read.error.message };
}
