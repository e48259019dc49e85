import * as z from "zod";
import { HANDLERS, type HandlerKind } from "../../api/decide/probes/plan.ts";
import { PROBE_TYPES, type ProbeType, type StoredResult } from "../../api/model/probe.ts";

const ACTIVITIES = ["spread", "waiting", "queued", "probing", "held", "done"] as const;

/** One probe of a container that the daemon runs. */
export interface ProbeRow {
  readonly namespace: string;
  readonly pod: string;
  readonly uid: string;
  readonly container: string;
  readonly type: ProbeType;
  readonly handler: HandlerKind;
  readonly periodSeconds: number;
  readonly timeoutSeconds: number;
  /** Null: nothing is stored; with a readiness probe, what it was before the daemon started holds. */
  readonly result: StoredResult | null;
  /** When that came to be. */
  readonly since: string | null;
  /**
   * `spread`: its first turn has not come; `queued`: for one of the places of execs; `held`: it failed, and the guard holds
   * the kill; `done`: until there is a new container.
   */
  readonly activity: (typeof ACTIVITIES)[number];
  /** Since the daemon started, or the pod. */
  readonly attempts: number;
  /** Failed ones in a row; what could not be asked counts neither way. */
  readonly failures: number;
  /** What its attempts take, the newer the more; null: there was none. */
  readonly tookMs: number | null;
  /** Of the last attempt, 1 KiB at most; empty where it succeeded. */
  readonly output: string;
  readonly lastAt: string | null;
  /** Null: an attempt is under way, or none will come. */
  readonly nextAt: string | null;
}

const text = z.string();
const time = text.refine((value) => !Number.isNaN(Date.parse(value)), "must be a time").nullable();
const count = z.number().int().nonnegative();
/** One that came over the network or from a file. */
export const probeRow: z.ZodType<ProbeRow> = z.looseObject({
  namespace: text,
  pod: text,
  uid: text,
  container: text,
  type: z.enum(PROBE_TYPES),
  handler: z.enum(HANDLERS),
  periodSeconds: z.number().positive(),
  timeoutSeconds: z.number().positive(),
  result: z.enum(["Unknown", "Success", "Failure"]).nullable(),
  since: time,
  activity: z.enum(ACTIVITIES),
  attempts: count,
  failures: count,
  tookMs: z.number().nonnegative().nullable(),
  output: text,
  lastAt: time,
  nextAt: time,
});
