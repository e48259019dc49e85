import type { EvictionDecision } from "../../model/eviction.ts";
import type { Shown } from "./shown.ts";

export function evictionTable({ decision }: Shown<EvictionDecision>): string {
  return `${JSON.stringify(decision, null, 2)}\n`;
}
