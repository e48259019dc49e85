import type * as z from "zod";
import type { StoreFailure } from "../../db/failure.ts";
import type { FleetRow, LatestRow } from "../../db/rows.ts";
import type { Store } from "../../db/store.ts";
import { HOUR_MS } from "../base/duration.ts";
import { isObject } from "../base/own.ts";
import { ok, type Result } from "../base/result.ts";
import type { Kind, Verdict } from "../model/decision.ts";
import {
  type EvictionSummary,
  evictionSummary,
  type PressureCondition,
  pressureConditions,
} from "../model/eviction.ts";
import { minorOf, PROFILES, profileOfPolicy } from "../profiles/index.ts";
import { type Labels, type Requirement, selects } from "./label-selector.ts";

const DEGREES = ["under-pressure", "reclaims", "evicts"] as const;
/**
 * The state of a node, from best to worst. `gone`: its cluster deleted it, or it was silent for so long that this is likely.
 * `not-known`: its pressure is unknown. `refuses` and `evicted`: pods since the start of the count, by decisions or by the
 * kubelet. `pressure-soon`: a threshold will be met within the hour (`SOON_MS`) at the current slope. The last one that applies
 * counts, except that a silent node has no other state.
 */
export const SEVERITIES = [
  "ok",
  "gone",
  "not-known",
  "refuses",
  "evicted",
  "silent",
  "pressure-soon",
  ...DEGREES,
] as const;
export type Severity = (typeof SEVERITIES)[number];

/** The distance to an eviction threshold, as of the node's newest eviction pass. */
export interface Headroom {
  readonly signal: EvictionSummary["thresholds"][number]["signal"];
  /** The threshold as configured, such as `100Mi`. */
  readonly threshold: string;
  readonly type: "hard" | "soft";
  /** The distance to the threshold in the signal's unit (bytes, inodes, process ids); negative if the threshold is met. */
  readonly distance: number;
  /** The distance as a share of the capacity; null if the capacity is unknown. */
  readonly ratio: number | null;
  /** When this was observed; if the node's clock is ahead, when it was recorded. */
  readonly observedAtMs: number;
  /** When the threshold is met at the pass's slope; null if not within `FORECAST_MS` of the observation, or unknown. */
  readonly metAtMs: number | null;
  /** The time until the threshold is met, if recently observed; 0 if it is met; null if unknown. */
  readonly soonMs: number | null;
}

/** A node in the lists, pages and metrics of all nodes. */
export interface FleetNode extends Omit<FleetRow, "labels" | "conditions"> {
  /** When its cluster deleted the node, if it was silent since; null if not deleted, or unknown. */
  readonly deletedMs: number | null;
  /** The kubelet version of its newest decision, such as `1.37`; empty if unknown. */
  readonly kubelet: string;
  /** Null if no snapshot had them. */
  readonly labels: Labels | null;
  readonly zone: string | null;
  /** The source of its pressure; null if unknown. */
  readonly pressureFrom: "eviction-pass" | "node-status" | null;
  /** Conditions that are True according to that source. */
  readonly conditions: readonly PressureCondition[];
  /** Thresholds in the order in which they are met: those already met, those forecast to be, by time, then the others, nearest first. */
  readonly headroom: readonly Headroom[];
  /** When the first threshold is met; 0 if one is; null if none is within `FORECAST_MS` as far as known. */
  readonly firstMetMs: number | null;
  /** 0: none, or unknown; 1: some; 2: its newest eviction pass reclaims; 3: it evicts. */
  readonly pressure: number;
  /**
   * The number of files that differed from the decision in the newest pass; a pass without differences reports nothing. Null if no
   * daemon has reported.
   */
  readonly drift: number | null;
  /** True: the node was silent for `SILENT_MS`, and its cluster has not deleted it. */
  readonly silent: boolean;
  readonly severity: Severity;
  /** Null if the history has no decision. */
  readonly lastDecisionMs: number | null;
}

