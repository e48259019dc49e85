import { cpuManager } from "../../api/decide/cpus/manager.ts";
import { freshState } from "../../api/decide/cpus/start.ts";
import { admitPod } from "../../api/decide/topology/admit.ts";
import { idsOf, maskOf, type ResourceHints, type TopologyHint } from "../../api/decide/topology/hint.ts";
import { mergeHints } from "../../api/decide/topology/merge.ts";
import { type AligningPolicy, topologyPolicy } from "../../api/decide/topology/policy.ts";
import { containersOf, type Pod, podUid } from "../../api/model/pod.ts";
import type { OptionGates, Profile } from "../../api/profiles/profile.ts";
import { decodedPod } from "../kit/pods.ts";
import { type CpuInput, readPolicy, shownCpus } from "./cpu-suites.ts";
import { managerOf, readMachine, shownBlocks } from "./memory-suites.ts";
import { type Suite, suite } from "./suite.ts";

interface Hint {
  readonly numaNodes: readonly number[] | null;
  readonly preferred: boolean;
}
interface MergeInput {
  readonly policy: string;
  readonly policyOptions: Readonly<Record<string, string>>;
  readonly distances: readonly (readonly number[])[];
  readonly providerHints: readonly Readonly<Record<string, readonly Hint[] | null>>[];
}
interface MergeRead {
  readonly policy: AligningPolicy;
  readonly hints: readonly ResourceHints[];
}

/** All options are allowed. */
const allOptions = ({ behaviour }: Profile): OptionGates => ({ alpha: true, beta: true, behaviour });

function readMerge(
  { policy: name, policyOptions: options, distances, providerHints }: MergeInput,
  profile: Profile,
): MergeRead {
  const nodes = distances.map((row, id) => ({ id, distances: row }));
  const policy = topologyPolicy({ policy: name, scope: "container", options, gates: allOptions(profile), nodes });
  if (!policy.ok) throw new Error(policy.error.message);
  if (policy.value.name === "none") throw new Error("policy none merges nothing");
  const { numa } = policy.value;
  const read = ({ numaNodes, preferred }: Hint): TopologyHint => ({
    nodes: numaNodes === null ? null : maskOf(numa, numaNodes),
    preferred,
  });
  const hints = providerHints.map(
    (provider) => new Map(Object.entries(provider).map(([name, list]) => [name, list?.map(read) ?? null])),
  );
  return { policy: policy.value, hints };
}

const topologyMerge = suite({
  read: readMerge,
  decide: ({ policy, hints }) => ({ numa: policy.numa, merged: mergeHints(policy, hints) }),
  show: ({ numa, merged }) => {
    if (!merged.ok) throw new Error(merged.error.message);
    const { hint, admitted } = merged.value;
    const numaNodes = hint.nodes === null ? null : idsOf(numa, hint.nodes);
    return { admit: admitted, hint: { numaNodes, preferred: hint.preferred } };
  },
});

type AdmitOp =
  | { readonly op: "add"; readonly pod: unknown; readonly clean?: boolean }
  | { readonly op: "remove"; readonly pod: unknown };
interface AdmitInput {
  readonly topology: CpuInput["topology"];
  readonly distances: readonly (readonly number[])[];
  readonly memoryBytesPerNode: number;
  readonly numReservedCPUs: number;
  readonly cpuOptions: Readonly<Record<string, string>>;
  readonly policy: string;
  readonly scope: string;
  readonly topologyOptions: Readonly<Record<string, string>>;
  readonly ops: readonly AdmitOp[];
}
const SYSTEM_RESERVED = 2 ** 28;

function readAdmit(input: AdmitInput, profile: Profile) {
  const { policy, scope, topologyOptions: options, distances, memoryBytesPerNode: memoryBytes } = input;
  const ids = distances.map((row, id) => ({ id, distances: row }));
  return {
    topology: topologyPolicy({ policy, scope, options, gates: allOptions(profile), nodes: ids }),
    behaviour: profile.behaviour,
    cpus: readPolicy({ ...input, policyOptions: input.cpuOptions }, profile, policy).policy,
    machine: readMachine(
      ids.map(({ id }) => ({ id, memoryBytes, hugepages2Mi: 0, systemReservedBytes: SYSTEM_RESERVED })),
    ),
    ops: input.ops.map((op) => ({ clean: false, ...op, pod: decodedPod(op.pod) })),
  };
}

/** Adds and removes pods at the CPU manager and the memory manager under one topology manager. */
function decideAdmit({ topology, cpus: cpuPolicy, machine, behaviour, ops }: ReturnType<typeof readAdmit>) {
  if (!topology.ok) return { startError: topology.error.message };
  if (typeof cpuPolicy === "string") return { policyError: cpuPolicy };
  const cpus = cpuManager(cpuPolicy, freshState(cpuPolicy));
  const memory = managerOf({ machine, behaviour });
  const providers = [
    { name: "cpus", provider: cpus },
    { name: "memory", provider: memory },
  ];
  const remove = (pod: Pod): void => {
    for (const { name } of containersOf(pod)) {
      cpus.removeContainer(podUid(pod) ?? "", name);
      memory.removeContainer(podUid(pod) ?? "", name);
    }
  };
  const steps = ops.map(({ op, pod, clean }) => {
    const admission = op === "add" ? admitPod(topology.value, providers, pod) : null;
    if (admission?.ok === false) throw new Error(admission.error.message);
    const refusal = admission?.value.refusal ?? null;
    if (admission === null || (refusal !== null && clean)) remove(pod);
    const { assignments, defaultCPUSet } = shownCpus(cpus.state());
    const reported = { admit: refusal === null, reason: refusal?.reason ?? "", message: refusal?.message ?? "" };
    return {
      ...(admission === null ? {} : reported),
      cpus: assignments,
      default: defaultCPUSet,
      memory: shownBlocks(memory.state),
    };
  });
  return { steps };
}
const admit = suite({ read: readAdmit, decide: decideAdmit, show: (decided) => decided });

export const TOPOLOGY_SUITES: Readonly<Record<string, Suite>> = { "topology-merge": topologyMerge, "x-admit": admit };
