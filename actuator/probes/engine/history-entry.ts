import * as z from "zod";
import type { AttemptOutcome } from "../../../api/decide/probes/worker-state.ts";
import { PROBE_TYPES } from "../../../api/model/probe-spec.ts";

/**
 * The outcome of an attempt. A success that is reported as a warning is a success here. `hang` and `broken`: errors after the
 * head of an HTTP response, whose body did not end in time, or broke off.
 */
const ATTEMPT_KINDS = ["success", "failure", "error", "hang", "broken"] as const;
export type AttemptKind = (typeof ATTEMPT_KINDS)[number];

/** Share of the timeout that counts as the whole timeout, since different clocks may differ by this little. */
const WHOLE = 0.95;

/** `seconds`: the duration of the attempt. */
export function attemptKind(outcome: AttemptOutcome, seconds: number, timeoutSeconds: number): AttemptKind {
  if (!("error" in outcome)) return outcome.result === "failure" ? "failure" : "success";
  if (outcome.state !== "failure") return "error";
  return seconds >= timeoutSeconds * WHOLE ? "hang" : "broken";
}

/** Containers that a guard entry names at most; `holding` has their full number. */
export const MAX_NAMED = 16;
/** The number of containers up to which an entry contains the guard's whole input. */
export const MAX_ASKED = 64;

const result = z.enum(["Unknown", "Success", "Failure"]);
const ofProbe = {
  /** RFC 3339. */
  at: z.string(),
  /** NAMESPACE/NAME. */
  pod: z.string(),
  podUid: z.string(),
  container: z.string(),
  type: z.enum(PROBE_TYPES),
};
/** `NAMESPACE/NAME/CONTAINER`, or the id of a container that is gone. */
const named = z.array(z.string());

/** One line of a node's probe history. */
const historyEntry = z.discriminatedUnion("kind", [
  /** The stored result of a container changed. */
  z.object({
    ...ofProbe,
    kind: z.literal("result"),
    containerId: z.string(),
    /** Null: no result was stored. */
    from: result.nullable(),
    to: result,
    /** Output of the attempt that caused the change; absent: no attempt did, or it succeeded. */
    output: z.string().optional(),
    /** The kubelet quirk that caused it. */
    quirk: z.string().optional(),
    /** Present if no attempt caused the change: the container does not run. */
    unasked: z.literal(true).optional(),
  }),
  /** The first attempt of a container did not succeed, and the stored result did not change. */
  z.object({
    ...ofProbe,
    kind: z.literal("first"),
    containerId: z.string(),
    outcome: z.enum(ATTEMPT_KINDS),
    output: z.string().optional(),
  }),
  /** A run has ended: this many attempts in a row had the same outcome, then one had another. */
  z.object({
    ...ofProbe,
    kind: z.literal("run"),
    outcome: z.enum(ATTEMPT_KINDS),
    times: z.number(),
    /** The outcome of that other attempt. */
    next: z.enum(ATTEMPT_KINDS).optional(),
  }),
  /** An exec waited in the queue longer than its period, for the first time in a while. */
  z.object({ ...ofProbe, kind: z.literal("overdue"), seconds: z.number() }),
  /** The guard began to hold kills back, or stopped. */
  z.object({
    at: z.string(),
    kind: z.literal("probe-guard"),
    held: named,
    released: z.array(z.object({ container: z.string(), why: z.string() })),
    holding: z.number(),
    why: z.string(),
    /** Present when holding begins: the containers killed in the window before, while there were too few failures. */
    killedBefore: named.optional(),
    /**
     * The guard's input, as `nodewise decide probe-guard --ask` takes it; absent: too many probes had failed to
     * record it here.
     */
    ask: z.unknown().optional(),
  }),
  /** There were more entries in this second than are recorded. */
  z.object({ at: z.string(), kind: z.literal("omitted"), count: z.number() }),
]);
export type ProbeHistoryEntry = z.output<typeof historyEntry>;

/** Null: the line is no entry, for example because it is truncated. */
export function readEntry(line: string): ProbeHistoryEntry | null {
  try {
    return historyEntry.safeParse(JSON.parse(line)).data ?? null;
  } catch {
    return null;
  }
}