/** A node that was silent for this long may be gone: passes come every few seconds to minutes. */
export const SILENT_MS = 15 * 60_000;
/** The longest forecast: a line through some minutes says nothing about later times. */
export const FORECAST_MS = 6 * HOUR_MS;
/** A threshold that is met within this time is worth a warning. */
const SOON_MS = HOUR_MS;
/** How long a removed node stays in lists. */
const GONE_MS = 6 * HOUR_MS;
const ZONE_LABEL = "topology.kubernetes.io/zone";

/** All nodes by name, or one node, counted since the hour of `sinceMs`. Errors: of the history. */
export async function fleetOf(
  store: Pick<Store, "listFleet">,
  nowMs: number,
  sinceMs: number,
  node?: string,
): Promise<Result<readonly FleetNode[], StoreFailure>> {
  const rows = await store.listFleet(sinceMs, node);
  return rows.ok ? ok(rows.value.map((row) => fleetNode(row, nowMs))) : rows;
}

export function fleetNode(row: FleetRow, nowMs: number): FleetNode {
  const { latest, report } = row;
  const newest = newestOf(latest);
  const summary = summaryOf(latest.eviction);
  const labels = labelsOf(row.labels);
  const pressure = pressureOf(row, summary);
  const room = headroomOf(summary, latest.eviction?.decidedAtMs ?? 0, nowMs);
  const silentMs = nowMs - row.lastSeenMs;
  const deletedMs = row.deletedMs !== null && row.deletedMs >= row.lastSeenMs ? row.deletedMs : null;
  const silent = silentMs > SILENT_MS && deletedMs === null;
  const isGone = deletedMs !== null || silentMs > GONE_MS;
  return {
    ...row,
    ...pressure,
    kubelet: newest === null || newest.policyVersion === "" ? "" : profileOfPolicy(newest.policyVersion).version,
    labels,
    zone: labels?.[ZONE_LABEL] ?? null,
    ...room,
    drift: driftOf(report, latest.cgroups),
    silent,
    deletedMs,
    severity: isGone ? "gone" : silent ? "silent" : severityOf(row, pressure, isSoon(room.firstMetMs, nowMs)),
    lastDecisionMs: newest?.decidedAtMs ?? null,
  };
}

const driftOf = (report: FleetRow["report"], latest: LatestRow | undefined): number | null =>
  report === null ? null : isOfEarlierPass(report, latest) ? 0 : report.okCount + report.failedCount;

/** Whether a report is from an earlier pass: the same decision was made again later without a new report. */
export const isOfEarlierPass = (report: { readonly atMs: number }, latest: LatestRow | undefined): boolean =>
  latest !== undefined && report.atMs < latest.decidedAtMs;

const newestOf = (latest: FleetRow["latest"]): LatestRow | null =>
  Object.values(latest).reduce<LatestRow | null>(
    (last, one) => (last === null || one.decidedAtMs > last.decidedAtMs ? one : last),
    null,
  );

type NodePressure = Pick<FleetNode, "pressureFrom" | "conditions" | "pressure">;
/**
 * The node's pressure: from the newest eviction pass, or from the node's status if the pass is much older than the last contact,
 * as when the kubelet is down.
 */
function pressureOf(
  { latest: { eviction }, conditions, lastSeenMs }: FleetRow,
  summary: EvictionSummary | null,
): NodePressure {
  if (eviction !== undefined && lastSeenMs - eviction.decidedAtMs <= SILENT_MS) {
    const degree = 1 + (DEGREES as readonly string[]).indexOf(eviction.verdict);
    return { pressureFrom: "eviction-pass", conditions: summary?.conditions ?? [], pressure: degree };
  }
  const own = storedAs(pressureConditions, conditions);
  if (own === null) return { pressureFrom: null, conditions: [], pressure: 0 };
  return { pressureFrom: "node-status", conditions: own, pressure: own.length === 0 ? 0 : 1 };
}

/** The severity of a node that is not silent. */
function severityOf(row: FleetRow, { pressureFrom, pressure }: NodePressure, isPressedSoon: boolean): Severity {
  if (pressure > 0) return DEGREES[pressure - 1] as Severity;
  if (isPressedSoon) return "pressure-soon";
  if (evictedOf(row) > 0) return "evicted";
  if (refusedOf(row) > 0) return "refuses";
  return pressureFrom === null ? "not-known" : "ok";
}

