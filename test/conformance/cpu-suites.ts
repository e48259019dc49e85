import { type CpuState, checkpointOf, hashedV2, writeCpuState } from "../../api/decide/cpus/checkpoint.ts";
import { type CpuManager, cpuManager } from "../../api/decide/cpus/manager.ts";
import { type StaticPolicy, staticPolicy } from "../../api/decide/cpus/policy.ts";
import { cpuText } from "../../api/decide/cpus/sets.ts";
import { freshState, startState } from "../../api/decide/cpus/start.ts";
import { cpuTopology } from "../../api/decide/cpus/topology.ts";
import {
  ANY_NODE,
  idsOf,
  maskOf,
  type NumaNodes,
  type ResourceHints,
  type TopologyHint,
} from "../../api/decide/topology/hint.ts";
import { formatCpuSet, gapsIn, parseCpuSet } from "../../api/model/cpu-set.ts";
import { machine } from "../../api/model/machine.ts";
import { containersOf, type Pod } from "../../api/model/pod.ts";
import type { Profile } from "../../api/profiles/profile.ts";
import { decodedPod } from "../kit/pods.ts";
import { type Suite, suite } from "./suite.ts";

interface AddOp {
  readonly op: "add";
  readonly pod: unknown;
  /** NUMA nodes; null or absent: any node. */
  readonly affinity?: readonly number[] | null;
}
interface RemoveOp {
  readonly op: "remove";
  readonly podUID: string;
  readonly container: string;
}
export interface CpuInput {
  readonly topology: readonly { readonly cpu: number }[];
  readonly numReservedCPUs: number;
  readonly reservedSystemCPUs?: string;
  readonly policyOptions: Readonly<Record<string, string>>;
  readonly ops: readonly (AddOp | RemoveOp)[];
}
type Op = { readonly op: "add"; readonly pod: Pod; readonly affinity: TopologyHint } | RemoveOp;
interface CpuRead {
  /** The policy, or the reason why there is none. */
  readonly policy: StaticPolicy | string;
  readonly ops: readonly Op[];
}

function read(input: CpuInput, profile: Profile): CpuRead {
  const { policy, numa } = readPolicy(input, profile);
  return { policy, ops: input.ops.map((op) => readOp(op, numa)) };
}
/**
 * Reads the policy and the machine's NUMA nodes. `topologyPolicy`: the topology manager policy with which the CPU
 * manager runs.
 */
export function readPolicy(
  input: Omit<CpuInput, "ops">,
  { behaviour }: Profile,
  topologyPolicy = "none",
): Pick<CpuRead, "policy"> & { readonly numa: NumaNodes } {
  const offlineCpus = formatCpuSet(gapsIn(input.topology.map(({ cpu }) => cpu)));
  const topology = cpuTopology(machine.parse({ cpus: input.topology, offlineCpus }));
  if (!topology.ok) throw new Error(topology.error.map((issue) => `${issue.path}: ${issue.message}`).join("; "));
  const policy = staticPolicy({
    topology: topology.value,
    options: input.policyOptions,
    gates: { alpha: true, beta: true, behaviour },
    topologyPolicy,
    numReserved: input.numReservedCPUs,
    reserved: new Set(parseCpuSet(input.reservedSystemCPUs ?? "")),
  });
  return { policy: policy.ok ? policy.value : policy.error, numa: topology.value.numa };
}
function readOp(op: AddOp | RemoveOp, numa: NumaNodes): Op {
  if (op.op === "remove") return op;
  const nodes = op.affinity === undefined || op.affinity === null ? null : maskOf(numa, op.affinity);
  return { op: "add", pod: decodedPod(op.pod), affinity: { ...ANY_NODE, nodes } };
}

