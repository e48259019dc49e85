import { expect, test, vi } from "vitest";
import type { ServeOptions } from "../../api/server.ts";
import { exampleSnapshot } from "../contract/api-subject.ts";
import { capturedSnapshot } from "../contract/captured.ts";
import { collector, type SpanSeen } from "./otlp-collector.ts";
import { serving } from "./serving.ts";

type Otlp = NonNullable<ServeOptions["otlp"]>;
const tellTo = (url: string, over: Partial<Otlp> = {}): Otlp => ({
  url,
  traces: true,
  metrics: false,
  sampler: "parentbased_always_on",
  ratio: 1,
  intervalMs: 500,
  version: "1.2.3",
  ...over,
});
const HEADERS = { "content-type": "application/json" };
const post = (url: string, body: unknown, headers: Readonly<Record<string, string>> = {}, method = "POST") =>
  fetch(url, { method, headers: { ...HEADERS, ...headers }, body: JSON.stringify(body) });
const until = (check: () => void | Promise<void>) => vi.waitFor(check, { timeout: 20_000, interval: 50 });
const childrenOf = (spans: readonly SpanSeen[], { spanId }: SpanSeen) => spans.filter((one) => one.parentId === spanId);

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = "b7ad6b7169203331";

test("a request is a span with child spans for decision and record, in its caller's trace", {
  timeout: 60_000,
}, async () => {
  const { url, spans, bodies } = await collector();
  const { api, log } = await serving({ otlp: tellTo(url) });
  const traced = { traceparent: `00-${TRACE}-${PARENT}-01`, "user-agent": "curl/8" };
  // the event loop decides the small one, a thread the large one
  const small = await post(`${api.url}/v1/decisions/cgroups?record=true`, { snapshot: exampleSnapshot("n1") }, traced);
  const large = await post(`${api.url}/v1/decisions/eviction`, { snapshot: capturedSnapshot() });
  const turn = await post(`${api.url}/v1/nodes/n2/turns`, {
    snapshot: exampleSnapshot("n2"),
    decisions: [{ kind: "cgroups" }, { kind: "allocatable" }],
  });
  const batch = await post(
    `${api.url}/v1/batch`,
    { kind: "cgroups", snapshot: exampleSnapshot("n3") },
    { "content-type": "application/x-ndjson" },
  );
  const ids = [small, large, batch].map((answer) => answer.json() as Promise<{ id: string }>);
  const [smallId, largeId, batchId] = (await Promise.all(ids)).map(({ id }) => id);
  expect(turn.status, await turn.text()).toBe(200);
  await post(`${api.url}/v1/decisions/cgroups`, { snapshot: "hunter2" }, { authorization: "Bearer nw_0_hunter2" });
  await fetch(`${api.url}/v1/nodes?token=hunter2`);
  await fetch(`${api.url}/nothing-there`);
  await until(() => expect(spans.filter(({ kind }) => kind === 2)).toHaveLength(7));

  const roots = spans.filter(({ kind }) => kind === 2);
  expect(roots.map(({ name }) => name)).toEqual([
    "POST /v1/decisions/{decision}",
    "POST /v1/decisions/{decision}",
    "POST /v1/nodes/{node}/turns",
    "POST /v1/batch",
    "POST /v1/decisions/{decision}",
    "GET /v1/nodes",
    "GET",
  ]);
  const [first, second, third, fourth, wrong, , lost] = roots as [
    SpanSeen,
    SpanSeen,
    SpanSeen,
    SpanSeen,
    SpanSeen,
    SpanSeen,
    SpanSeen,
  ];
  expect(first).toMatchObject({
    resource: { "service.name": "nodewise-api", "service.version": "1.2.3", "service.instance.id": expect.any(String) },
    traceId: TRACE,
    parentId: PARENT,
    status: 0,
    attributes: {
      "http.request.method": "POST",
      "http.route": "/v1/decisions/{decision}",
      "http.response.status_code": 200,
      "url.path": "/v1/decisions/cgroups",
      "url.scheme": "http",
      "server.address": "127.0.0.1",
      "server.port": api.port,
      "client.address": "127.0.0.1",
      "user_agent.original": "curl/8",
      "network.protocol.version": "1.1",
    },
  });
  expect(log.lines.some(({ fields }) => fields["traceId"] === TRACE)).toBe(true);
  for (const [root, kind, node, id] of [
    [first, "cgroups", "n1", smallId],
    [second, "eviction", "n1", largeId],
    [fourth, "cgroups", "n3", batchId],
  ] as const) {
    const [decided, recorded] = childrenOf(spans, root) as [SpanSeen, SpanSeen];
    expect(decided).toMatchObject({
      name: "decide",
      traceId: root.traceId,
      attributes: { "nodewise.kind": kind, "nodewise.node": node, "nodewise.verdict": expect.any(String) },
    });
    expect(recorded).toMatchObject({
      name: "record",
      attributes: { "nodewise.kind": kind, "nodewise.node": node, "nodewise.decision.id": id },
    });
    expect(decided.ms).toBeGreaterThanOrEqual(0);
    expect(decided.ms + recorded.ms).toBeLessThanOrEqual(root.ms + 5);
  }
  expect(childrenOf(spans, third)).toMatchObject([
    { name: "decide", attributes: { "nodewise.node": "n2", "nodewise.kinds": ["cgroups", "allocatable"] } },
    { name: "record", attributes: { "nodewise.decision.ids": [expect.any(String), expect.any(String)] } },
  ]);
  expect(wrong).toMatchObject({
    status: 0,
    attributes: { "http.response.status_code": 401, "error.type": "unauthorized" },
  });
  expect(lost.attributes["http.route"]).toBeUndefined();
  expect(Buffer.concat(bodies).includes("hunter2")).toBe(false);
});

