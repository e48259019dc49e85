import { byKey } from "../../base/order.ts";
import { ok, type Result } from "../../base/result.ts";
import { milliValue } from "../../model/amount.ts";
import type { CpuAssignment, CpusDecision } from "../../model/cpus.ts";
import type { DecidedOf, ReasonCode, Refusal } from "../../model/decision.ts";
import { type Container, containersOf, type Pod, podUid } from "../../model/pod.ts";
import type { PodAsk } from "../../model/pod-ask.ts";
import type { EffectiveArguments } from "../../profiles/effective.ts";
import { sharedCpus } from "../cpus/checkpoint.ts";
import { type CurrentCpus, reconcile } from "../cpus/reconcile.ts";
import { exclusiveCpus } from "../cpus/request.ts";
import { common, cpuText, NO_CPUS, parseCpus } from "../cpus/sets.ts";
import { decideWith, type ManagerQuery } from "../managers/manager-query.ts";
import { type ManagedNode, podNames } from "../managers/node.ts";
import type { ReasonRecorder, Reasons } from "../reasons.ts";
import { isPodLevelResourcesSet } from "../resources/pod-resources.ts";
import { qosClass } from "../resources/qos.ts";
import { idsOf, type TopologyHint } from "../topology/hint.ts";

/**
 * Decides which container has which CPUs, what the asked pod would get or why not, and which cpusets must change now.
 */
export function decideCpus(asked: EffectiveArguments<PodAsk>): Result<DecidedOf<"cpus">, Refusal> {
  const { cpuManagerPolicy: policy, cpuManagerPolicyOptions: options } = asked.snapshot.kubeletConfiguration;
  const head = { policy, options };
  return decideWith<"cpus">(asked, {
    decided: (answered, reasons) => ok({ ...head, ...decided(answered, reasons) }),
    notStarted: (startErrors, warnings) => ({ ...head, ...NOTHING, startErrors, warnings }),
  });
}

const NOTHING = {
  refusal: null,
  reserved: "",
  sharedPool: "",
  assigned: [],
  assignments: [],
  placements: [],
  reconcile: [],
  overlaps: [],
} as const;

function decided(
  answered: ManagerQuery,
  reasons: Reasons<ReasonCode<"cpus">>,
): Omit<CpusDecision, "policy" | "options"> {
  const { node, pod, before, after, placements, refusal } = answered;
  const { defaultCpus, assignments } = after.cpus.state();
  const uid = pod === null ? "" : (podUid(pod) ?? "");
  const shared = cpuText(defaultCpus);
  const names = podNames(pod === null ? node.active : [...node.active, pod]);
  explainCpus(answered, reasons);
  return {
    startErrors: [],
    warnings: answered.warnings,
    refusal,
    reserved: cpuText(node.cpuPolicy.name === "static" ? node.cpuPolicy.reserved : NO_CPUS),
    sharedPool: shared,
    assigned:
      refusal === null && pod !== null
        ? containersOf(pod).map(({ name }) => {
            const own = after.cpus.cpusOf(uid, name);
            return { container: name, cpus: own === undefined ? shared : cpuText(own), exclusive: own !== undefined };
          })
        : [],
    assignments: [...assignments]
      .sort(byKey)
      .flatMap(([of, containers]) =>
        [...containers]
          .sort(byKey)
          .map(([container, cpus]): CpuAssignment => ({ pod: names(of), container, cpus: cpuText(cpus) })),
      ),
    placements,
    reconcile: reconcile(after.cpus, node.active, currentOf(answered, before)).changes,
    overlaps: sharedCpus(assignments).map(({ cpus, holders }) => ({
      cpus: cpuText(cpus),
      holders: holders.map((holder) => ({ pod: names(holder.uid), container: holder.container })),
    })),
  };
}

/**
 * The containers' current CPUs: as observed, else as in the state before the asked pod; unknown after a kubelet start.
 */
function currentOf({ node, pod }: ManagerQuery, before: ManagerQuery["before"]): CurrentCpus {
  const observed = node.snapshot.cgroup?.cpusets ?? {};
  const { defaultCpus } = before.cpus.state();
  return (uid, container, containerId) => {
    const text = observed[containerId];
    const seen = text === undefined ? undefined : parseCpus(text);
    if (seen?.ok) return seen.value;
    return pod === null ? undefined : (before.cpus.cpusOf(uid, container) ?? defaultCpus);
  };
}

/** Explains the CPUs of each container of the asked pod, under its name. */
export function explainCpus(answered: ManagerQuery, reasons: ReasonRecorder<ReasonCode<"cpus">>): void {
  const { node, pod, before, after, admission, refusal } = answered;
  explainReserve(answered, reasons);
  if (pod === null) return;
  if (refusal !== null) return;
  const pool = before.cpus.state().defaultCpus;
  for (const container of containersOf(pod)) {
    const own = after.cpus.cpusOf(podUid(pod) ?? "", container.name);
    if (own === undefined) {
      const cpus = cpuText(after.cpus.state().defaultCpus);
      reasons.add("shared_pool", container.name, "cpus", {
        cpus,
        because: whyShared(node, pod, container),
      });
      continue;
    }
    const fromPool = common(own, pool);
    reasons.add("exclusive_cpus_given", container.name, "cpus", {
      cpus: cpuText(own),
      count: own.size,
      fromPool: cpuText(fromPool),
      reused: own.size - fromPool.size,
      numaNodes: affinityText(
        admission?.merges.find((t) => t.container === null || t.container === container.name)?.merged,
      ),
      reserved: cpuText(node.cpuPolicy.name === "static" ? node.cpuPolicy.reserved : NO_CPUS),
    });
  }
  function affinityText(hint: TopologyHint | undefined): string {
    return hint === undefined || hint.nodes === null ? "any" : idsOf(node.numa, hint.nodes).join(",");
  }
}

function explainReserve({ node }: ManagerQuery, reasons: ReasonRecorder<ReasonCode<"cpus">>): void {
  const { cpuPolicy, settings } = node;
  if (cpuPolicy.name === "none") {
    reasons.add("no_exclusive_cpus", "node", "sharedPool", { because: "cpuManagerPolicy is none" });
    return;
  }
  const named = settings.reservedSystemCpus;
  reasons.add("reserved_cpus", "node", "reserved", {
    cpus: cpuText(cpuPolicy.reserved),
    because:
      named === ""
        ? `kubeReserved and systemReserved keep ${milliValue(settings.reservedCpu)}m cpu, rounded up`
        : `reservedSystemCPUs is ${named}`,
    inSharedPool: !cpuPolicy.options.strictReservation,
  });
}

function whyShared({ cpuPolicy, settings }: ManagedNode, pod: Pod, container: Container): string {
  if (cpuPolicy.name === "none") return "cpuManagerPolicy is none";
  if (!settings.podLevel && isPodLevelResourcesSet(pod)) return "the pod has pod-level resources";
  const qos = qosClass(pod);
  if (qos !== "Guaranteed") return `the pod is ${qos}`;
  const milli = milliValue(container.resources?.requests?.["cpu"]?.amount ?? 0);
  return exclusiveCpus(pod, container, settings.podLevel) === 0
    ? `${milli}m is no whole number of CPUs`
    : "it has none yet";
}
