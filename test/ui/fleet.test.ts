import { expect, test } from "vitest";
import { PROFILES } from "../../api/profiles/index.ts";
import { type FleetFilter, type FleetOrder, filtered, fleetNode, ordered, SILENT_MS } from "../../api/service/fleet.ts";
import { hoursPicture } from "../../api/ui/fleet/hours-picture.ts";
import { fleetLink } from "../../api/ui/fleet/question.ts";
import type { FleetRow, LatestRow } from "../../db/rows.ts";
import { appOver } from "../api/serving.ts";
import { outcomeRow } from "../contract/store-outcomes.ts";
import { decisionRow, resultRow, snapshotRow, value } from "../contract/store-rows.ts";

const NOW = 1_790_000_000_000;
const row = (name: string, over: Partial<FleetRow> = {}): FleetRow => ({
  name,
  firstSeenMs: NOW,
  lastSeenMs: NOW,
  bootId: null,
  lastSnapshotId: null,
  lastSequence: null,
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
  ...over,
});
const made = (policyVersion: string, decidedAtMs = NOW): LatestRow => ({
  decisionId: "d",
  verdict: "decided",
  decidedAtMs,
  policyVersion,
  reason: null,
  summary: null,
});
const BY_NAME: FleetOrder = { sort: "name", order: "asc" };
const QUESTION = {
  q: "",
  labels: "",
  zone: "",
  show: "all",
  kubelet: "",
  reason: "",
  sort: "severity",
  order: "desc",
  hours: 24,
  page: 1,
} as const;

test("nodes are ordered by state or as requested, equal ones by name", () => {
  const evicts = { ...made("kubelet-1.35+1"), verdict: "evicts" };
  const nodes = [
    row("a", { refused: 2 }),
    row("b", { latest: { eviction: evicts }, evicted: 1 }),
    row("c", { report: { okCount: 2, failedCount: 1, atMs: NOW } }),
    row("d", { lastSeenMs: NOW - SILENT_MS - 1, refused: 2 }),
  ].map((each) => fleetNode(each, NOW));
  const names = (over: FleetFilter & Partial<FleetOrder>): string[] =>
    ordered(filtered(nodes, over), { ...BY_NAME, ...over }).map((node) => node.name);
  expect(names({})).toEqual(["a", "b", "c", "d"]);
  expect(names({ order: "desc" })).toEqual(["d", "c", "b", "a"]);
  expect(names({ show: "pressure" })).toEqual(["b"]);
  expect(names({ show: "drift" })).toEqual(["c"]);
  expect(names({ show: "silent" })).toEqual(["d"]);
  expect(names({ show: "refused", sort: "refused", order: "desc" })).toEqual(["a", "d"]);
  expect(names({ sort: "evicted", order: "desc" })).toEqual(["b", "a", "c", "d"]);
  expect(names({ name: "C" })).toEqual(["c"]);
});

test("nodes are found by their own version, or else by that of their newest decision", () => {
  const nodes = [
    row("moved", { latest: { cgroups: made("kubelet-1.37+3"), admission: made("kubelet-1.34+1", NOW - 1) } }),
    row("old", { latest: { allocatable: made("kubelet-1.36.3+6") } }),
    row("unknown", { latest: { cpus: made("") } }),
    row("none"),
  ].map((each) => fleetNode(each, NOW));
  expect(nodes.map(({ kubelet }) => kubelet)).toEqual(["1.37", "1.36", "", ""]);
  const names = (over: FleetFilter & Partial<FleetOrder>): string[] =>
    ordered(filtered(nodes, over), { ...BY_NAME, ...over }).map((node) => node.name);
  expect(names({ kubelet: "1.37" })).toEqual(["moved"]);
  expect(names({ kubelet: "1.34" })).toEqual([]);
  expect(names({ sort: "kubelet", order: "desc" })).toEqual(["moved", "old", "none", "unknown"]);
  expect(fleetLink({ ...QUESTION, kubelet: "1.37" }, {})).toBe("/?kubelet=1.37");
  const older = {
    ...fleetNode(row("older", { latest: { cpus: made("kubelet-1.34+1") } }), NOW),
    kubeletVersion: "v1.33.5",
  };
  const found = (kubelet: string): number => filtered([older], { kubelet }).length;
  expect(["1.33", "v1.33.5", "1.34", "1.3"].map(found)).toEqual([1, 1, 0, 0]);
});

