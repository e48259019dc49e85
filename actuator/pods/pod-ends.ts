import type { PodEnd } from "../lifecycle/pod-end.ts";
import type { PodRecord, Refusal } from "../lifecycle/record.ts";

export const endOf = (cause: PodEnd["cause"], reason: string, message: string, sinceMs: number): PodEnd => ({
  cause,
  reason,
  message,
  sinceMs,
  graceSeconds: null,
  decisionId: null,
});

/** A pod that was ended for another's sake, and that nobody has deleted. */
export const waitingAgain = ({ status: _, ...record }: PodRecord): PodRecord => ({
  ...record,
  state: "waits",
  admittedAtMs: null,
  backOff: {},
  refusal: record.end === null ? null : { ...whyItWaits(record.end), sinceMs: record.end.sinceMs, tries: 0 },
  end: null,
});
const whyItWaits = ({ cause, reason, message }: PodEnd): Pick<Refusal, "reason" | "message"> =>
  cause === "drained" ? DRAINED : { reason, message };
const DRAINED = { reason: "Drained", message: "drained by its daemon on the way out; the next one starts it again" };
