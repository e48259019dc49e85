import { expect, test } from "vitest";
import {
  comparePlaces,
  FLEET_SORTS,
  type FleetFilter,
  filtered,
  fleetNode,
  isCursor,
  nextThreshold,
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
    conditions: null,
    deletedMs: null,
    decisions: 0,
    refused: 0,
    evicted: 0,
    latest: {},
    refusals: [],
    kubeletReported: false,
    kubeletRefused: 0,
    kubeletRefusals: [],
    kubeletEvicted: 0,
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

test("each fleet filter keeps the nodes that it names, and several combine", () => {
  const selector = (text: string): FleetFilter => {
    const parsed = parseLabelSelector(text);
    return parsed.ok ? { selector: parsed.value } : {};
  };
  expect(names({})).toHaveLength(5);
  expect(names({ name: "WELL" })).toEqual(["a-well"]);
  expect(names({ namePrefix: "b-" })).toEqual(["b-silent", "b-tight", "b-evicts"]);
  expect(names({ namePrefix: "-" })).toEqual([]);
  expect(names(selector("pool"))).toEqual(["a-well", "a-refuses"]);
  // the labels of nodes without a snapshot are unknown, so these nodes do not match
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
  expect(names({ condition: "none" })).toEqual(["a-well"]);
  expect(names({ condition: "not-known" })).toEqual(["a-refuses", "b-silent"]);
  expect(names({ condition: "MemoryPressure" })).toEqual(["b-evicts"]);
  expect(names({ show: "refused", condition: "any" })).toEqual(["b-evicts"]);
});

test("a silent node has severity silent regardless of its decisions, and severity gone after six hours", () => {
  const HOUR = 3_600_000;
  const eviction = (decidedAtMs: number) => ({ eviction: { ...pass("evicts", ["MemoryPressure"]), decidedAtMs } });
  const [silent, gone, here] = [HOUR, 7 * HOUR, 0].map((ago) =>
    fleetNode(row(`seen-${ago}`, { lastSeenMs: NOW - ago, latest: eviction(NOW - ago) }), NOW),
  );
  const nodes = [gone, silent, here].filter((node) => node !== undefined);
  expect(nodes.map(({ severity }) => severity)).toEqual(["gone", "silent", "evicts"]);
  expect(ordered(nodes, { sort: "severity", order: "desc" }).map(({ severity }) => severity)).toEqual([
    "evicts",
    "silent",
    "gone",
  ]);
  const text = fleetMetrics(nodes, [], NOW, 2);
  expect(text.match(/^nodewise_node_last_seen_timestamp_seconds\{.*\}/gm)).toEqual([
    'nodewise_node_last_seen_timestamp_seconds{node="seen-0"}',
    `nodewise_node_last_seen_timestamp_seconds{node="seen-${HOUR}"}`,
  ]);
  expect(text).toContain("nodewise_nodes_without_series 0\n");
});

test("sorting puts the worst nodes first, and unknown values last in both directions", () => {
  const by = (sort: (typeof FLEET_SORTS)[number], order: "asc" | "desc") =>
    ordered(FLEET, { sort, order }).map(({ name }) => name);
  expect(by("severity", "desc")).toEqual(["b-evicts", "b-tight", "a-well", "b-silent", "a-refuses"]);
  expect(FLEET.map(({ severity }) => severity)).toEqual([
    ...["pressure-soon", "refuses", "silent", "under-pressure", "evicts"],
  ]);
  expect(by("headroom", "asc")).toEqual(["b-evicts", "b-tight", "a-well", "a-refuses", "b-silent"]);
  expect(by("headroom", "desc")).toEqual(["a-well", "b-tight", "b-evicts", "a-refuses", "b-silent"]);
  expect(by("lastDecision", "asc").at(-1)).toBe("b-silent");
  expect(FLEET[0]?.headroom.map(({ signal, ratio }) => [signal, ratio])).toEqual([
    ["nodefs.available", 0.09],
    ["memory.available", 0.5],
  ]);
});

test("a node deleted from its cluster has severity gone immediately, until there is later news of it", () => {
  const latest = { eviction: pass("evicts", ["MemoryPressure"]) };
  const seen = { lastSeenMs: NOW - 2 * SILENT_MS, latest };
  const [deleted, back] = [NOW - 2 * SILENT_MS, NOW - 3 * SILENT_MS].map((deletedMs) =>
    fleetNode(row(`deleted-${deletedMs}`, { ...seen, deletedMs }), NOW),
  );
  expect(deleted).toMatchObject({ severity: "gone", silent: false, deletedMs: NOW - 2 * SILENT_MS });
  expect(back).toMatchObject({ severity: "silent", silent: true, deletedMs: null });
  const nodes = [deleted, back].filter((node) => node !== undefined);
  const shown = (show: NonNullable<FleetFilter["show"]>) => filtered(nodes, { show }).map(({ severity }) => severity);
  expect([shown("silent"), shown("pressure"), shown("all")]).toEqual([["silent"], ["silent"], ["gone", "silent"]]);
  expect(fleetMetrics(nodes, [], NOW, 2).match(/node="deleted-\d+"/g)).toContain(`node="${back?.name}"`);
  expect(fleetMetrics(nodes, [], NOW, 2)).not.toContain(`node="${deleted?.name}"`);
});

test("paging continues after any node in every order, even if that node was removed", () => {
  for (const sort of FLEET_SORTS)
    for (const order of ["asc", "desc"] as const) {
      const by = { sort, order };
      const all = ordered(FLEET, by);
      for (const [i, last] of all.entries()) {
        const place: unknown = JSON.parse(JSON.stringify(placeOf(last, by)));
        if (!isCursor(place, by)) throw new Error(`${sort}: ${JSON.stringify(place)}`);
        const rest = all.filter((node) => node !== last && comparePlaces(placeOf(node, by), place, by) > 0);
        expect(rest, `${sort} ${order}`).toEqual(all.slice(i + 1));
      }
    }
  for (const wrong of [null, {}, [], [1], [1, 2, "a"], ["1", "a"], ["a", 1], [Number.NaN, "a"]])
    expect(isCursor(wrong, { sort: "refused", order: "asc" }), JSON.stringify(wrong)).toBe(false);
});

test("kubelet refusals and evictions count for a node's severity, and a pod in both counts once", () => {
  const [refused, evicted, both, well] = nodesOf(
    row("refused", { kubeletRefused: 2, kubeletRefusals: [{ reason: "OutOfcpu", count: 2 }], conditions: "[]" }),
    row("evicted", { kubeletEvicted: 1, kubeletRefused: 5, conditions: "[]" }),
    row("both", { refused: 3, kubeletRefused: 3, conditions: "[]" }),
    row("well", { conditions: "[]" }),
  );
  if (refused === undefined || evicted === undefined || both === undefined || well === undefined) throw new Error();
  const nodes = [refused, evicted, both, well];
  expect(nodes.map(({ severity }) => severity)).toEqual(["refuses", "evicted", "refuses", "ok"]);
  const shown = (show: "refused" | "evicted") => filtered(nodes, { show }).map(({ name }) => name);
  expect(shown("refused")).toEqual(["refused", "evicted", "both"]);
  expect(shown("evicted")).toEqual(["evicted"]);
  expect(placeOf(both, { sort: "refused", order: "desc" })).toEqual([3, "both"]);
  const worst = ordered(nodes, { sort: "severity", order: "desc" }).map(({ name }) => name);
  expect(worst).toEqual(["evicted", "both", "refused", "well"]);
});

test("a forecast counts from when its signal was observed, not from when the pass was recorded", () => {
  const falls = { signal: "memory.available", value: "1Gi", graceMs: 0, distance: 600, capacity: 1000 };
  const nodeOf = (belowInMs: number, observedAtMs?: number | null) => {
    const thresholds = [{ ...falls, belowInMs, ...(observedAtMs === undefined ? {} : { observedAtMs }) }];
    const eviction = decided("calm", { summary: JSON.stringify({ conditions: [], thresholds }) });
    return fleetNode(row("n", { latest: { eviction } }), NOW);
  };
  const MINUTE = 60_000;
  const met = (node: ReturnType<typeof nodeOf>) => [node.headroom[0]?.metAtMs, node.firstMetMs, node.severity];
  expect(met(nodeOf(5 * MINUTE, NOW - 4 * MINUTE))).toEqual([NOW + MINUTE, NOW + MINUTE, "pressure-soon"]);
  // a slow decrease has a forecast and no warning; a linear forecast is not made beyond six hours
  expect(met(nodeOf(180 * MINUTE, NOW - MINUTE))).toEqual([NOW + 179 * MINUTE, NOW + 179 * MINUTE, "ok"]);
  expect(met(nodeOf(360 * MINUTE, NOW))).toEqual([NOW + 360 * MINUTE, NOW + 360 * MINUTE, "ok"]);
  expect(met(nodeOf(361 * MINUTE, NOW))).toEqual([null, null, "ok"]);
  // a snapshot that was posted an hour after its measurement: the forecast time has passed, so there is no warning
  const old = nodeOf(5 * MINUTE, NOW - 60 * MINUTE);
  expect(met(old)).toEqual([NOW - 55 * MINUTE, null, "ok"]);
  const text = fleetMetrics([old, nodeOf(5 * MINUTE, NOW - MINUTE)], [], NOW, 9);
  expect(text.match(/^nodewise_node_threshold_seconds{.*$/gm)).toEqual([
    'nodewise_node_threshold_seconds{node="n",signal="memory.available",type="hard"} 240',
  ]);
  // the clock was ahead, the stats had no time, or an earlier version stored none
  for (const unknown of [NOW + 60 * MINUTE, null, undefined])
    expect(met(nodeOf(5 * MINUTE, unknown))[0]).toBe(NOW + 5 * MINUTE);
});

test("without a recent eviction pass the node's conditions count, and without both pressure is unknown", () => {
  const calm = (ago: number) => ({ eviction: { ...pass("calm", []), decidedAtMs: NOW - ago } });
  const how = (over: Partial<FleetRow>) => {
    const [{ severity, pressureFrom, conditions } = { severity: "", pressureFrom: "", conditions: [] }] = nodesOf(
      row("n", over),
    );
    return [severity, pressureFrom, ...conditions];
  };
  const under = '["MemoryPressure","PIDPressure"]';
  expect(how({})).toEqual(["not-known", null]);
  expect(how({ conditions: "nonsense" })).toEqual(["not-known", null]);
  expect(how({ conditions: "[]" })).toEqual(["ok", "node-status"]);
  expect(how({ conditions: under })).toEqual(["under-pressure", "node-status", "MemoryPressure", "PIDPressure"]);
  expect(how({ conditions: under, latest: calm(SILENT_MS) })).toEqual(["ok", "eviction-pass"]);
  expect(how({ conditions: under, latest: calm(SILENT_MS + 1) })[0]).toBe("under-pressure");
  expect(how({ latest: calm(SILENT_MS + 1) })).toEqual(["not-known", null]);
  expect(how({ latest: calm(SILENT_MS + 1), lastSeenMs: NOW - 1 })).toEqual(["ok", "eviction-pass"]);
  expect(how({ refused: 1 })).toEqual(["refuses", null]);
  const own = nodesOf(row("own", { conditions: under }), row("other", { conditions: "[]" }), row("unknown"));
  const found = (condition: FleetFilter["condition"] & string) => filtered(own, { condition }).map(({ name }) => name);
  expect(["any", "none", "not-known", "PIDPressure"].map((one) => found(one as "any"))).toEqual([
    ["own"],
    ["other"],
    ["unknown"],
    ["own"],
  ]);
  const metrics = samples(fleetMetrics(own, [], NOW, 5)).filter((line) => line.startsWith("nodewise_node_pressure"));
  expect(metrics.filter((line) => line.endsWith(" 1"))).toEqual([
    'nodewise_node_pressure{node="own",condition="MemoryPressure"} 1',
    'nodewise_node_pressure{node="own",condition="PIDPressure"} 1',
  ]);
  expect(metrics).toHaveLength(6);
});

test("metrics separate kubelet refusals and evictions from decisions, and have the tally of outcomes", () => {
  const nodes = nodesOf(
    row("a", { refused: 4, refusals: [{ reason: "OutOfcpu", count: 4 }] }),
    row("b", { kubeletRefused: 3, kubeletRefusals: [{ reason: "OutOfcpu", count: 3 }], kubeletEvicted: 2 }),
    row("c", { kubeletRefused: 1, kubeletRefusals: [{ reason: "OutOfcpu", count: 1 }] }),
  );
  const tally = [
    { fromMs: 0, kind: "admission", verdict: "differs", count: 2 },
    { fromMs: 0, kind: "of another version", verdict: "differs", count: 9 },
  ];
  const found = samples(fleetMetrics(nodes, tally, NOW, 5));
  const of = (name: string) => found.filter((line) => line.startsWith(name));
  expect(of("nodewise_recent_refusals")).toEqual([
    'nodewise_recent_refusals{by="nodewise",reason="OutOfcpu"} 4',
    'nodewise_recent_refusals{by="kubelet",reason="OutOfcpu"} 4',
  ]);
  expect(of("nodewise_node_refusals")).toContain('nodewise_node_refusals{node="b",by="kubelet",reason="OutOfcpu"} 3');
  expect(of("nodewise_node_evicted_pods")).toEqual(['nodewise_node_evicted_pods{node="b"} 2']);
  expect(of("nodewise_agreement_outcomes")).toHaveLength(24);
  expect(of("nodewise_agreement_outcomes").filter((line) => !line.endsWith(" 0"))).toEqual([
    'nodewise_agreement_outcomes{kind="admission",verdict="differs"} 2',
  ]);
});

test("a damaged summary or labels leave the other nodes, and the rest of that node", () => {
  const [node] = nodesOf(
    row("n", { labels: "{", latest: { eviction: decided("evicts", { summary: '{"conditions":[1]}' }) } }),
  );
  expect(node).toMatchObject({ labels: null, zone: null, conditions: [], headroom: [], severity: "evicts" });
});

test("the next threshold of a signal is shown behind a met one, if it will be met soon", () => {
  const next = (...thresholds: readonly Threshold[]) => {
    const { headroom } = fleetNode(row("n", { latest: { eviction: pass("under-pressure", [], ...thresholds) } }), NOW);
    const [first] = headroom;
    return first === undefined ? undefined : nextThreshold(headroom, first);
  };
  const soft = ["memory.available", 30_000, -5, 1000, 0] as const;
  const hard = ["memory.available", 0, 200, 1000, 120_000] as const;
  expect(next(soft, hard)).toMatchObject({ type: "hard", metAtMs: NOW + 120_000 });
  expect(next(soft, ["memory.available", 0, 200, 1000, null])).toBeUndefined();
  expect(next(soft, ["nodefs.available", 0, 200, 1000, 120_000])).toBeUndefined();
  expect(next(["memory.available", 30_000, 5, 1000, 60_000], hard)).toBeUndefined();
});

test("sorting by headroom puts forecast times first, and ignores distant and old forecasts", () => {
  const HOUR = 3_600_000;
  const missing = ["pid.available", 0, -1, 1000, 0] as const;
  const near = ["imagefs.available", 0, 10, 1000, null] as const;
  const falls = ["memory.available", 0, 600, 1000, 10 * 60_000] as const;
  const fallsFirst = ["nodefs.available", 0, 800, 1000, 5 * 60_000] as const;
  const fallsSlowly = ["nodefs.inodesFree", 0, 20, 1000, 30 * HOUR] as const;
  const shown = (name: string, decidedAtMs: number, ...thresholds: readonly Threshold[]) =>
    fleetNode(row(name, { latest: { eviction: { ...pass("calm", [], ...thresholds), decidedAtMs } } }), NOW);
  const signals = (node: (typeof FLEET)[number]) => node.headroom.map(({ signal }) => signal);
  const all = shown("all", NOW, near, fallsSlowly, falls, fallsFirst, missing);
  expect(signals(all)).toEqual([missing, fallsFirst, falls, near, fallsSlowly].map(([signal]) => signal));
  const nodes = [
    shown("near", NOW, near),
    shown("falls", NOW, near, falls),
    shown("first", NOW, fallsFirst),
    shown("slowly", NOW, fallsSlowly),
    shown("old", NOW - SILENT_MS - 1, falls, fallsSlowly),
    shown("met", NOW, falls, missing),
    shown("no-capacity", NOW, ["memory.available", 0, 5, null, null]),
    shown("none", NOW),
  ];
  expect(nodes.map(({ firstMetMs }) => firstMetMs && firstMetMs - NOW)).toEqual([
    ...[null, 600_000, 300_000, null, null, 0, null, null],
  ]);
  const byHeadroom = ["met", "first", "falls", "near", "old", "slowly", "no-capacity", "none"];
  expect(ordered(nodes, { sort: "headroom", order: "asc" }).map(({ name }) => name)).toEqual(byHeadroom);
  // a node that is forecast to meet a threshold is listed before the others, which are ordered by headroom
  const bySeverity = ordered(nodes, { sort: "severity", order: "desc" }).map(({ name, severity }) => [name, severity]);
  expect(bySeverity.slice(0, 3)).toEqual([
    ...[
      ["met", "pressure-soon"],
      ["first", "pressure-soon"],
      ["falls", "pressure-soon"],
    ],
  ]);
});

const samples = (text: string): readonly string[] =>
  text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));

