import type { PreemptionDecision } from "../../model/preemption.ts";
import type { Shown } from "./shown.ts";

export function preemptionTable({ decision }: Shown<PreemptionDecision>): string {
  return `${JSON.stringify(decision, null, 2)}\n`;
}