/** The larger of the counts by decisions and by the kubelet: the same pod may be in both. */
export const refusedOf = ({ refused, kubeletRefused }: FleetRow | FleetNode): number =>
  Math.max(refused, kubeletRefused);
/** Whether a refusal count of 0 is reliable: the kubelet's outcomes are reported, or admission is decided here. */
export const knowsRefusals = ({ kubeletReported, latest }: Pick<FleetRow, "kubeletReported" | "latest">): boolean =>
  kubeletReported || latest.admission !== undefined;
export const evictedOf = ({ evicted, kubeletEvicted }: FleetRow | FleetNode): number =>
  Math.max(evicted, kubeletEvicted);

function json(text: string | null): unknown {
  if (text === null) return null;
  try {
    return JSON.parse(text);
  } catch {
    // a damaged row of one node must not hide all nodes
    return null;
  }
}
/** The value of a stored text; null if there is none, or not of this form. */
function storedAs<F extends z.ZodType>(form: F, text: string | null): z.output<F> | null {
  // to refuse a null takes the form longer than to read a value
  const read = text === null ? null : form.safeParse(json(text));
  return read?.success === true ? read.data : null;
}
function labelsOf(text: string | null): Labels | null {
  const labels = json(text);
  return isObject(labels) ? (labels as Labels) : null;
}
/** The summary of a pass; null if there is no pass, or it is from another version, which may have other conditions. */
const summaryOf = (pass: LatestRow | undefined): EvictionSummary | null =>
  storedAs(evictionSummary, pass?.summary ?? null);

/** Whether a threshold is met within the hour, or already. */
export const isSoon = (metMs: number | null, nowMs: number): boolean => metMs !== null && metMs - nowMs <= SOON_MS;

/** Whether an observation is too old for a forecast. */
export const isOld = ({ observedAtMs }: Pick<Headroom, "observedAtMs">, nowMs: number): boolean =>
  nowMs - observedAtMs > SILENT_MS;

function headroomOf(
  summary: EvictionSummary | null,
  decidedAtMs: number,
  nowMs: number,
): Pick<FleetNode, "headroom" | "firstMetMs"> {
  const all = (summary?.thresholds ?? []).map((one): Headroom => {
    const { signal, value, graceMs, distance, capacity, belowInMs } = one;
    const observedAtMs = Math.min(one.observedAtMs ?? decidedAtMs, decidedAtMs);
    const metAtMs = belowInMs === null || belowInMs > FORECAST_MS ? null : observedAtMs + belowInMs;
    return {
      signal,
      threshold: value,
      type: graceMs === 0 ? "hard" : "soft",
      distance,
      ratio: capacity === null || capacity <= 0 ? null : distance / capacity,
      observedAtMs,
      metAtMs,
      soonMs: distance < 0 ? 0 : isOld({ observedAtMs }, nowMs) ? null : metAtMs,
    };
  });
  all.sort((a, b) => (a.soonMs ?? NEVER) - (b.soonMs ?? NEVER) || (a.ratio ?? 1) - (b.ratio ?? 1));
  return { headroom: all, firstMetMs: all[0]?.soonMs ?? null };
}
/** The next threshold of a signal whose threshold is met: the one with the next forecast, such as the hard one behind a soft one. */
export const nextThreshold = (
  all: readonly Headroom[],
  { signal, distance }: Headroom,
): (Headroom & { readonly soonMs: number }) | undefined =>
  distance >= 0
    ? undefined
    : all.find((one): one is Headroom & { soonMs: number } => one.signal === signal && (one.soonMs ?? 0) > 0);

/** Later than any time. */
const NEVER = Number.MAX_SAFE_INTEGER;

export const FLEET_VIEWS = ["all", "pressure", "refused", "evicted", "drift", "silent", "not-known"] as const;
export type FleetView = (typeof FLEET_VIEWS)[number];
export const IN_VIEW: { readonly [S in FleetView]: (node: FleetNode) => boolean } = {
  all: () => true,
  pressure: (node) => node.pressure > 0 && node.severity !== "gone",
  refused: (node) => refusedOf(node) > 0,
  evicted: (node) => evictedOf(node) > 0,
  drift: (node) => (node.drift ?? 0) > 0 && node.severity !== "gone",
  silent: (node) => node.silent,
  "not-known": (node) => node.pressureFrom === null && node.severity !== "gone",
};