test("the OTLP export has the metrics of /metrics with their types and units", {
  timeout: 60_000,
}, async () => {
  const { url, exports } = await collector();
  const { api } = await serving({ otlp: tellTo(url, { traces: false, metrics: true }) });
  await post(`${api.url}/v1/decisions/cgroups`, { snapshot: exampleSnapshot("n1") });
  await until(() => {
    const requests = exports.at(-1)?.find(({ name }) => name === "nodewise_http_requests_total");
    expect(requests?.points.some(({ attributes }) => attributes["route"] === "/v1/decisions/:decision")).toBe(true);
  });
  const reported = exports.at(-1) ?? [];
  const named = (name: string) => reported.find((one) => one.name === name);
  expect(named("nodewise_http_requests_total")).toMatchObject({
    type: "sum",
    isMonotonic: true,
    temporality: 2,
    unit: "",
  });
  expect(named("nodewise_http_requests_total")?.points).toContainEqual(
    expect.objectContaining({
      attributes: { route: "/v1/decisions/:decision", method: "POST", status: "200" },
      value: 1,
    }),
  );
  const duration = named("nodewise_decision_duration_seconds");
  expect(duration).toMatchObject({ type: "histogram", temporality: 2, unit: "s" });
  const [point] = duration?.points ?? [];
  expect(point?.attributes).toEqual({ kind: "cgroups" });
  expect(point?.value).toBe(1);
  expect(point?.counts).toHaveLength((point?.bounds.length ?? 0) + 1);
  expect(point?.counts.reduce((sum, count) => sum + count, 0)).toBe(1);
  expect(point?.sum).toBeGreaterThan(0);
  // gauges about nodes are not in the registry, and are exported nevertheless
  expect(named("nodewise_node_last_seen_timestamp_seconds")).toMatchObject({
    type: "gauge",
    points: [{ attributes: { node: "n1" } }],
  });
  expect(named("process_resident_memory_bytes")).toMatchObject({ type: "gauge", unit: "By" });
  const text = await (await fetch(`${api.url}/metrics`)).text();
  const names = [...text.matchAll(/^# TYPE (\S+) \S+$/gm)].map(([, name]) => name);
  expect(reported.map(({ name }) => name).sort()).toEqual(names.sort());
});

test("an unreachable or refusing OTLP collector delays no request, and dropped spans are counted and logged", {
  timeout: 60_000,
}, async () => {
  const { url, answers, spans } = await collector();
  answers.status = 400;
  const { api, log } = await serving({ otlp: tellTo(url, { metrics: true }) });
  const requests = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i += 50)
      await Promise.all(Array.from({ length: 50 }, () => fetch(`${api.url}/healthz`)));
  };
  await requests(600);
  const dropped = async (): Promise<number> => {
    const text = await (await fetch(`${api.url}/metrics`)).text();
    return Number(/^nodewise_otlp_dropped_spans_total (\d+)$/m.exec(text)?.[1]);
  };
  await until(async () => expect(await dropped()).toBeGreaterThanOrEqual(512));
  const said = log.lines.filter(({ message }) => message.startsWith("telemetry"));
  await until(() =>
    expect(
      log.lines
        .filter(({ message }) => message === "telemetry not delivered: it is dropped")
        .map(({ fields }) => fields["signal"])
        .sort(),
    ).toEqual(["metrics", "traces"]),
  );
  expect(said.length).toBeLessThanOrEqual(2);
  answers.status = 200;
  await fetch(`${api.url}/healthz`);
  await until(() => expect(spans.length).toBeGreaterThan(0));
  expect(log.lines.some(({ message }) => message === "telemetry delivered again")).toBe(true);
});

test("an unsampled traceparent exports no span, and an invalid one is ignored", { timeout: 60_000 }, async () => {
  const { url, spans } = await collector();
  const { api } = await serving({ otlp: tellTo(url) });
  await fetch(`${api.url}/healthz`, { headers: { traceparent: `00-${TRACE}-${PARENT}-00` } });
  await fetch(`${api.url}/readyz`, { headers: { traceparent: "00-nonsense" } });
  await until(() => expect(spans.map(({ name }) => name)).toEqual(["GET /readyz"]));
});
