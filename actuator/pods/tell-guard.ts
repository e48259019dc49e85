import type { DecisionClient, Problem } from "../ports.ts";
import { newlyHeld } from "../probes/chronicle.ts";
import { MOST_NAMED } from "../probes/history-entry.ts";
import type { Guarded } from "../probes/storm.ts";

export interface GuardListeners {
  readonly nodeName: string;
  readonly client: Pick<DecisionClient, "decide" | "settle">;
  readonly onProblem: (problem: Problem) => void;
}

/** A decision of the probe guard as all others: told, counted, and recorded by the API, now or when it is back. */
export async function tellGuard(
  { ask, decision, killedBefore }: Guarded,
  { nodeName, client, onProblem }: GuardListeners,
): Promise<void> {
  const held = newlyHeld(decision);
  const named = (what: string, names: readonly string[]): string =>
    names.length === 0 ? "" : `; ${what}: ${names.slice(0, MOST_NAMED).join(", ")}`;
  const message = `${decision.message}${named("restarted before", killedBefore)}${named("held now", held)}`;
  onProblem({ from: "probes", message });
  const snapshot = { observedAt: new Date().toISOString(), node: { metadata: { name: nodeName } } };
  const answer = await client.decide("probe-guard", snapshot, ask);
  if (answer.ok) await client.settle(answer.value);
  else onProblem(answer.error);
}