/** The filter for nodes; an absent field matches all. */
export interface FleetFilter {
  /** A part of the name, in any case. */
  readonly name?: string;
  readonly namePrefix?: string;
  readonly selector?: readonly Requirement[];
  readonly zone?: string;
  /** A version such as `1.36` or `v1.36.3`: the node's own, or else that of its newest decision. `not-known` for nodes without one. */
  readonly kubelet?: string;
  /** The verdict of the newest decision, of `kind` if given. */
  readonly verdict?: Verdict;
  readonly kind?: Kind;
  readonly condition?: PressureCondition | "any" | "none" | "not-known";
  /** A kubelet's reason: of pods refused since the start of the count, or of a newest decision. */
  readonly reason?: string;
  readonly show?: FleetView;
}

/** The form of a version to filter nodes by. */
export const ASKED_VERSION = /^v?[0-9]+[.][0-9]+|^not-known$/;
export const NO_ASKED_VERSION = "must be a version such as 1.36 or v1.36.3, or not-known";
const VERSION_NOT_KNOWN = "not-known";

const isOfVersion = (wanted: string, { kubelet, kubeletVersion }: FleetNode): boolean => {
  const version = wanted.replace(/^v/, "");
  const isReported = kubeletVersion !== null && kubeletVersion !== "";
  if (!isReported) return version === VERSION_NOT_KNOWN || kubelet === version;
  const own = kubeletVersion.replace(/^v/, "");
  return own === version || (own.startsWith(version) && /^[.+-]/.test(own.slice(version.length)));
};

/** The versions to filter by: the known ones and those of nodes, oldest first, and `not-known` if a node has none. */
export function versionsAmong(nodes: readonly FleetNode[]): readonly string[] {
  const own = new Set(nodes.map(({ kubeletVersion }) => minorOf(kubeletVersion ?? "")));
  const minors = new Set([...VERSIONS.map(minorOf), ...own].filter((minor) => minor !== null));
  const versions = [...minors].sort((a, b) => a - b).map((minor) => `1.${minor}`);
  return own.has(null) ? [...versions, VERSION_NOT_KNOWN] : versions;
}

function hasVerdict({ latest }: FleetNode, verdict: Verdict | undefined, kind: Kind | undefined): boolean {
  const of = kind === undefined ? Object.values(latest) : [latest[kind]];
  return of.some((row) => row !== undefined && (verdict === undefined || row.verdict === verdict));
}

/** The nodes that match a filter, in the given order. */
export function filtered(nodes: readonly FleetNode[], filter: FleetFilter): readonly FleetNode[] {
  const { name = "", namePrefix = "", selector = [], zone, kubelet, verdict, kind, condition, reason } = filter;
  const { show = "all" } = filter;
  const part = name.toLowerCase();
  return nodes.filter(
    (node) =>
      node.name.toLowerCase().includes(part) &&
      node.name.startsWith(namePrefix) &&
      (selector.length === 0 || (node.labels !== null && selects(selector, node.labels))) &&
      (zone === undefined || node.zone === zone) &&
      (kubelet === undefined || isOfVersion(kubelet, node)) &&
      ((verdict === undefined && kind === undefined) || hasVerdict(node, verdict, kind)) &&
      (condition === undefined || hasCondition(node, condition)) &&
      (reason === undefined || reasonsOf(node).has(reason)) &&
      IN_VIEW[show](node),
  );
}
const reasonsOf = ({ refusals, kubeletRefusals, latest }: FleetNode): ReadonlySet<string | null> =>
  new Set([
    ...[...refusals, ...kubeletRefusals].map(({ reason }) => reason),
    ...Object.values(latest).map(({ reason }) => reason),
  ]);

/** The reasons to filter nodes by. */
export const reasonsAmong = (nodes: readonly FleetNode[]): readonly string[] =>
  words(nodes.flatMap((node) => [...reasonsOf(node)]));
