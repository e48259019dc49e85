import * as z from "zod";
import { byText } from "../../api/base/order.ts";
import { HANDLERS } from "../../api/decide/probes/plan.ts";
import { PROBE_TYPES, type ProbeType, type StoredResult } from "../../api/model/probe-spec.ts";

/** The name of a probe: its pod, its container, its type. */
export interface ProbeName {
  readonly podUid: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly type: ProbeType;
}

/** The known fields of a form, read-only; unknown fields are dropped from the type. */
export type StatusForm<S extends z.ZodType> = WithoutUnknown<z.output<S>>;
type WithoutUnknown<T> = T extends readonly (infer One)[]
  ? readonly WithoutUnknown<One>[]
  : T extends object
    ? { readonly [Name in keyof T as string extends Name ? never : Name]: WithoutUnknown<T[Name]> }
    : T;

const text = z.string();
const time = text.refine((value) => !Number.isNaN(Date.parse(value)), "must be a time").nullable();
const count = z.number().int().nonnegative();
/** A row from the network or a file. */
export const probeRow = z.looseObject({
  namespace: text,
  pod: text,
  uid: text,
  container: text,
  type: z.enum(PROBE_TYPES),
  handler: z.enum(HANDLERS),
  periodSeconds: z.number().positive(),
  timeoutSeconds: z.number().positive(),
  /** Null: nothing is stored; for a readiness probe, the state before the daemon's start still counts. */
  result: z.enum(["Unknown", "Success", "Failure"]).nullable(),
  /** When the result was stored. */
  since: time,
  /**
   * `spread`: its first attempt is not due yet; `queued`: it waits for an exec slot; `held`: it failed, and the guard holds back
   * the kill; `done`: it waits for a new container.
   */
  activity: z.enum(["spread", "waiting", "queued", "probing", "held", "done"]),
  /** Since the daemon started, or the pod. */
  attempts: count,
  /** Consecutive failures; errors count neither way. */
  failures: count,
  /** The duration of its attempts, the newer the more; null: there was none. */
  tookMs: z.number().nonnegative().nullable(),
  /** Output of the last attempt, at most 1 KiB; empty if it succeeded. */
  output: text,
  lastAt: time,
  /** Null: an attempt is running, or none will follow. */
  nextAt: time,
});
/** One probe of a container that the daemon runs. */
export type ProbeRow = StatusForm<typeof probeRow>;

/** The daemon's knowledge of one probe; times are of the wall clock, null: there was none. */
export interface ProbeFacts
  extends ProbeName,
    Pick<ProbeRow, "handler" | "periodSeconds" | "timeoutSeconds" | "activity"> {
  readonly result: StoredResult | null;
  readonly sinceMs: number | null;
  readonly attempts: number;
  readonly failures: number;
  /** The duration of its attempts. */
  readonly seconds: number | null;
  readonly output: string;
  readonly lastAtMs: number | null;
  readonly nextAtMs: number | null;
}

/** A row a probe: by pod and container, startup first. */
export const probeRows = (probes: readonly ProbeFacts[]): readonly ProbeRow[] =>
  [...probes].sort(order).map((probe) => ({
    namespace: probe.namespace,
    pod: probe.pod,
    uid: probe.podUid,
    container: probe.container,
    type: probe.type,
    handler: probe.handler,
    periodSeconds: probe.periodSeconds,
    timeoutSeconds: probe.timeoutSeconds,
    result: probe.result,
    since: timeOf(probe.sinceMs),
    activity: probe.activity,
    attempts: probe.attempts,
    failures: probe.failures,
    tookMs: probe.seconds === null ? null : Math.round(probe.seconds * 10_000) / 10,
    output: probe.output,
    lastAt: timeOf(probe.lastAtMs),
    nextAt: timeOf(probe.nextAtMs),
  }));

const timeOf = (atMs: number | null): string | null =>
  atMs === null ? null : new Date(Math.round(atMs)).toISOString();

const order = (a: ProbeFacts, b: ProbeFacts): number =>
  byText(a.namespace, b.namespace) ||
  byText(a.pod, b.pod) ||
  byText(a.podUid, b.podUid) ||
  byText(a.container, b.container) ||
  PROBE_TYPES.indexOf(a.type) - PROBE_TYPES.indexOf(b.type);
