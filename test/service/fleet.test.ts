import { expect, test } from "vitest";
import {
  comparePlaces,
  FLEET_SORTS,
  type FleetFilter,
  filtered,
  fleetNode,
  isPlace,
  ordered,
  placeOf,
  SILENT_MS,
} from "../../api/service/fleet.ts";
import { fleetMetrics } from "../../api/service/fleet-metrics.ts";
import { parseLabelSelector } from "../../api/service/label-selector.ts";
import type { FleetRow, LatestRow } from "../../db/rows.ts";

const NOW = 1_790_000_000_000;
const decided = (verdict: string, over: Partial<LatestRow> = {}): LatestRow => ({
  decisionId: "d",
  verdict,
  decidedAtMs: NOW,
  policyVersion: "kubelet-1.36+7",
  reason: null,
  summary: null,
  ...over,
});
type Threshold = readonly [
  signal: string,
  graceMs: number,
  distance: number,
  capacity: number | null,
  belowInMs: number | null,
];
const pass = (verdict: string, conditions: readonly string[], ...thresholds: readonly Threshold[]): LatestRow =>
  decided(verdict, {
    summary: JSON.stringify({
      conditions,
      thresholds: thresholds.map(([signal, graceMs, distance, capacity, belowInMs]) => ({
        ...{ signal, value: "1Gi", graceMs, distance, capacity, belowInMs },
      })),
    }),
  });
const row = (name: string, over: Partial<FleetRow> = {}): FleetRow => ({
  ...{ name, firstSeenMs: NOW, lastSeenMs: NOW, bootId: null, lastSnapshotId: null, lastSequence: null },
  ...{
    labels: null,
    kubeletVersion: null,
    decisions: 0,
    refused: 0,
    evicted: 0,
    latest: {},
    refusals: [],
    report: null,
  },
  ...over,
});
const nodesOf = (...rows: readonly FleetRow[]) => rows.map((each) => fleetNode(each, NOW));

const FLEET = nodesOf(
  row("a-well", {
    labels: '{"pool":"web","topology.kubernetes.io/zone":"z1"}',
    kubeletVersion: "v1.36.3",
    latest: {
      eviction: pass("calm", [], ["memory.available", 0, 500, 1000, null], ["nodefs.available", 0, 90, 1000, 60_000]),
    },
  }),
  row("a-refuses", {
    labels: '{"pool":"db"}',
    kubeletVersion: "v1.36.10-gke.1",
    refused: 4,
    refusals: [
      { reason: "OutOfcpu", count: 3 },
      { reason: "NodeAffinity", count: 1 },
    ],
    latest: { admission: decided("refused", { reason: "OutOfcpu", policyVersion: "kubelet-1.36+7" }) },
  }),
  row("b-silent", { lastSeenMs: NOW - SILENT_MS - 1, kubeletVersion: "v1.35.4" }),
  row("b-tight", {
    latest: { eviction: pass("under-pressure", ["DiskPressure"], ["nodefs.inodesFree", 0, -5, 1000, 0]) },
  }),
  row("b-evicts", {
    latest: { eviction: pass("evicts", ["MemoryPressure"], ["memory.available", 30_000, -100, 1000, 0]) },
    refused: 1,
    refusals: [{ reason: "Evicted", count: 1 }],
  }),
);
const names = (filter: FleetFilter): string[] => filtered(FLEET, filter).map(({ name }) => name);

test("each filter lets through what it names, and several what meets all of them", () => {
  const selector = (text: string): FleetFilter => {
    const parsed = parseLabelSelector(text);
    return parsed.ok ? { selector: parsed.value } : {};
  };
  expect(names({})).toHaveLength(5);
  expect(names({ name: "WELL" })).toEqual(["a-well"]);
  expect(names({ namePrefix: "b-" })).toEqual(["b-silent", "b-tight", "b-evicts"]);
  expect(names({ namePrefix: "-" })).toEqual([]);
  expect(names(selector("pool"))).toEqual(["a-well", "a-refuses"]);
  // of nodes without a snapshot nobody knows
  expect(names(selector("pool!=db"))).toEqual(["a-well"]);
  expect(names({ zone: "z1" })).toEqual(["a-well"]);
  expect(names({ kubelet: "1.36" })).toEqual(["a-well", "a-refuses", "b-tight", "b-evicts"]);
  expect(names({ kubelet: "v1.36.3" })).toEqual(["a-well"]);
  expect(names({ kubelet: "1.36.1" })).toEqual([]);
  expect(names({ kubelet: "1.36.10" })).toEqual(["a-refuses"]);
  expect(names({ kubelet: "1.35" })).toEqual(["b-silent"]);
  expect(names({ verdict: "refused" })).toEqual(["a-refuses"]);
  expect(names({ verdict: "refused", kind: "eviction" })).toEqual([]);
  expect(names({ kind: "eviction" })).toEqual(["a-well", "b-tight", "b-evicts"]);
  expect(names({ condition: "any" })).toEqual(["b-tight", "b-evicts"]);
  expect(names({ condition: "none" })).toEqual(["a-well", "a-refuses", "b-silent"]);
  expect(names({ condition: "MemoryPressure" })).toEqual(["b-evicts"]);
  expect(names({ show: "refused", condition: "any" })).toEqual(["b-evicts"]);
});

