import { once } from "node:events";
import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { receiver } from "../api/decision-log-receiver.ts";
import { collector } from "../api/otlp-collector.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { PATIENT } from "../patient.ts";
import { ended, printed, run, start } from "./run.ts";

const scratch = scratchFolder();

interface Started {
  readonly url: string;
  readonly child: ReturnType<typeof start>;
  readonly end: ReturnType<typeof ended>;
}
async function api(
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Started> {
  const child = start(["api", "--port", "0", "--data-dir", join(scratch, name), ...args], { env });
  const end = ended(child);
  return { child, end, url: (await printed(child, /\n/)).trim() };
}
async function decide(url: string, cpu: string): Promise<string> {
  const snapshot = { node: { metadata: { name: "n" }, status: { capacity: { cpu, memory: "1Gi" } } } };
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${url}/v1/decisions/allocatable`, {
    method: "POST",
    headers,
    body: JSON.stringify({ snapshot }),
  });
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { id: string }).id;
}

describe("nodewise api --decision-log", () => {
  test("writes a line for each decision to a file, continues after SIGHUP, and flushes at the end", async () => {
    const file = join(scratch, "decisions.ndjson");
    const { url, child, end } = await api("file", [
      "--decision-log",
      file,
      "--decision-log-label",
      "cluster=prod",
      "zone=a",
      "--decision-log-erase",
      "/input",
    ]);
    const one = await decide(url, "1");
    const linesOf = (path: string) =>
      readFileSync(path, "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
    await vi.waitUntil(() => existsSync(file) && statSync(file).size > 0, PATIENT);
    expect(linesOf(file)).toMatchObject([
      { decision_id: one, labels: { cluster: "prod", zone: "a" }, erased: ["/input"] },
    ]);
    renameSync(file, `${file}.1`);
    child.kill("SIGHUP");
    const two = await decide(url, "2");
    child.kill("SIGTERM");
    expect((await end).code).toBe(0);
    expect(linesOf(file)).toMatchObject([{ decision_id: two }]);
  });

  test("sends the token of a file or the environment, and shows it nowhere", async () => {
    const { url: to, posts } = await receiver();
    const token = join(scratch, "token");
    writeFileSync(token, "from-the-file\n");
    for (const [name, args, env, expected] of [
      ["by-file", ["--decision-log-token-file", token], {}, "Bearer from-the-file"],
      ["by-environment", [], { NODEWISE_DECISION_LOG_TOKEN: "from-the-environment" }, "Bearer from-the-environment"],
      ["without", [], {}, undefined],
    ] as const) {
      const { url, child, end } = await api(name, args, { ...env, NODEWISE_DECISION_LOG: `${to}` });
      await decide(url, "1");
      child.kill("SIGTERM");
      const { code, stderr } = await end;
      expect(code).toBe(0);
      expect(posts.at(-1)?.headers.authorization).toBe(expected);
      expect(stderr).not.toMatch(/from-the-/);
    }
  });

  test("waits 3 seconds at most for hanging endpoints, and says how much was not delivered", async () => {
    const open = new Set<Socket>();
    const silent = createServer((socket) => open.add(socket.on("error", () => {}))).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const to = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const { url, child, end } = await api("hangs", ["--decision-log", `${to}/logs`, "--otlp", to]);
    const ids = [await decide(url, "1"), await decide(url, "2")];
    // the API waits for a response of the receiver when it gets SIGTERM
    await vi.waitUntil(() => open.size > 0, PATIENT);
    const began = performance.now();
    child.kill("SIGTERM");
    const { code, stderr } = await end;
    const seconds = (performance.now() - began) / 1000;
    for (const socket of open) socket.destroy();
    silent.close();
    expect(code).toBe(0);
    expect(seconds).toBeLessThan(6);
    const lines = stderr
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const reportOf = (text: string) => lines.filter(({ msg }) => msg === text);
    expect(reportOf("the API stops before the decision log is delivered: it stays in the history")).toMatchObject([
      { receiver: `${to}/logs`, waiting: 2 },
    ]);
    // three spans per decision: the request, the decision and the history
    expect(reportOf("the API stops before its last telemetry is delivered: it is lost")).toMatchObject([
      { spans: 6, metrics: "not delivered" },
    ]);
    const { url: there, taken } = await receiver();
    const next = await api("hangs", ["--decision-log", `${there}`]);
    await vi.waitUntil(() => taken.length === 2, PATIENT);
    expect(taken.map((one) => one.decision_id)).toEqual(ids);
    next.child.kill("SIGTERM");
    expect((await next.end).stderr).not.toContain("ends before");
  });

  test.each([
    [
      ["--decision-log", "ftp://logs.example/"],
      "--decision-log: expected a URL that begins with https:// or http://, or a file",
    ],
    [
      ["--decision-log", "https://me:hunter2@logs.example/"],
      "every user of this machine can see a password in the arguments",
    ],
    [
      ["--decision-log", "https://logs.example/", "--decision-log-token-file", "/gone"],
      "--decision-log-token-file /gone: cannot be read (ENOENT)",
    ],
    [
      ["--decision-log", "http://logs.example/", "--decision-log-token-file", "/proc/version"],
      "a token is not sent over http to another machine",
    ],
    [["--decision-log-label", "a=b"], "options of the decision log are given without --decision-log"],
    [["--decision-log", "x", "--decision-log-label", "a b"], "Expected NAME=VALUE, such as cluster=prod."],
    [
      ["--decision-log", "x", "--decision-log-erase", "/labels"],
      "Expected a JSON Pointer to /input, /result or what is below one of them",
    ],
    [["--otlp", "127.0.0.1:4318"], "--otlp: expected the http:// or https:// URL of a collector"],
    [["--otlp", "http://u:hunter2@c.example:4318"], "OTEL_EXPORTER_OTLP_HEADERS may hold a token"],
  ])("refuses %j", async (args, message) => {
    const { code, stderr } = await run(["api", "--port", "0", "--data-dir", join(scratch, "refused"), ...args]);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain("hunter2");
    expect(code).toBe(2);
  });

  test("says to create a missing folder", async () => {
    const file = join(scratch, "gone/decisions.ndjson");
    const { code, stderr } = await run([
      "api",
      "--port",
      "0",
      "--data-dir",
      join(scratch, "gone-data"),
      "--decision-log",
      file,
    ]);
    expect(stderr).toContain(`there is no folder ${join(scratch, "gone")}: create it first`);
    expect(code).toBe(4);
  });
});

describe("nodewise api --otlp", () => {
  test("respects OpenTelemetry's variables for endpoint, name, attributes, headers, sampler and interval", async () => {
    const { url: to, spans, exports } = await collector();
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: to,
      OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
      OTEL_SERVICE_NAME: "nodewise-prod",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=prod",
      OTEL_METRIC_EXPORT_INTERVAL: "500",
    };
    const { url, child, end } = await api("otlp", [], env);
    await decide(url, "1");
    child.kill("SIGTERM");
    expect((await end).code).toBe(0);
    // the API sent the waiting spans before it exited
    expect(spans.map(({ name }) => name)).toContain("POST /v1/decisions/{decision}");
    expect(spans[0]?.resource).toMatchObject({
      "service.name": "nodewise-prod",
      "deployment.environment.name": "prod",
    });
    expect(exports.at(-1)?.map(({ name }) => name)).toContain("nodewise_http_requests_total");
  });

  test.each([
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }, "OTEL_EXPORTER_OTLP_PROTOCOL: only http/protobuf is supported here"],
    [{ OTEL_TRACES_SAMPLER: "some" }, "OTEL_TRACES_SAMPLER: expected one of always_on"],
    [{ OTEL_TRACES_SAMPLER_ARG: "2" }, "OTEL_TRACES_SAMPLER_ARG: expected a number from 0 to 1"],
  ])("refuses %j", async (env, message) => {
    const args = ["api", "--port", "0", "--data-dir", join(scratch, "otel"), "--otlp", "http://127.0.0.1:4318"];
    const { code, stderr } = await run(args, { env });
    expect(stderr).toContain(message);
    expect(code).toBe(2);
  });
});
