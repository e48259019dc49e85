import type { ObservedEvent } from "../../model/observed.ts";
import { type Comparison, type Outcome, type PodOutcome, reasonOfOutcome } from "../../model/outcome.ts";
import type { Fields } from "../../model/own.ts";

/** An act of a kubelet, as a collector saw it and the history has it, with the result of comparing it with a decision. */
export interface SeenOutcome {
  readonly id: string;
  readonly node: string;
  readonly outcome: PodOutcome;
  readonly comparison: Comparison;
  /** Its pod of then, of which it keeps as much as a snapshot does; null: it is not there. */
  readonly object: Fields | null;
}

/** An event of Kubernetes, or an outcome that stands for the event that told of it. */
export type EventOrOutcome = ObservedEvent & { readonly outcome?: SeenOutcome };

/** Whether it is the outcome of a pod that did not come in or did not start, or that something happened to. */
export const isNews = (outcome: Outcome): outcome is PodOutcome =>
  "pod" in outcome &&
  !(outcome.kind === "admission" && outcome.admitted) &&
  !(outcome.kind === "claims" && outcome.prepared);

/** The kubelet's event of an outcome. */
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

/** The events with those of outcomes of which none of them tells. */
export function withOutcomes(
  events: readonly ObservedEvent[],
  outcomes: readonly SeenOutcome[],
): readonly EventOrOutcome[] {
  const keyOf = ({ about, reason }: ObservedEvent): string =>
    JSON.stringify([about.uid, reason, reason === "Killing" ? about.fieldPath : ""]);
  const told = new Set(events.map(keyOf));
  const others = outcomes.filter(({ outcome }) => isNews(outcome)).map(eventOf);
  return [...events, ...others.filter((one) => !told.has(keyOf(one)))];
}
