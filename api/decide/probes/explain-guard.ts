import type { GuardSettings, ProbeGuardDecision } from "../../model/probe-guard.ts";
import type { Reasons } from "../reasons.ts";

/** Whether it is a storm and by which numbers; and of each container why its kill waits, or why it does no more. */
export function explainGuard(decision: ProbeGuardDecision, guard: GuardSettings, reasons: Reasons): void {
  const { storm, groups, failingGroups, leastGroups, kill, hold, released } = decision;
  const { windowSeconds, least, holdSeconds } = guard;
  const share = "share" in least ? { share: least.share } : {};
  const numbers = { failingGroups, groups, leastGroups, windowSeconds, ...share };
  reasons.add(storm ? "probe_storm" : "no_probe_storm", "node", "storm", numbers);
  const why = new Map(released.map(({ containerId, why }) => [containerId, why]));
  for (const { container, heldForMs } of hold)
    reasons.add(heldForMs === 0 ? "kill_held" : "kill_held_on", container, "hold", { heldForMs, holdSeconds });
  for (const { containerId, container } of kill)
    if (!why.has(containerId)) reasons.add("kill_not_held", container, "kill");
  for (const { container, why } of released)
    reasons.add(`released_${why.replaceAll(" ", "_")}`, container, "released", { holdSeconds });
}
