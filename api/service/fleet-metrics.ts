import type { OutcomeTally, RefusalCount } from "../../db/rows.ts";
import { byText } from "../base/order.ts";
import { PRESSURE_CONDITIONS } from "../model/eviction.ts";
import { AGREEMENT_VERDICTS, OUTCOME_KINDS } from "../model/outcome.ts";
import { quoted } from "../observe/plain-metrics.ts";
import { type FleetNode, type Headroom, isOld, ordered, SEVERITIES } from "./fleet.ts";

/** The default number of nodes with series of their own; each has about 30. */
export const DEFAULT_METRICS_NODES = 100;
/**
 * The most reasons with their own series, per node and in total, for decisions and for kubelets. Reasons include resource names,
 * which callers choose.
 */
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

interface NodeGauge {
  readonly name: string;
  readonly help: string;
  samplesOf(node: FleetNode, nowMs: number): readonly Sample[];
}

const ofThresholds =
  (measured: (one: Headroom, nowMs: number) => number | null): NodeGauge["samplesOf"] =>
  (node, nowMs) =>
    node.headroom.flatMap((one): Sample[] => {
      const value = measured(one, nowMs);
      return value === null ? [] : [[value, { node: node.name, signal: one.signal, type: one.type }]];
    });

const secondsUntil = (room: Headroom, nowMs: number): number | null =>
  room.metAtMs === null || isOld(room, nowMs) ? null : Math.max(0, room.metAtMs - nowMs) / 1000;

/** The gauges of each node. */
const NODE_GAUGES: readonly NodeGauge[] = [
  {
    name: "nodewise_node_last_seen_timestamp_seconds",
    help: "When data of a node was last received",
    samplesOf: ({ name, lastSeenMs }) => [[lastSeenMs / 1000, { node: name }]],
  },
  {
    name: "nodewise_node_pressure",
    help: "1: the condition is True as of the node's newest eviction pass; without one, by the node's status",
    samplesOf: ({ name, pressureFrom, conditions }) =>
      pressureFrom === null
        ? []
        : PRESSURE_CONDITIONS.map((condition) => [Number(conditions.includes(condition)), { node: name, condition }]),
  },
  {
    name: "nodewise_node_threshold_distance_bytes",
    help: "Available less the eviction threshold, of signals in bytes; negative: so much is missing",
    samplesOf: ofThresholds(({ signal, distance }) => (COUNTED_SIGNALS.test(signal) ? null : distance)),
  },
  {
    name: "nodewise_node_threshold_distance_ratio",
    help: "Available less the eviction threshold, as a share of the capacity",
    samplesOf: ofThresholds(({ ratio }) => ratio),
  },
  {
    name: "nodewise_node_threshold_seconds",
    help: "Time until an eviction threshold is met, by the forecast of a pass of the last 15 minutes; absent: not within 6 hours",
    samplesOf: ofThresholds(secondsUntil),
  },
  {
    name: "nodewise_node_refusals",
    help: "Refusals by reason in this hour and the one before, by decisions (nodewise) and by kubelets",
    samplesOf: (node) => refusalSamples([node], { node: node.name }),
  },
  {
    name: "nodewise_node_evicted_pods",
    help: "Pods that the node's kubelet evicted in this hour and the one before",
    samplesOf: ({ name, kubeletEvicted }) => (kubeletEvicted === 0 ? [] : [[kubeletEvicted, { node: name }]]),
  },
];

/**
 * The nodes as gauges in Prometheus' text format, from stored data only; no decision is made. INVARIANT: the number of series is
 * bounded: removed nodes have none, above `limit` nodes only the worst have series, and a gauge counts the rest. `nodes` and
 * `outcomes` are counted since the start of the previous hour.
 */
export function fleetMetrics(
  nodes: readonly FleetNode[],
  outcomes: readonly OutcomeTally[],
  nowMs: number,
  limit: number,
): string {
  const here = nodes.filter(({ severity }) => severity !== "gone");
  const shown = ordered(here, { sort: "severity", order: "desc" }).slice(0, limit);
  const standing = SEVERITIES.map(
    (severity): Sample => [nodes.filter((node) => node.severity === severity).length, { severity }],
  );
  return [
    gauge("nodewise_nodes", "Nodes of the history by severity", standing),
    gauge("nodewise_nodes_without_series", "Nodes beyond the most that have metrics of their own", [
      [here.length - shown.length, {}],
    ]),
    gauge(
      "nodewise_recent_refusals",
      "Refusals of all nodes by reason, in this hour and the one before, by decisions (nodewise) and by kubelets",
      refusalSamples(nodes, {}),
    ),
    gauge(
      "nodewise_agreement_outcomes",
      "What kubelets did in this hour and the one before, by kind and how it compares with the decision",
      agreementSamples(outcomes),
    ),
    ...NODE_GAUGES.map(({ name, help, samplesOf }) =>
      gauge(
        name,
        help,
        shown.flatMap((node) => samplesOf(node, nowMs)),
      ),
    ),
  ].join("");
}

/** A sample for each kind and verdict, 0 included. */
const agreementSamples = (outcomes: readonly OutcomeTally[]): readonly Sample[] =>
  OUTCOME_KINDS.flatMap((kind) =>
    AGREEMENT_VERDICTS.map((verdict): Sample => {
      const own = outcomes.filter((one) => one.kind === kind && one.verdict === verdict);
      return [own.reduce((sum, { count }) => sum + count, 0), { kind, verdict }];
    }),
  );

/** Refusal samples; a pod may be refused by a decision and by its kubelet, so the two are separate and are never added up. */
const refusalSamples = (nodes: readonly FleetNode[], labels: Labels): readonly Sample[] => [
  ...reasonSamples(summed(nodes.map(({ refusals }) => refusals)), { ...labels, by: "nodewise" }),
  ...reasonSamples(summed(nodes.map(({ kubeletRefusals }) => kubeletRefusals)), { ...labels, by: "kubelet" }),
];

/** The sums, most frequent first. */
function summed(all: readonly (readonly RefusalCount[])[]): readonly RefusalCount[] {
  const counts = new Map<string, number>();
  for (const { reason, count } of all.flat()) counts.set(reason, (counts.get(reason) ?? 0) + count);
  return [...counts]
    .map(([reason, count]) => ({ reason, count }))
    .sort((a, b) => b.count - a.count || byText(a.reason, b.reason));
}

function reasonSamples(refusals: readonly RefusalCount[], labels: Labels): readonly Sample[] {
  const own = refusals.slice(0, MAX_REASONS).map(({ reason, count }): Sample => [count, { ...labels, reason }]);
  const others = refusals.slice(MAX_REASONS).reduce((sum, { count }) => sum + count, 0);
  return others === 0 ? own : [...own, [others, { ...labels, reason: OTHER_REASONS }]];
}
