import { milliValue } from "../../model/amount.ts";
import type { ReasonCode } from "../../model/decision.ts";
import { type Container, containersOf, type Pod, podUid } from "../../model/pod.ts";
import type { Answered } from "../managers/desk.ts";
import type { ManagedNode } from "../managers/node.ts";
import type { ReasonRecorder } from "../reasons.ts";
import { isPodLevelResourcesSet } from "../resources/pod-resources.ts";
import { qosClass } from "../resources/qos.ts";
import { idsOf, type TopologyHint } from "../topology/hint.ts";
import { exclusiveCpus } from "./request.ts";
import { common, cpuText, NO_CPUS } from "./sets.ts";

/** Why each container of the asked pod has the CPUs that it has, under its name. */
export function explainCpus(answered: Answered, reasons: ReasonRecorder<ReasonCode<"cpus">>): void {
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
        admission?.turns.find((t) => t.container === null || t.container === container.name)?.merged,
      ),
      reserved: cpuText(node.cpuPolicy.name === "static" ? node.cpuPolicy.reserved : NO_CPUS),
    });
  }
  function affinityText(hint: TopologyHint | undefined): string {
    return hint === undefined || hint.nodes === null ? "any" : idsOf(node.numa, hint.nodes).join(",");
  }
}

function explainReserve({ node }: Answered, reasons: ReasonRecorder<ReasonCode<"cpus">>): void {
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