test("a link contains everything requested, without defaults", () => {
  expect(fleetLink(QUESTION, {})).toBe("/");
  expect(fleetLink({ ...QUESTION, page: 3 }, { sort: "seen", order: "desc" })).toBe("/?sort=seen");
  expect(fleetLink(QUESTION, { q: "a&b=ü", show: "drift", hours: 1, page: 2 })).toBe(
    "/?q=a%26b%3D%C3%BC&show=drift&hours=1&page=2",
  );
});

test("the nodes page shows the history's nodes, escaped, and keeps the query in its form", async () => {
  const { app, store } = appOver({});
  const name = 'n-"><script>alert(1)</script>';
  const cgroups = decisionRow({ node: name, decidedAtMs: Date.now() });
  value(await store.record({ decision: cgroups }));
  value(await store.addResults(cgroups.id, [resultRow({ atMs: Date.now(), okCount: 2, failedCount: 5 })]));
  const eviction = decisionRow({ node: name, kind: "eviction", verdict: "evicts", decidedAtMs: Date.now() });
  const memory = { signal: "memory.available", value: "1Gi", graceMs: 0, distance: -30, capacity: 1000, belowInMs: 0 };
  const disk = { ...memory, signal: "nodefs.available", distance: 400, belowInMs: null };
  const summary = JSON.stringify({ conditions: ["MemoryPressure"], thresholds: [disk, memory] });
  value(await store.record({ decision: eviction, summary }));
  const text = await (await app.request(`/?q=${encodeURIComponent('n-"><s')}&show=pressure`)).text();
  expect(text).not.toContain("<script>alert");
  expect(text).toContain('value="n-&quot;&gt;&lt;s"');
  expect(text).toContain(
    `<a href="/decisions/${eviction.id}"><span class="tag bad">evicts</span></a> <span class="small soft">MemoryPressure</span>`,
  );
  expect(text).toMatch(/title="hard threshold 1 GiB of memory.available, met [^"]*">-3.0\u00a0%</);
  expect(text).toMatch(/title="hard threshold 1 GiB of nodefs.available">40\u00a0%</);
  expect(text).toContain(`href="/decisions/${cgroups.id}">7</a>`);
  expect(text).toContain('<option value="pressure" selected>');
  expect(text).toContain('<td data-name="Kubelet">1.36</td>');
});

test("the time at which a threshold will be met is the same on the page, in the list and in the file", async () => {
  const { app, store } = appOver({});
  const now = Date.now();
  const disk = { signal: "nodefs.available", value: "1Gi", graceMs: 0, distance: 70, capacity: 1000, belowInMs: null };
  const memory = { ...disk, signal: "memory.available", distance: 600, belowInMs: 3.1 * 3_600_000 };
  const pids = { ...disk, signal: "pid.available", distance: 800, belowInMs: 7 * 3_600_000 };
  const summary = JSON.stringify({ conditions: [], thresholds: [disk, memory, pids] });
  const decision = decisionRow({ node: "slow", kind: "eviction", verdict: "calm", decidedAtMs: now });
  value(await store.record({ decision, summary }));
  const text = await (await app.request("/")).text();
  expect(text).toMatch(/data-name="Memory"><span class="" title="[^"]*">60\u00a0% <span class="small">in 3\.1 h</);
  expect(text).toMatch(/data-name="PIDs"><span class="" title="[^"]*">80\u00a0%<\/span>/);
  expect(text).toContain("Times beyond 6 hours are not shown");
  const metAt = new Date(now + memory.belowInMs).toISOString();
  const list = (await (await app.request("/v1/nodes")).json()) as { nodes: { headroom: object; severity: string }[] };
  expect(list.nodes).toMatchObject([{ severity: "ok", headroom: { signal: "memory.available", metAt } }]);
  const [head = [], cells = []] = (await (await app.request("/v1/nodes?format=csv")).text())
    .split("\r\n")
    .map((line) => line.split(","));
  const cell = (name: string): string | undefined => cells[head.indexOf(name)];
  const columns = ["headroomMetAt", "memory.available.metAt", "nodefs.available.metAt", "pid.available.metAt"];
  expect(columns.map(cell)).toEqual([metAt, metAt, "", ""]);
});

