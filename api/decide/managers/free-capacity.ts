import { err, ok, type Result } from "../../base/result.ts";
import { type Amount, add, milliValue, sub, value, ZERO } from "../../model/amount.ts";
import type { Refusal } from "../../model/decision.ts";
import { podUid } from "../../model/pod.ts";
import type { PodSize, TopologyDecision } from "../../model/topology.ts";
import { type Bytes, bytes } from "../../model/units.ts";
import { nodeCapacity } from "../allocatable/capacity.ts";
import { allocatableOf, totalReservation } from "../allocatable/node-allocatable.ts";
import { evictionReservation, reservedOf } from "../allocatable/reservation.ts";
import { type ReasonRecorder, Reasons } from "../reasons.ts";
import { podRequests } from "../resources/pod-resources.ts";
import { fragmentation, type LargestAsk, largestPod, largestPodOn } from "../topology/largest-pod.ts";
import type { ManagerQuery } from "./manager-query.ts";
import { managersOf, providersOf } from "./node.ts";

/** Each of some 200 trials hints at 2^n sets of nodes: on more nodes the largest pod is not searched for. */
const MAX_SEARCHED_NODES = 8;

/**
 * How fragmented free CPUs and memory are once the asked pod is admitted, and the largest Guaranteed pod that would
 * still be admitted.
 */
export function freeCapacity(
  answered: ManagerQuery,
  reasons: ReasonRecorder<"largest_pod_not_searched">,
  needs: string[],
): Result<Pick<TopologyDecision, "numaNodes" | "node">, Refusal> {
  const { node, after } = answered;
  const cpus = node.snapshot.machine?.cpus ?? [];
  const isStatic = node.cpuPolicy.name === "static";
  const wholeCores = node.cpuPolicy.name === "static" && node.cpuPolicy.options.fullPcpusOnly;
  const fragments = fragmentation({
    cpus,
    free: isStatic ? after.cpus.available() : new Set(cpus.map(({ cpu }) => cpu)),
    freeMemory: memoryOf(answered, (table) => table.free),
    wholeCores,
  });
  const ask = node.numa.ids.length > MAX_SEARCHED_NODES ? null : largestAsk(answered, wholeCores, needs);
  if (node.numa.ids.length > MAX_SEARCHED_NODES) {
    reasons.add("largest_pod_not_searched", "node", "largestPod", { numaNodes: node.numa.ids.length });
  }
  const largest = ask === null ? ok(null) : largestPod(ask);
  if (!largest.ok) return err({ code: "too_large", message: largest.error.message, needs: [] });
  const { nodes, ...whole } = fragments;
  return ok({
    numaNodes: nodes.map((one) => {
      const index = node.numa.ids.indexOf(one.numaNode);
      return { ...one, largestPod: ask === null || index < 0 ? null : largestPodOn(ask, index) };
    }),
    node: { ...whole, largestPod: largest.value },
  });
}

/** NUMA node -> memory: of the memory manager's tables where it is on, else what the machine has. */
function memoryOf(
  { node, after }: ManagerQuery,
  pick: (table: { readonly free: number; readonly allocatable: number }) => number,
): ReadonlyMap<number, Bytes> {
  if (node.memory.policy === "None") {
    return new Map((node.snapshot.machine?.numaNodes ?? []).map(({ id, memoryBytes = 0 }) => [id, bytes(memoryBytes)]));
  }
  const { machineState } = after.memory.state;
  const tables = [...machineState].map(([id, { memoryMap }]) => [id, memoryMap.get("memory")] as const);
  return new Map(tables.map(([id, table]) => [id, bytes(table === undefined ? 0 : pick(table))]));
}

/** The largest pod; null: the node's resources are not known. */
function largestAsk(answered: ManagerQuery, wholeCores: boolean, needs: string[]): LargestAsk | null {
  const { node, pod } = answered;
  const free = freeOf(answered, needs);
  if (free === null) return null;
  const memory = memoryOf(answered, (table) => table.allocatable);
  const cpus = node.snapshot.machine?.cpus ?? [];
  const nodes: PodSize[] = node.numa.ids.map((id) => ({
    cpus: cpus.filter(({ numa }) => numa === id).length,
    memory: memory.get(id) ?? bytes(0),
  }));
  const isIn = answered.refusal === null && pod !== null;
  const kept = isIn ? { ...node, active: [...node.active.filter((p) => podUid(p) !== podUid(pod)), pod] } : node;
  const now = { ...kept, cpuState: answered.after.cpus.state() };
  const state = { ...now, memory: { ...now.memory, state: answered.after.memory.state } };
  return {
    policy: node.topology,
    providers: () => providersOf(managersOf({ ...state, checkpoint: answered.after.devices.checkpoint() }, null)),
    nodes,
    free,
    cpuStep: wholeCores && node.cpuPolicy.name === "static" ? node.cpuPolicy.topology.cpusPerCore : 1,
  };
}

/** Computes the node's allocatable minus the requests of its pods, including the asked pod if it was admitted. */
function freeOf({ node, pod, refusal }: ManagerQuery, needs: string[]): PodSize | null {
  const { snapshot } = node;
  const config = snapshot.kubeletConfiguration;
  const capacity = nodeCapacity(snapshot, new Reasons<string>("off"), needs);
  const reserved = reservedOf(config);
  const eviction = evictionReservation(config, capacity);
  if (!reserved.ok || !eviction.ok || !capacity.has("cpu") || !capacity.has("memory")) return null;
  const { kube, system } = reserved.value;
  const allocatable = allocatableOf(capacity, totalReservation(capacity, kube, system, eviction.value));
  const uid = pod === null ? undefined : podUid(pod);
  const others = node.active.filter((p) => podUid(p) !== uid);
  const pods = pod !== null && refusal === null ? [...others, pod] : node.active;
  const left = (name: string): Amount => {
    const requested = pods.reduce<Amount>((sum, p) => add(sum, podRequests(p).get(name) ?? ZERO), ZERO);
    return sub(allocatable.get(name)?.amount ?? ZERO, requested);
  };
  return {
    cpus: Math.max(0, Math.floor(milliValue(left("cpu")) / 1000)),
    memory: bytes(Math.max(0, value(left("memory")))),
  };
}
