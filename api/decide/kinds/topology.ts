import { ok, type Result } from "../../base/result.ts";
import type { DecidedOf, ReasonCode, Refusal } from "../../model/decision.ts";
import { containersOf, type Pod, podUid } from "../../model/pod.ts";
import type { PodAsk } from "../../model/pod-ask.ts";
import type { TopologyDecision } from "../../model/topology.ts";
import type { EffectiveArguments } from "../../profiles/effective.ts";
import { cpuText } from "../cpus/sets.ts";
import { freeCapacity } from "../managers/free-capacity.ts";
import { decideWith, type ManagerQuery } from "../managers/manager-query.ts";
import type { Managers } from "../managers/node.ts";
import type { Reasons } from "../reasons.ts";
import { explainCpus } from "./cpus.ts";
import { blocksOf, explainMemory } from "./memory.ts";

/**
 * Decides whether the asked pod is admitted and where it is placed, how the rest of the node is placed, and what would
 * still be admitted.
 */
export function decideTopology(asked: EffectiveArguments<PodAsk>): Result<DecidedOf<"topology">, Refusal> {
  const config = asked.snapshot.kubeletConfiguration;
  const head = {
    policy: config.topologyManagerPolicy,
    scope: config.topologyManagerScope,
    options: config.topologyManagerPolicyOptions,
  };
  return decideWith<"topology">(asked, {
    decided: (answered, reasons, needs) => {
      const capacity = freeCapacity(answered, reasons, needs);
      if (!capacity.ok) return capacity;
      const { placements, refusal, pod, after } = answered;
      explain(answered, reasons);
      const assigned = refusal === null && pod !== null ? assignedOf(after, pod) : [];
      return ok({
        ...head,
        startErrors: [],
        warnings: answered.warnings,
        refusal,
        assigned,
        placements,
        ...capacity.value,
      });
    },
    notStarted: (startErrors, warnings) => ({ ...head, ...NOTHING, startErrors, warnings }),
  });
}

const NO_CAPACITY = { freeCpus: 0, freeCores: 0, freeMemory: 0, largestBlock: 0, splitShare: 0 };
const NOTHING = {
  refusal: null,
  assigned: [],
  placements: [],
  numaNodes: [],
  node: { ...NO_CAPACITY, scattered: 0, largestPod: null } as TopologyDecision["node"],
} as const;

function explain(answered: ManagerQuery, reasons: Reasons<ReasonCode<"topology">>): void {
  const { pod, placements, node } = answered;
  reasons.add("topology_policy", "node", "policy", {
    policy: node.topology.name,
    scope: node.topology.name === "none" ? "none" : node.topology.scope,
    numaNodes: node.numa.ids.join(","),
  });
  if (pod === null) return;
  for (const { container, merged, admitted, hints } of placements) {
    reasons.add("hints_merged", container ?? pod.metadata.name, "placement", {
      numaNodes: merged.numaNodes === null ? "any" : merged.numaNodes.join(","),
      preferred: merged.preferred,
      admitted,
      resources: Object.keys(hints).join(","),
    });
  }
  explainCpus(answered, reasons);
  if (answered.refusal === null) explainMemory(answered, reasons);
}

/** Lists what the managers have assigned to a pod's containers, init containers first. */
export function assignedOf(managers: Managers, pod: Pod): TopologyDecision["assigned"] {
  const uid = podUid(pod) ?? "";
  const shared = cpuText(managers.cpus.state().defaultCpus);
  return containersOf(pod).map(({ name }) => {
    const own = managers.cpus.cpusOf(uid, name);
    const held = managers.devices.state.pods.get(uid)?.get(name) ?? new Map();
    return {
      container: name,
      cpus: own === undefined ? shared : cpuText(own),
      exclusive: own !== undefined,
      memory: blocksOf(managers.memory.blocks(uid, name)),
      devices: Object.fromEntries([...held].map(([resource, { ids }]) => [resource, [...ids]])),
    };
  });
}
