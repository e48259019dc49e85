import type { RefusalCount } from "../../db/rows.ts";
import { PRESSURE_CONDITIONS } from "../model/eviction.ts";
import { quoted } from "../observe/plain-metrics.ts";
import { type FleetNode, type Headroom, ordered, SEVERITIES, SILENT_MS } from "./fleet.ts";

/** Nodes with series of their own, unless told otherwise: each has about 30. */
export const DEFAULT_METRICS_NODES = 100;
/** Reasons with a series of their own, for each node and for all together; names of resources are among them, and whoever asks names those. */
const MAX_REASONS = 10;
const OTHER_REASONS = "other";
/** Signals whose amounts are not bytes. */
const COUNTED_SIGNALS = /inodesFree$|^pid\./;

type Labels = Readonly<Record<string, string>>;
type Sample = readonly [value: number, labels: Labels];

function gauge(name: string, help: string, samples: readonly Sample[]): string {
  const lines = samples.map(([value, labels]) => {
    const texts = Object.entries(labels).map(([label, text]) => `${label}=${quoted(text)}`);
    return `${name}${texts.length === 0 ? "" : `{${texts.join(",")}}`} ${value}\n`;
  });
  return `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${lines.join("")}`;
}

/**
 * The nodes as gauges in Prometheus' text format: made of what the history keeps of each, nothing is decided. INVARIANT: the number
 * of series is bounded; beyond `limit` nodes those that stand worst have theirs, and a gauge says how many are left out. `nodes` are
 * counted since the hour before this one.
 */
export function fleetMetrics(nodes: readonly FleetNode[], nowMs: number, limit: number): string {
  const shown = ordered(nodes, { sort: "severity", order: "desc" }).slice(0, limit);
  const each = (samples: (node: FleetNode) => readonly Sample[]): readonly Sample[] => shown.flatMap(samples);
  const ofThresholds = (measured: (one: Headroom, node: FleetNode) => number | null): readonly Sample[] =>
    each((node) =>
      node.headroom.flatMap((one): Sample[] => {
        const value = measured(one, node);
        return value === null ? [] : [[value, { node: node.name, signal: one.signal, type: one.type }]];
      }),
    );
  return [
    gauge(
      "nodewise_nodes",
      "Nodes of the history by how they stand",
      SEVERITIES.map((severity) => [nodes.filter((node) => node.severity === severity).length, { severity }]),
    ),
    gauge(
      "nodewise_nodes_without_series",
      "Nodes beyond the most that have metrics of their own, the worst of which come first",
      [[nodes.length - shown.length, {}]],
    ),
    gauge(
      "nodewise_recent_refusals",
      "Refusals by reason, of all nodes, in this hour and the one before",
      reasonSamples(summed(nodes), {}),
    ),
    gauge(
      "nodewise_node_last_seen_timestamp_seconds",
      "When something was last heard of a node",
      each(({ name, lastSeenMs }) => [[lastSeenMs / 1000, { node: name }]]),
    ),
    gauge(
      "nodewise_node_pressure",
      "1: the condition is True as of the node's newest eviction pass",
      each(({ name, latest, conditions }) =>
        latest.eviction === undefined
          ? []
          : PRESSURE_CONDITIONS.map(
              (condition): Sample => [Number(conditions.includes(condition)), { node: name, condition }],
            ),
      ),
    ),
    gauge(
      "nodewise_node_threshold_distance_bytes",
      "Available less the eviction threshold, of signals in bytes; negative: so much is missing",
      ofThresholds(({ signal, distance }) => (COUNTED_SIGNALS.test(signal) ? null : distance)),
    ),
    gauge(
      "nodewise_node_threshold_distance_ratio",
      "Available less the eviction threshold, as a share of the capacity",
      ofThresholds(({ ratio }) => ratio),
    ),
    gauge(
      "nodewise_node_threshold_seconds",
      "Time until an eviction threshold is met by the forecast of a pass of the last 15 minutes; none where nothing falls",
      ofThresholds(({ metAtMs }, node) => secondsUntil(metAtMs, node, nowMs)),
    ),
    gauge(
      "nodewise_node_refusals",
      "Refusals by reason in this hour and the one before",
      each(({ name, refusals }) => reasonSamples(refusals, { node: name })),
    ),
  ].join("");
}

function secondsUntil(metAtMs: number | null, { latest }: FleetNode, nowMs: number): number | null {
  const isOld = nowMs - (latest.eviction?.decidedAtMs ?? 0) > SILENT_MS;
  return metAtMs === null || isOld ? null : Math.max(0, metAtMs - nowMs) / 1000;
}

/** The most frequent first. */
function summed(nodes: readonly FleetNode[]): readonly RefusalCount[] {
  const counts = new Map<string, number>();
  for (const { refusals } of nodes)
    for (const { reason, count } of refusals) counts.set(reason, (counts.get(reason) ?? 0) + count);
  return [...counts]
    .map(([reason, count]) => ({ reason, count }))
    .sort((a, b) => b.count - a.count || (a.reason < b.reason ? -1 : 1));
}

function reasonSamples(refusals: readonly RefusalCount[], labels: Labels): readonly Sample[] {
  const own = refusals.slice(0, MAX_REASONS).map(({ reason, count }): Sample => [count, { ...labels, reason }]);
  const others = refusals.slice(MAX_REASONS).reduce((sum, { count }) => sum + count, 0);
  return others === 0 ? own : [...own, [others, { ...labels, reason: OTHER_REASONS }]];
}
