import * as z from "zod";
import type { AttemptOutcome } from "../../../api/decide/probes/worker-state.ts";
import { PROBE_TYPES } from "../../../api/model/probe.ts";

/**
 * The end of an attempt. Success that is told as a warning is a success here. `hang` and `broken`: errors after the head of
 * an HTTP answer, whose body never ended or ended too soon.
 */
const ATTEMPT_KINDS = ["success", "failure", "error", "hang", "broken"] as const;
export type AttemptKind = (typeof ATTEMPT_KINDS)[number];

/** Share of the timeout that counts as all of it: clocks that are not the same may differ by this little. */
const WHOLE = 0.95;

/** `seconds`: what it took. */
export function attemptKind(outcome: AttemptOutcome, seconds: number, timeoutSeconds: number): AttemptKind {
  if (!("error" in outcome)) return outcome.result === "failure" ? "failure" : "success";
  if (outcome.state !== "failure") return "error";
  return seconds >= timeoutSeconds * WHOLE ? "hang" : "broken";
}

/** Containers that an entry of the guard names; how many there were stands in `holding`. */
export const MAX_NAMED = 16;
/** Containers of which one keeps the whole question. */
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

/** A line of a node's history of probes. */
const historyEntry = z.discriminatedUnion("kind", [
  /** The stored result of a container became another. */
  z.object({
    ...ofProbe,
    kind: z.literal("result"),
    containerId: z.string(),
    /** Null: nothing was stored. */
    from: result.nullable(),
    to: result,
    /** Output of the attempt that caused the change; absent: no attempt did, or it succeeded. */
    output: z.string().optional(),
    /** The kubelet quirk that caused it. */
    quirk: z.string().optional(),
    /** No attempt led to it: the container does not run. */
    unasked: z.literal(true).optional(),
  }),
  /** The first attempt of a container did not succeed, and what is stored is as before it. */
  z.object({
    ...ofProbe,
    kind: z.literal("first"),
    containerId: z.string(),
    outcome: z.enum(ATTEMPT_KINDS),
    output: z.string().optional(),
  }),
  /** A run: this many attempts in a row had ended alike when one ended otherwise. */
  z.object({
    ...ofProbe,
    kind: z.literal("run"),
    outcome: z.enum(ATTEMPT_KINDS),
    times: z.number(),
    /** The end of that one. */
    next: z.enum(ATTEMPT_KINDS).optional(),
  }),
  /** An exec waited for its turn longer than its period, as none had for a while. */
  z.object({ ...ofProbe, kind: z.literal("overdue"), seconds: z.number() }),
  /** The guard holds kills, or does no more. */
  z.object({
    at: z.string(),
    kind: z.literal("probe-guard"),
    held: named,
    released: z.array(z.object({ container: z.string(), why: z.string() })),
    holding: z.number(),
    why: z.string(),
    /** When it begins to hold: whom it let be killed in the window before, for they were too few. */
    killedBefore: named.optional(),
    /**
     * The question put to the guard, as `nodewise decide probe-guard --ask` takes it; absent: too many probes had failed to
     * keep it here.
     */
    ask: z.unknown().optional(),
  }),
  /** There was more in this second than is kept. */
  z.object({ at: z.string(), kind: z.literal("omitted"), count: z.number() }),
]);
export type ProbeHistoryEntry = z.output<typeof historyEntry>;

/** Null: the line is none, as when it was cut short. */
export function readEntry(line: string): ProbeHistoryEntry | null {
  try {
    return historyEntry.safeParse(JSON.parse(line)).data ?? null;
  } catch {
    return null;
  }
}
