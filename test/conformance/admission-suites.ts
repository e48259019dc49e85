import { decideByAdmitHandlers } from "../../api/decide/kinds/admission.ts";
import { decideCgroups } from "../../api/decide/kinds/cgroups.ts";
import { decideCpus } from "../../api/decide/kinds/cpus.ts";
import { preemptFor } from "../../api/decide/preemption/handler.ts";
import { isCriticalPod } from "../../api/decide/resources/qos.ts";
import type { CgroupValues } from "../../api/model/cgroups.ts";
import { node as nodeSchema } from "../../api/model/placement.ts";
import { containersOf, type Pod, podUid } from "../../api/model/pod.ts";
import type { Snapshot } from "../../api/model/snapshot.ts";
import { effectiveSnapshot } from "../../api/profiles/effective.ts";
import { decodedPod } from "../kit/pods.ts";
import { decoded, type Json } from "../kit/snapshots.ts";
import { forRuntime, resourceConfig } from "./cgroup-values.ts";
import { type Suite, suite } from "./suite.ts";

interface FailureReason {
  readonly predicate?: string;
  readonly resource?: string;
  readonly requested: number;
  readonly used: number;
  readonly capacity: number;
}
interface PreemptionInput {
  readonly pod: unknown;
  readonly pods: readonly unknown[];
  readonly failureReasons: readonly FailureReason[];
}
const nameOf = (p: { readonly namespace: string; readonly name: string }): string => `${p.namespace}/${p.name}`;

const preemption = suite({
  read: ({ pod, pods, failureReasons }: PreemptionInput) => ({
    pod: decodedPod(pod),
    pods: pods.map(decodedPod),
    shortages: failureReasons.flatMap(({ resource, ...amounts }) =>
      resource === undefined ? [] : [{ resource, ...amounts }],
    ),
    others: failureReasons.filter(({ predicate }) => predicate !== undefined).length,
  }),
  decide: ({ pod, pods, shortages, others }) =>
    isCriticalPod(pod) && others === 0
      ? { ...preemptFor(pod, pods, shortages), remaining: 0 }
      : { preempt: [], error: null, remaining: isCriticalPod(pod) ? others : others + shortages.length },
  show: ({ preempt, error, remaining }) => ({
    killed: preempt.map(nameOf),
    remainingReasons: remaining,
    ...(error === null ? {} : { error }),
  }),
});

interface AdmissionInput {
  readonly node: unknown;
  readonly pod: unknown;
  readonly otherPods: readonly unknown[];
  readonly featureGates?: Readonly<Record<string, boolean>>;
}
/** The allocated resources of the pods. The recorded functions get pods whose spec contains the allocated resources. */
const asAllocated = (pods: readonly Pod[]) => ({
  entries: Object.fromEntries(
    pods.map((pod) => {
      const resources = containersOf(pod).map((c) => [c.name, c.resources ?? {}] as const);
      return [podUid(pod) ?? "", { ContainerResources: Object.fromEntries(resources) }];
    }),
  ),
});
const admission = suite({
  // the recorded functions do not set default requests, so the pods are read without that step
  read: ({ node, pod, otherPods, featureGates }: AdmissionInput): { snapshot: Snapshot; pod: Pod } => {
    const pods = otherPods.map(decodedPod);
    return {
      snapshot: {
        ...decoded({ kubeletConfiguration: { featureGates } }),
        node: nodeSchema.parse(node),
        pods,
        assignments: { allocated_pods_state: asAllocated(pods) },
      },
      pod: decodedPod(pod),
    };
  },
  decide: ({ snapshot, pod }, profile) => {
    const asked = { snapshot: effectiveSnapshot(snapshot, profile), facts: {}, ask: { pod }, explain: "off" as const };
    const answer = decideByAdmitHandlers(asked);
    if (!answer.ok) throw new Error(answer.error.message);
    return answer.value.decision;
  },
  show: ({ admit, reason, message, preempt }) => ({ admit, message, preempted: preempt.map(nameOf), reason }),
});