test("a node of an unknown version is shown with it, and found by it", async () => {
  const { app, store } = appOver({});
  const snapshot = { ...snapshotRow({ node: "old", body: "{}" }), kubeletVersion: "v1.33.5" };
  const decidedAtMs = Date.now();
  const decision = decisionRow({ node: "old", snapshotId: snapshot.id, policyVersion: "kubelet-1.34+1", decidedAtMs });
  value(await store.record({ decision, snapshot }));
  const text = await (await app.request("/?kubelet=1.33")).text();
  expect(text).toMatch(
    />old<[\s\S]*<td data-name="Kubelet">1\.33\.5 <span class="soft" title="[^"]*">as 1\.34<\/span><\/td>/,
  );
  expect(text).toContain('<option value="1.33" selected>1.33</option>');
  expect(await (await app.request("/?kubelet=1.34")).text()).toContain("No node matches");
  const choices = (page: string) => {
    const [, select = ""] = /<select name="kubelet">(.*?)<\/select>/s.exec(page) ?? [];
    return [...select.matchAll(/value="([^"]*)"/g)].map((m) => m[1]);
  };
  const known = PROFILES.map(({ version }) => version);
  expect(choices(await (await app.request("/")).text())).toEqual(["", "1.33", ...known]);
  value(await store.record({ decision: decisionRow({ node: "untold", decidedAtMs }) }));
  const newer = { ...snapshotRow({ node: "newer", body: "{}" }), id: "f".repeat(32), kubeletVersion: "v1.40.0" };
  const ofNewer = decisionRow({ id: "e".repeat(32), node: "newer", snapshotId: newer.id, decidedAtMs });
  value(await store.record({ decision: ofNewer, snapshot: newer }));
  const untold = await (await app.request("/?kubelet=not-known")).text();
  expect(choices(untold)).toEqual(["", "1.33", ...known, "1.40", "not-known"]);
  const nodes = untold.slice(untold.indexOf('id="nodes"'), untold.indexOf('id="latest"'));
  expect([...nodes.matchAll(/<a class="node-name"[^>]*>([^<]*)</g)].map((m) => m[1])).toEqual(["untold"]);
});

test("the counts of refusals and evictions link to those decisions", async () => {
  const { app, store } = appOver({});
  const now = Date.now();
  const rows = [
    decisionRow({ id: "r1", node: "n 1", kind: "admission", verdict: "refused", reason: "OutOfcpu", decidedAtMs: now }),
    decisionRow({ id: "e1", node: "n 1", kind: "eviction", verdict: "evicts", decidedAtMs: now }),
    decisionRow({ id: "c1", node: "n 1", kind: "eviction", verdict: "calm", decidedAtMs: now }),
    decisionRow({ id: "k1", node: "n2", kind: "allocatable", verdict: "kubelet-refuses", decidedAtMs: now }),
  ];
  for (const decision of rows) value(await store.record({ decision }));
  const text = await (await app.request("/?hours=1")).text();
  const table = text.slice(text.indexOf('id="nodes"'), text.indexOf('id="latest"'));
  expect(table).toContain('title="OutOfcpu 1">OutOfcpu<');
  const links = [...table.matchAll(/<a class="(?:warn|bad)-text" href="([^"]*)">1<\/a>/g)].map((m) => m[1] ?? "");
  expect(links).toHaveLength(3);
  const found: string[][] = [];
  for (const link of links) {
    const response = await app.request(link.replaceAll("&amp;", "&"));
    const page = await response.text();
    expect(response.status, page).toBe(200);
    found.push([...page.matchAll(/href="\/decisions\/(\w+)"/g)].map((m) => m[1] ?? ""));
  }
  expect(found).toEqual([["r1"], ["e1"], ["k1"]]);
});

