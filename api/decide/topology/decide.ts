import type { PodAsk } from "../../model/ask.ts";
import type { Asked, Decided, Refusal } from "../../model/decision.ts";
import type { TopologyDecision } from "../../model/managers.ts";
import { ok, type Result } from "../../model/result.ts";
import { configurationOf } from "../config.ts";
import { explainCpus } from "../cpus/explain.ts";
import { type Answered, decideWith } from "../managers/desk.ts";
import { roomOf } from "../managers/room.ts";
import { explainMemory } from "../memory/explain.ts";
import type { Reasons } from "../reasons.ts";
import { assignedOf } from "./assigned.ts";

/** Whether the asked pod comes in and where it is put, how the rest of the node lies about, and what would still come in. */
export function decideTopology(asked: Asked<PodAsk>): Result<Decided<TopologyDecision>, Refusal> {
  const config = configurationOf(asked.snapshot);
  const head = {
    policy: config.topologyManagerPolicy || "none",
    scope: config.topologyManagerScope || "container",
    options: config.topologyManagerPolicyOptions ?? {},
  } as const;
  return decideWith<TopologyDecision>(asked, {
    decided: (answered, reasons, needs) => {
      const room = roomOf(answered, reasons, needs);
      if (!room.ok) return room;
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
        ...room.value,
      });
    },
    notStarted: (startErrors, warnings) => ({ ...head, ...NOTHING, startErrors, warnings }),
  });
}

const NO_ROOM = { freeCpus: 0, freeCores: 0, freeMemory: 0, largestBlock: 0, splitShare: 0 };
const NOTHING = {
  refusal: null,
  assigned: [],
  placements: [],
  numaNodes: [],
  node: { ...NO_ROOM, scattered: 0, largestPod: null } as TopologyDecision["node"],
} as const;

function explain(answered: Answered, reasons: Reasons): void {
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