test("the worst nodes have their own series, the others are counted, and sums include all", () => {
  const text = fleetMetrics(FLEET, [], NOW, 2);
  expect(text).toContain("# TYPE nodewise_nodes gauge\n");
  const found = samples(text);
  expect(found).toContain("nodewise_nodes_without_series 3");
  expect(found).toContain('nodewise_nodes{severity="silent"} 1');
  expect(found).toContain('nodewise_recent_refusals{by="nodewise",reason="OutOfcpu"} 3');
  expect(found).toContain('nodewise_node_refusals{node="b-evicts",by="nodewise",reason="Evicted"} 1');
  expect(found).toContain('nodewise_node_pressure{node="b-evicts",condition="MemoryPressure"} 1');
  expect(found).toContain('nodewise_node_pressure{node="b-evicts",condition="DiskPressure"} 0');
  expect(found).toContain(
    'nodewise_node_threshold_distance_bytes{node="b-evicts",signal="memory.available",type="soft"} -100',
  );
  // inodes are not exported as bytes
  expect(found.filter((line) => line.includes("_bytes") && line.includes("b-tight"))).toEqual([]);
  expect(found).toContain(
    'nodewise_node_threshold_distance_ratio{node="b-tight",signal="nodefs.inodesFree",type="hard"} -0.005',
  );
  expect(new Set(text.match(/node="[^"]*"/g))).toEqual(new Set(['node="b-evicts"', 'node="b-tight"']));
  expect(samples(fleetMetrics(FLEET, [], NOW, 0)).filter((line) => line.includes('node="'))).toEqual([]);
});

test("the time to a threshold decreases with the clock, and an old pass has none", () => {
  const seconds = (nowMs: number) =>
    samples(fleetMetrics(FLEET, [], nowMs, 5)).filter(
      (line) => /_seconds\{node="a-well"/.test(line) && line.includes("threshold"),
    );
  const line = 'nodewise_node_threshold_seconds{node="a-well",signal="nodefs.available",type="hard"}';
  expect(seconds(NOW)).toEqual([`${line} 60`]);
  expect(seconds(NOW + 45_000)).toEqual([`${line} 15`]);
  expect(seconds(NOW + 90_000)).toEqual([`${line} 0`]);
  expect(seconds(NOW + SILENT_MS + 1)).toEqual([]);
});

test("series are bounded and well formed, whatever the names of nodes and reasons", () => {
  const refusals = Array.from({ length: 500 }, (_, i) => ({ reason: `OutOfexample.com/r${i}`, count: 500 - i }));
  const name = 'a"b\\c\nd';
  const node = row(name, { refused: 9, refusals, kubeletRefused: 9, kubeletRefusals: refusals });
  const found = samples(fleetMetrics(nodesOf(node), [], NOW, 5));
  expect(found.filter((line) => line.startsWith("nodewise_node_refusals"))).toHaveLength(22);
  expect(found.filter((line) => line.startsWith("nodewise_recent_refusals"))).toHaveLength(22);
  const sum = refusals.slice(10).reduce((total, { count }) => total + count, 0);
  for (const by of ["nodewise", "kubelet"])
    expect(found).toContain(`nodewise_node_refusals{node="a\\"b\\\\c\\nd",by="${by}",reason="other"} ${sum}`);
  for (const line of found)
    expect(line).toMatch(/^[a-z_]+(?:\{(?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+\})? -?[\d.e+-]+$/);
});