test("refusals are 0 where the kubelet is watched or asked, and unknown elsewhere with advice", async () => {
  const { app, store } = appOver({});
  const decidedAtMs = Date.now();
  const shown = async (path: string, pattern: RegExp): Promise<string> =>
    pattern.exec(await (await app.request(path, { headers: { accept: "text/html" } })).text())?.[1] ?? "";
  const figure = () =>
    shown("/", /<span class="figure [^"]*">((?:(?!<a ).)*?)<\/span><span class="soft">with refusals/);
  const cell = (node: string) => shown(`/?q=${node}`, /data-name="Refused">(.*?)<\/td>/);
  const tile = (node: string) => shown(`/nodes/${node}`, /Refused<\/span>(.*?)<\/a>/);
  const todo = /title="what kubelets refuse is not reported: start nodewise collect [^"]*">–</;
  value(await store.record({ decision: decisionRow({ node: "dark", decidedAtMs }) }));
  for (const text of [await figure(), await cell("dark"), await tile("dark")]) expect(text).toMatch(todo);
  expect(await tile("dark")).toContain("what its kubelet refuses is not reported");
  value(await store.record({ decision: decisionRow({ id: "a", node: "asked", kind: "admission", decidedAtMs }) }));
  const old = { atMs: decidedAtMs - 3 * 86_400_000, recordedAtMs: decidedAtMs, reason: null };
  value(await store.putOutcomes([outcomeRow({ ...old, node: "watched" })]));
  expect(await figure()).toBe("0");
  expect(await cell("dark")).toMatch(todo);
  for (const node of ["asked", "watched"]) {
    expect(await cell(node)).toBe('<span class="soft">0</span>');
    expect(await tile(node)).toContain("no pod in 24 hours");
  }
});

test("many nodes are shown a hundred per page", async () => {
  const { app, store } = appOver({});
  for (let i = 0; i < 130; i++)
    value(await store.record({ decision: decisionRow({ node: `n${i}`, decidedAtMs: Date.now() }) }));
  const rows = (text: string): number => text.split('<td><a class="node-name"').length - 1;
  const first = await (await app.request("/?sort=seen")).text();
  expect(first).toContain('href="/?sort=seen&amp;page=2"');
  const second = await (await app.request("/?sort=seen&page=2")).text();
  expect([first, second].map((text) => rows(text.slice(0, text.indexOf('id="latest"'))))).toEqual([100, 30]);
});

test("an invalid query names the parameter", async () => {
  const { app } = appOver({});
  for (const query of [
    "show=x",
    "labels=a%3D%3D%3Db",
    "kubelet=banana",
    "sort=y",
    "order=up",
    "hours=25",
    "page=0",
    "page=-1",
    "nope=1",
    "q=a&q=b",
  ]) {
    const response = await app.request(`/?${query}`);
    expect(response.status, query).toBe(400);
    expect(((await response.json()) as { code: string }).code).toBe("invalid_query");
  }
});

test.each([
  [6, /^\d\d:00$/, 7, 3],
  [24, /^(?:00|04|08|12|16|20):00$/, 6, 3],
  [168, /^\d\d-\d\d$/, 7, 3],
])(
  "over %i hours the time axis has round times, half as many on a phone, and none overflows",
  async (hours, pattern, all, few) => {
    const text = String(await hoursPicture([], NOW, hours));
    const names = [
      ...text.matchAll(/<g class="hour( minor)?( start| end)?">.*?<text[^>]* x="([\d.]+)%"[^>]*>([^<]*)/g),
    ];
    expect(names.length).toBeGreaterThanOrEqual(all);
    for (const [, , side, x, name] of names) {
      expect(name).toMatch(pattern);
      if (Number(x) < 4 || Number(x) > 96) expect(side).toBe(Number(x) < 50 ? " start" : " end");
    }
    const onPhone = names.filter(([, minor]) => minor === undefined);
    expect(onPhone.length).toBeGreaterThanOrEqual(few);
    expect(onPhone.length).toBeLessThanOrEqual(Math.ceil(names.length / 2));
  },
);