export const zonesAmong = (nodes: readonly FleetNode[]): readonly string[] => words(nodes.map(({ zone }) => zone));
const words = (all: readonly (string | null)[]): readonly string[] =>
  [...new Set(all.filter((word) => word !== null && word !== ""))].sort() as readonly string[];

function hasCondition({ pressureFrom, conditions }: FleetNode, wanted: NonNullable<FleetFilter["condition"]>): boolean {
  if (wanted === "not-known") return pressureFrom === null;
  if (wanted === "none") return pressureFrom !== null && conditions.length === 0;
  return wanted === "any" ? conditions.length > 0 : conditions.includes(wanted);
}

const VERSIONS: readonly string[] = PROFILES.map(({ version }) => version);

/** The numbers to sort by, one after the other; ties are sorted by name. Null if unknown, which is last in both directions. */
const KEYS = {
  name: () => [],
  severity: (node) => [
    ...[SEVERITIES.indexOf(node.severity), -(node.firstMetMs ?? NEVER)],
    ...[-(node.headroom[0]?.ratio ?? 1), refusedOf(node)],
  ],
  headroom: ({ headroom: [first], firstMetMs }) =>
    first === undefined ? [null, null] : [firstMetMs ?? NEVER, first.ratio],
  lastDecision: (node) => [node.lastDecisionMs],
  kubelet: (node) => [node.kubelet === "" ? null : VERSIONS.indexOf(node.kubelet)],
  pressure: (node) => [node.pressureFrom === null ? null : node.pressure],
  refused: (node) => [refusedOf(node)],
  evicted: (node) => [evictedOf(node)],
  drift: (node) => [node.drift],
  decisions: (node) => [node.decisions],
  seen: (node) => [node.lastSeenMs],
} as const satisfies Readonly<Record<string, (node: FleetNode) => readonly (number | null)[]>>;
export type FleetSort = keyof typeof KEYS;
export const FLEET_SORTS = Object.keys(KEYS) as readonly FleetSort[];

export interface FleetOrder {
  readonly sort: FleetSort;
  readonly order: "asc" | "desc";
}
/** The default direction: names from a to z, headroom from the least, everything else from the most. */
export const usualOrder = (sort: FleetSort): FleetOrder["order"] =>
  sort === "name" || sort === "headroom" ? "asc" : "desc";

/** A node's position in an order, which ends a page of a list. */
export type FleetCursor = readonly [...keys: readonly (number | null)[], name: string];
export const placeOf = (node: FleetNode, { sort }: FleetOrder): FleetCursor => [...KEYS[sort](node), node.name];

/** The lengths of positions other than one number and the name. */
const LENGTHS: { readonly [S in FleetSort]?: number } = { name: 1, severity: 5, headroom: 3 };
/** Whether an outside value has the form of a position in this order. */
export function isCursor(value: unknown, { sort }: FleetOrder): value is FleetCursor {
  if (!Array.isArray(value) || value.length !== (LENGTHS[sort] ?? 2)) return false;
  const [name, ...keys] = value.toReversed();
  return typeof name === "string" && keys.every((key) => key === null || Number.isFinite(key));
}

/** A total order: unknown values come last, and names decide ties. */
export function comparePlaces(a: FleetCursor, b: FleetCursor, { sort, order }: FleetOrder): number {
  const sign = order === "asc" ? 1 : -1;
  const last = a.length - 1;
  for (let i = 0; i < last; i++) {
    const [x, y] = [a[i] as number | null, b[i] as number | null];
    if (x === y) continue;
    if (x === null || y === null) return x === null ? 1 : -1;
    return sign * (x - y);
  }
  const [x, y] = [a[last] as string, b[last] as string];
  return x === y ? 0 : (sort === "name" ? sign : 1) * (x < y ? -1 : 1);
}

/** The nodes in an order. */
export function ordered(nodes: readonly FleetNode[], by: FleetOrder): readonly FleetNode[] {
  const placed = nodes.map((node) => ({ node, place: placeOf(node, by) }));
  return placed.sort((a, b) => comparePlaces(a.place, b.place, by)).map(({ node }) => node);
}
