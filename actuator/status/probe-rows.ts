import { PROBE_TYPES, type StoredResult } from "../../api/model/probe.ts";
import type { ProbeName } from "../probes/probed.ts";
import type { ProbeRow } from "./probe-row.ts";

/** What the daemon knows of one probe; times are of the wall clock, null: there was none. */
export interface ProbeFacts
  extends ProbeName,
    Pick<ProbeRow, "handler" | "periodSeconds" | "timeoutSeconds" | "activity"> {
  readonly result: StoredResult | null;
  readonly sinceMs: number | null;
  readonly attempts: number;
  readonly failures: number;
  /** What its attempts take. */
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
  compare(a.namespace, b.namespace) ||
  compare(a.pod, b.pod) ||
  compare(a.podUid, b.podUid) ||
  compare(a.container, b.container) ||
  PROBE_TYPES.indexOf(a.type) - PROBE_TYPES.indexOf(b.type);
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