test("what a kubelet did is shown beside the decisions, escaped, and links to its outcomes", async () => {
  const { app, store } = appOver({});
  const now = Date.now();
  const reason = "<b>OutOfgpu";
  const one = { node: "n 1", atMs: now, recordedAtMs: now };
  value(
    await store.putOutcomes([
      outcomeRow({ ...one, reason }),
      outcomeRow({ ...one, reason }),
      outcomeRow({ ...one, reason: "OutOfcpu" }),
      outcomeRow({ ...one, kind: "eviction", reason: "Evicted" }),
    ]),
  );
  const text = await (await app.request("/?hours=1&show=refused")).text();
  expect(text).not.toContain("<b>");
  const link = "/agreement?days=1&amp;node=n+1&amp;reason=";
  expect(text).toContain(
    `<span class="bad-text">3</span> <a title="&lt;b&gt;OutOfgpu 2, OutOfcpu 1" href="${link}%3Cb%3EOutOfgpu`,
  );
  expect(text).toContain(`<span class="bad-text">1</span> <a title="Evicted 1" href="${link}Evicted&amp;verdict=all">`);
  expect(text).toContain("pressure not known");
  const [, href = ""] = /href="(\/agreement[^"]*OutOfgpu[^"]*)"/.exec(text) ?? [];
  const listed = await (await app.request(href.replaceAll("&amp;", "&"))).text();
  expect(listed.match(/<article/g)).toHaveLength(2);
  const page = await (await app.request("/nodes/n%201")).text();
  expect(page).toContain("its kubelet refused 3 pods and evicted 1 pod");
});