interface Step {
  readonly error?: string;
  readonly assignments: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly defaultCPUSet: string;
}
/** Allocates CPUs to a pod's containers in turn, up to the first failure. */
function apply(manager: CpuManager, op: Op): string | undefined {
  if (op.op === "remove") {
    manager.removeContainer(op.podUID, op.container);
    return undefined;
  }
  for (const container of containersOf(op.pod)) {
    const given = manager.allocate(op.pod, container, op.affinity);
    if (!given.ok) return given.error.message;
  }
  return undefined;
}
const stepOf = (manager: CpuManager, error: string | undefined): Step => ({
  ...(error === undefined ? {} : { error }),
  ...shownCpus(manager.state()),
});
/** Maps pod uid and container to CPUs, with the shared pool. */
export function shownCpus({ assignments, defaultCpus }: CpuState): Omit<Step, "error"> {
  const shown = Array.from(assignments, ([uid, containers]) => [
    uid,
    Object.fromEntries(Array.from(containers, ([name, cpus]) => [name, cpuText(cpus)])),
  ]);
  return {
    assignments: Object.fromEntries(shown) as Step["assignments"],
    defaultCPUSet: cpuText(defaultCpus),
  };
}
const started = (policy: StaticPolicy): CpuManager => cpuManager(policy, freshState(policy));

const steps = suite({
  read,
  decide: ({ policy, ops }: CpuRead) => {
    if (typeof policy === "string") return policy;
    const manager = started(policy);
    return ops.map((op) => stepOf(manager, apply(manager, op)));
  },
  show: (decided) => (typeof decided === "string" ? { policyError: decided } : { steps: decided }),
});

/** Runs all steps; every case of these suites has at least one. */
function after({ policy, ops }: CpuRead): { manager: CpuManager; policy: StaticPolicy } {
  if (typeof policy === "string") throw new Error(policy);
  const manager = started(policy);
  for (const op of ops) apply(manager, op);
  return { manager, policy };
}

type HintsInput = CpuInput & { readonly pod: unknown };
const hints = suite({
  read: (input: HintsInput, profile) => ({ ...read(input, profile), pod: decodedPod(input.pod) }),
  decide: (input) => {
    const { manager, policy } = after(input);
    const ofContainers = containersOf(input.pod).map((c) => [c.name, manager.containerHints(input.pod, c)] as const);
    return { manager, policy, ofContainers, ofPod: manager.podHints(input.pod) };
  },
  show: ({ manager, policy, ofContainers, ofPod }) => {
    const { numa } = policy.topology;
    return {
      containerHints: Object.fromEntries(ofContainers.map(([name, list]) => [name, shownHints(numa, list)])),
      podHints: shownHints(numa, ofPod),
      defaultCPUSet: cpuText(manager.state().defaultCpus),
    };
  },
});
function shownHints(numa: NumaNodes, byResource: ResourceHints): unknown {
  if (byResource.size === 0) return null;
  const shown = (hint: TopologyHint) => ({
    numaNodes: hint.nodes === null ? null : idsOf(numa, hint.nodes),
    preferred: hint.preferred,
  });
  return Object.fromEntries(Array.from(byResource, ([name, list]) => [name, list?.map(shown) ?? null]));
}

const stateFile = suite({
  read,
  decide: (input: CpuRead, profile) => {
    const state = after(input).manager.state();
    return { file: writeCpuState("static", state, { profile, podLevel: false }), state };
  },
  show: ({ file, state }) => ({ file, hashed: hashedV2(checkpointOf("static", state)) }),
});

type StartInput = Omit<CpuInput, "ops"> & { readonly file: string };
/** The start of a kubelet with a state file. */
const start = suite({
  read: (input: StartInput, profile) => ({ ...readPolicy(input, profile), file: input.file }),
  decide: ({ policy, file }, profile) => {
    if (typeof policy === "string") throw new Error(policy);
    return startState({ policy, file, profile, podLevel: false });
  },
  show: (state) => (state.ok ? shownCpus(state.value) : { error: state.error }),
});

export const CPU_SUITES: Readonly<Record<string, Suite>> = {
  "cpu-manager": steps,
  "cpu-manager-affinity": steps,
  "cpu-hints": hints,
  "cpu-state-file": stateFile,
  "x-cpu-start": start,
};
