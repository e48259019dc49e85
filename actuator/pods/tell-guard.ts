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
  { ask, decision }: Guarded,
  { nodeName, client, onProblem }: GuardListeners,
): Promise<void> {
  const held = newlyHeld(decision);
  const named = held.length === 0 ? "" : `; held now: ${held.slice(0, MOST_NAMED).join(", ")}`;
  onProblem({ from: "probes", message: decision.message + named });
  const snapshot = { observedAt: new Date().toISOString(), node: { metadata: { name: nodeName } } };
  const answer = await client.decide("probe-guard", snapshot, ask);
  if (answer.ok) await client.settle(answer.value);
  else onProblem(answer.error);
}