test("a node without an eviction pass is shown with its own conditions", async () => {
  const { app, store } = appOver({});
  const reported = { a: '["MemoryPressure"]', b: "[]", c: null };
  for (const [node, conditions] of Object.entries(reported))
    value(await store.putSnapshot({ ...snapshotRow({ node, storedAtMs: Date.now() }), conditions }));
  const text = await (await app.request("/")).text();
  expect(text).toMatch(/>a<.*"tag warn">under pressure<\/span> <span[^>]*>MemoryPressure by the node’s status</);
  expect(text).toMatch(/>b<.*"tag good">healthy<\/span> <span[^>]*>no pressure by the node’s status</);
  expect(text).toMatch(/>c<.*"tag ">not known<\/span> <span[^>]*>pressure not known</);
  expect(text).toMatch(/show=not-known"><span class="figure warn-text">1</);
  const shown = await (await app.request("/?show=not-known")).text();
  expect(shown).toContain('href="/nodes/c"');
  expect(shown).not.toContain('href="/nodes/b"');
});

test("the worst node comes first, and nodes are found by zone and by the kubelet's reason for a refusal", async () => {
  const { app, store } = appOver({});
  const zoned = (node: string, zone: string, over: object = {}) => ({
    ...snapshotRow({ node, body: "{}", storedAtMs: Date.now() }),
    id: node.repeat(32),
    labels: JSON.stringify({ "topology.kubernetes.io/zone": zone }),
    ...over,
  });
  const decidedAtMs = Date.now();
  for (const [node, zone] of [
    ["a", "east"],
    ["b", "west"],
    ["c", "west"],
  ] as const) {
    const decision = {
      ...decisionRow({ id: node.repeat(32), node, snapshotId: node.repeat(32), decidedAtMs }),
      kind: "admission",
    };
    const refused = node === "b" ? { verdict: "refused", reason: "OutOfcpu" } : {};
    value(
      await store.record({ decision: { ...decision, ...refused }, snapshot: zoned(node, zone, { conditions: "[]" }) }),
    );
  }
  const namesAt = async (path: string) => {
    const text = await (await app.request(path)).text();
    const nodes = text.slice(text.indexOf('id="nodes"'), text.indexOf('id="latest"'));
    return [...nodes.matchAll(/<a class="node-name"[^>]*>([^<]*)</g)].map((m) => m[1]);
  };
  expect(await namesAt("/")).toEqual(["b", "a", "c"]);
  expect(await namesAt("/?sort=name")).toEqual(["a", "b", "c"]);
  expect(await namesAt("/?zone=west")).toEqual(["b", "c"]);
  expect(await namesAt("/?reason=OutOfcpu")).toEqual(["b"]);
  const text = await (await app.request("/?zone=west&reason=OutOfcpu")).text();
  expect(text).toContain('<option value="west" selected>');
  expect(text).toContain('<option value="OutOfcpu" selected>');
  const [, csv = ""] = /href="([^"]*format=csv[^"]*)"/.exec(text) ?? [];
  const rows = await (await app.request(csv.replaceAll("&amp;", "&"))).text();
  expect(
    rows
      .trim()
      .split("\r\n")
      .map((row) => row.split(",")[0]),
  ).toEqual(["name", "b"]);
});

test("two nodes are compared with the differences of their configuration and labels", async () => {
  const { app, store } = appOver({});
  const node = (name: string, labels: object, kubeletConfiguration: object) => ({
    ...snapshotRow({ node: name, storedAtMs: Date.now() }),
    id: name.repeat(32),
    labels: JSON.stringify(labels),
    body: JSON.stringify({
      node: { metadata: { name }, status: { capacity: { cpu: "4" }, nodeInfo: { kubeletVersion: "v1.36.3" } } },
      kubeletConfiguration,
    }),
  });
  value(
    await store.putSnapshot(
      node("a", { pool: "web", os: "linux" }, { maxPods: 60, podsPerCore: 3, kubeReserved: { memory: "536870912" } }),
    ),
  );
  value(
    await store.putSnapshot(
      node(
        "b",
        { pool: "<b>", os: "linux" },
        {
          evictionHard: { "memory.available": "1Gi" },
          podsPerCore: 3,
          kubeReserved: { memory: "512Mi" },
        },
      ),
    ),
  );
  const text = (await (await app.request("/compare?node=a&node=b")).text()).replaceAll("<wbr>", "");
  const row = (name: string) => {
    const [, cells = ""] = new RegExp(`<th scope="row">${name}</th>(.*?)</tr>`).exec(text) ?? [];
    return [...cells.matchAll(/<td class="([^"]*)">(.*?)<\/td>/g)].map(([, tone, cell]) => [tone, cell]);
  };
  expect(row("maxPods")).toEqual([
    ["changed", "60"],
    ["changed", "110"],
  ]);
  expect(row("evictionHard.memory.available")).toEqual([
    ["changed", '<span title="104857600 bytes">100 MiB</span>'],
    ["changed", '<span title="1073741824 bytes">1 GiB</span>'],
  ]);
  expect(row("pool")).toEqual([
    ["changed", "web"],
    ["changed", "&lt;b&gt;"],
  ]);
  expect(row("cpu \\(capacity\\)")).toEqual([
    ["", "4"],
    ["", "4"],
  ]);
  for (const same of ["podsPerCore", "os", "kubeReserved.memory"])
    expect(text).not.toContain(`<th scope="row">${same}</th>`);
  for (const [path, status] of [
    ["?node=a", 400],
    ["?node=a&node=a", 400],
    ["?node=a&node=b&node=c", 400],
    ["?node=a&node=zz", 404],
    ["?x=1", 400],
  ] as const)
    expect((await app.request(`/compare${path}`)).status, path).toBe(status);
});

test("the time at which a threshold will be met is shown for a recent pass only", async () => {
  const { app, store } = appOver({});
  const memory = {
    signal: "memory.available",
    value: "1Gi",
    graceMs: 0,
    distance: 400,
    capacity: 1000,
    belowInMs: 5 * 60_000,
  };
  const summary = JSON.stringify({ conditions: [], thresholds: [memory] });
  for (const [node, age] of [
    ["now", 0],
    ["late", 7 * 60_000 + 1000],
    ["then", SILENT_MS + 60_000],
  ] as const) {
    const decidedAtMs = Date.now() - age;
    value(
      await store.record({ decision: decisionRow({ node, kind: "eviction", verdict: "calm", decidedAtMs }), summary }),
    );
  }
  const text = await (await app.request("/?sort=name")).text();
  const row = (node: string) => text.split("<tr>").find((one) => one.includes(`>${node}</a>`)) ?? "";
  expect(row("now")).toMatch(/40\u00a0% <span class="small">in 5 min<\/span>/);
  expect(row("late")).toMatch(/40\u00a0% <span class="small">due 2 min ago<\/span>/);
  expect(row("then")).toContain("40\u00a0%</span>");
  expect(await (await app.request("/nodes/late")).text()).toMatch(/, met by now: it was due 2m\w* ago/);
});