test("the worst come first by severity, what is not known last in any direction", () => {
  const by = (sort: (typeof FLEET_SORTS)[number], order: "asc" | "desc") =>
    ordered(FLEET, { sort, order }).map(({ name }) => name);
  expect(by("severity", "desc")).toEqual(["b-evicts", "b-tight", "b-silent", "a-refuses", "a-well"]);
  expect(FLEET.map(({ severity }) => severity)).toEqual(["ok", "refuses", "silent", "under-pressure", "evicts"]);
  expect(by("headroom", "asc")).toEqual(["b-evicts", "b-tight", "a-well", "a-refuses", "b-silent"]);
  expect(by("headroom", "desc")).toEqual(["a-well", "b-tight", "b-evicts", "a-refuses", "b-silent"]);
  expect(by("lastDecision", "asc").at(-1)).toBe("b-silent");
  expect(FLEET[0]?.headroom.map(({ signal, ratio }) => [signal, ratio])).toEqual([
    ["nodefs.available", 0.09],
    ["memory.available", 0.5],
  ]);
});

test("pages that end anywhere go on with what follows, in every order, also when that node is gone", () => {
  for (const sort of FLEET_SORTS)
    for (const order of ["asc", "desc"] as const) {
      const by = { sort, order };
      const all = ordered(FLEET, by);
      for (const [i, last] of all.entries()) {
        const place: unknown = JSON.parse(JSON.stringify(placeOf(last, by)));
        if (!isPlace(place, by)) throw new Error(`${sort}: ${JSON.stringify(place)}`);
        const rest = all.filter((node) => node !== last && comparePlaces(placeOf(node, by), place, by) > 0);
        expect(rest, `${sort} ${order}`).toEqual(all.slice(i + 1));
      }
    }
  for (const wrong of [null, {}, [], [1], [1, 2, "a"], ["1", "a"], ["a", 1], [Number.NaN, "a"]])
    expect(isPlace(wrong, { sort: "refused", order: "asc" }), JSON.stringify(wrong)).toBe(false);
});

test("damage of one node's summary or labels leaves the others, and the node without them", () => {
  const [node] = nodesOf(
    row("n", { labels: "{", latest: { eviction: decided("evicts", { summary: '{"conditions":[1]}' }) } }),
  );
  expect(node).toMatchObject({ labels: null, zone: null, conditions: [], headroom: [], severity: "evicts" });
});

const samples = (text: string): readonly string[] =>
  text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));

test("the worst nodes have series, the rest are counted, and all of them are in the sums", () => {
  const text = fleetMetrics(FLEET, NOW, 2);
  expect(text).toContain("# TYPE nodewise_nodes gauge\n");
  const found = samples(text);
  expect(found).toContain("nodewise_nodes_without_series 3");
  expect(found).toContain('nodewise_nodes{severity="silent"} 1');
  expect(found).toContain('nodewise_recent_refusals{reason="OutOfcpu"} 3');
  expect(found).toContain('nodewise_node_refusals{node="b-evicts",reason="Evicted"} 1');
  expect(found).toContain('nodewise_node_pressure{node="b-evicts",condition="MemoryPressure"} 1');
  expect(found).toContain('nodewise_node_pressure{node="b-evicts",condition="DiskPressure"} 0');
  expect(found).toContain(
    'nodewise_node_threshold_distance_bytes{node="b-evicts",signal="memory.available",type="soft"} -100',
  );
  // inodes are no bytes
  expect(found.filter((line) => line.includes("_bytes") && line.includes("b-tight"))).toEqual([]);
  expect(found).toContain(
    'nodewise_node_threshold_distance_ratio{node="b-tight",signal="nodefs.inodesFree",type="hard"} -0.005',
  );
  expect(new Set(text.match(/node="[^"]*"/g))).toEqual(new Set(['node="b-evicts"', 'node="b-tight"']));
  expect(samples(fleetMetrics(FLEET, NOW, 0)).filter((line) => line.includes('node="'))).toEqual([]);
});

test("the time to a threshold runs down with the clock, and an old pass forecasts nothing", () => {
  const seconds = (nowMs: number) =>
    samples(fleetMetrics(FLEET, nowMs, 5)).filter(
      (line) => /_seconds\{node="a-well"/.test(line) && line.includes("threshold"),
    );
  const line = 'nodewise_node_threshold_seconds{node="a-well",signal="nodefs.available",type="hard"}';
  expect(seconds(NOW)).toEqual([`${line} 60`]);
  expect(seconds(NOW + 45_000)).toEqual([`${line} 15`]);
  expect(seconds(NOW + 90_000)).toEqual([`${line} 0`]);
  expect(seconds(NOW + SILENT_MS + 1)).toEqual([]);
});

test("whatever nodes are called and refused for, the series are bounded and well formed", () => {
  const refusals = Array.from({ length: 500 }, (_, i) => ({ reason: `OutOfexample.com/r${i}`, count: 500 - i }));
  const name = 'a"b\\c\nd';
  const found = samples(fleetMetrics(nodesOf(row(name, { refused: 9, refusals })), NOW, 5));
  expect(found.filter((line) => line.startsWith("nodewise_node_refusals"))).toHaveLength(11);
  expect(found.filter((line) => line.startsWith("nodewise_recent_refusals"))).toHaveLength(11);
  const sum = refusals.slice(10).reduce((total, { count }) => total + count, 0);
  expect(found).toContain(`nodewise_node_refusals{node="a\\"b\\\\c\\nd",reason="other"} ${sum}`);
  for (const line of found)
    expect(line).toMatch(/^[a-z_]+(?:\{(?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+\})? -?[\d.e+-]+$/);
});