interface SharedInput {
  /** The MachineInfo of cAdvisor. */
  readonly machine: Json;
  readonly kubeletConfiguration: Json;
  readonly pods: readonly unknown[];
}
interface SharedOutput {
  readonly pods: Readonly<Record<string, CgroupValues>>;
}
const CAPACITY = { cpu: "16", memory: "16Gi", "hugepages-2Mi": "256Mi", "hugepages-1Gi": "0", pods: "110" };
const RESERVED = {
  evictionHard: {},
  kubeReserved: { cpu: "1", memory: "1Gi" },
  reservedMemory: [{ numaNode: 0, limits: { memory: "1Gi" } }],
};
/** The values without page sizes of 0. A page size that is not requested gets this limit when the cgroup is written. */
const withPages = ({ hugePageLimit = {}, ...values }: CgroupValues): CgroupValues => {
  const asked = Object.entries(hugePageLimit).filter(([, limit]) => limit > 0);
  return asked.length === 0 ? values : { ...values, hugePageLimit: Object.fromEntries(asked) };
};
/** Admits pods one by one, and then computes the cgroups of the admitted ones. */
const shared = suite({
  expected: ({ pods, ...out }: SharedOutput) => ({
    ...out,
    pods: Object.fromEntries(Object.entries(pods).map(([name, values]) => [name, withPages(values)])),
  }),
  read: ({ machine, kubeletConfiguration, pods }: SharedInput) => ({
    node: decoded({
      machine,
      kubeletConfiguration: { ...kubeletConfiguration, ...RESERVED },
      cgroup: { version: 1, driver: "cgroupfs" },
      node: { metadata: { name: "n" }, status: { capacity: CAPACITY, allocatable: CAPACITY } },
    }),
    pods: pods.map(decodedPod),
  }),
  decide: ({ node, pods }, profile) => {
    let snapshot: Snapshot = { ...node, pods: [] };
    const steps = pods.map((pod) => {
      const asked = {
        snapshot: effectiveSnapshot(snapshot, profile),
        facts: {},
        ask: { pod },
        explain: "off" as const,
      };
      const answer = decideCpus(asked);
      if (!answer.ok) throw new Error(answer.error.message);
      const { decision, next } = answer.value;
      if (decision.startErrors.length > 0) throw new Error(decision.startErrors.join("; "));
      const here = decision.refusal === null ? [...(snapshot.pods ?? []), pod] : snapshot.pods;
      snapshot = { ...snapshot, pods: here, assignments: (next as Pick<Snapshot, "assignments"> | null)?.assignments };
      return decision.refusal;
    });
    const effective = effectiveSnapshot(snapshot, profile);
    const cgroups = decideCgroups({ snapshot: effective, facts: {}, ask: undefined, explain: "off" });
    if (!cgroups.ok) throw new Error(cgroups.error.message);
    return { steps, files: snapshot.assignments, cgroups: cgroups.value.decision.cgroups };
  },
  show: ({ steps, files, cgroups }) => {
    const of = (level: string) => cgroups.filter((plan) => plan.level === level);
    return {
      steps: steps.map((r) => ({ admit: r === null, reason: r?.reason ?? "", message: r?.message ?? "" })),
      ...files,
      pods: Object.fromEntries(of("pod").map(({ pod, values }) => [pod?.name, resourceConfig(withPages(values))])),
      containers: Object.fromEntries(
        of("container").map(({ pod, container, values }) => [`${pod?.name}/${container}`, forRuntime(values, true)]),
      ),
      burstableShares: of("qos").find(({ path }) => path.endsWith("burstable"))?.values.cpuShares,
    };
  },
});

export const ADMISSION_SUITES: Readonly<Record<string, Suite>> = {
  admission,
  // test/data/admission: pods with extended resources from a claim, and pods with pod-level resources
  "admission-claimed": admission,
  "admission-shared": shared,
  preemption,
  // pods on a node where others are being resized in place
  "x-admission-status": admission,
};
