import type { Fields } from "../../base/own.ts";
import type { ObservedEvent } from "../../model/observed.ts";
import { type Comparison, type Outcome, type PodOutcome, reasonOfOutcome } from "../../model/outcome.ts";

/** A kubelet's act that a collector observed and the history recorded, with the result of comparing it with a decision. */
export interface SeenOutcome {
  readonly id: string;
  readonly node: string;
  readonly outcome: PodOutcome;
  readonly comparison: Comparison;
  /** The pod at that time, with the fields that a snapshot keeps; null if it is not stored. */
  readonly object: Fields | null;
}

/** A Kubernetes event, or an outcome converted to the event that reported it. */
export type EventOrOutcome = ObservedEvent & { readonly outcome?: SeenOutcome };

/** Whether the outcome says that a pod was refused, did not start, or was acted on. */
export const isAdverse = (outcome: Outcome): outcome is PodOutcome =>
  "pod" in outcome &&
  !(outcome.kind === "admission" && outcome.admitted) &&
  !(outcome.kind === "claims" && outcome.prepared);

/** The kubelet's event for an outcome. */
function eventOf(seen: SeenOutcome): EventOrOutcome {
  const { node, outcome } = seen;
  const { pod, at, message } = outcome;
  const fieldPath = outcome.kind === "probes" ? { fieldPath: `spec.containers{${outcome.container}}` } : {};
  return {
    about: { kind: "Pod", ...pod, ...fieldPath },
    reason: reasonOf(outcome),
    message,
    type: outcome.kind === "probes" ? "Normal" : "Warning",
    count: 1,
    first: at,
    last: at,
    component: "kubelet",
    host: node,
    annotations: {},
    outcome: seen,
  };
}
function reasonOf(outcome: PodOutcome): string {
  if (outcome.kind === "resize") return `Resize${outcome.reason}`;
  return outcome.kind === "probes" ? "Killing" : (reasonOfOutcome(outcome) ?? "");
}

/** The events, with those of outcomes that no event reports. */
export function withOutcomes(
  events: readonly ObservedEvent[],
  outcomes: readonly SeenOutcome[],
): readonly EventOrOutcome[] {
  const keyOf = ({ about, reason }: ObservedEvent): string =>
    JSON.stringify([about.uid, reason, reason === "Killing" ? about.fieldPath : ""]);
  const observed = new Set(events.map(keyOf));
  const others = outcomes.filter(({ outcome }) => isAdverse(outcome)).map(eventOf);
  return [...events, ...others.filter((one) => !observed.has(keyOf(one)))];
}
