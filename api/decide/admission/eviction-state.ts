import { PRESSURE_CONDITIONS } from "../../model/eviction.ts";
import { refusalUnderPressure } from "../eviction/admit.ts";
import { isCriticalPod } from "../resources/critical.ts";
import { qosClass } from "../resources/qos.ts";
import type { Admitting, Refused } from "./admitting.ts";

/** The node's conditions stand for what the eviction manager holds on to. kubelet 1.36: eviction managerImpl.Admit. */
export function evictionRefusals({ pod, node, reasons, needs }: Admitting): readonly Refused[] {
  const conditions = node.status?.conditions;
  if (conditions === undefined) needs.add("node.status.conditions");
  const pressures = PRESSURE_CONDITIONS.filter((type) =>
    conditions?.some((c) => c.type === type && c.status === "True"),
  );
  if (pressures.length === 0) return [];
  const refusal = refusalUnderPressure(pod, pressures);
  const [critical, qos] = [isCriticalPod(pod), qosClass(pod)];
  reasons.add("node_under_pressure", "eviction", "admit", { conditions: pressures.join(" "), critical, qosClass: qos });
  return refusal === null ? [] : [refusal];
}
