import type { PodEnd } from "../lifecycle/pod-end.ts";
import type { PodRecord } from "../lifecycle/record.ts";

export const endOf = (cause: PodEnd["cause"], reason: string, message: string, sinceMs: number): PodEnd => ({
  cause,
  reason,
  message,
  sinceMs,
  graceSeconds: null,
  decisionId: null,
});

/** A pod that was ended for another's sake, and that nobody has deleted. */
export const waitingAgain = (record: PodRecord): PodRecord => ({
  ...record,
  state: "waits",
  admittedAtMs: null,
  backOff: {},
  refusal:
    record.end === null || record.end.cause === "drained"
      ? null
      : { reason: record.end.reason, message: record.end.message, sinceMs: record.end.sinceMs, tries: 0 },
  end: null,
});
