import { createServer as http } from "node:http";
import { createServer as http2 } from "node:http2";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createServer as tls } from "node:tls";
import { afterEach, describe, expect, test } from "vitest";
import { attempt, type ProbeDeps, type ProbeRequest } from "../../../actuator/probes/engine/attempt.ts";
import { ok } from "../../../api/base/result.ts";
import type { ProbeHandler, ProbeOutcome } from "../../../api/model/probe-spec.ts";
import { selfSigned } from "../../kit/certificates.ts";
import { noPrograms } from "../../kit/programs.ts";
import { fullListener } from "./full-listener.ts";
import { getAt, Servers, TARGET } from "./servers.ts";

const servers = new Servers();
afterEach(() => servers.close());
const NEVER: ProbeDeps = { exec: () => new Promise(() => {}) };
const ask = (handler: ProbeHandler, more: Partial<ProbeRequest> = {}): Promise<ProbeOutcome> =>
  attempt({ handler, timeoutMs: 20_000, target: TARGET, ...more }, NEVER);

describe("one probe attempt", () => {
  test("uses the probe's handler and the container's named ports", async () => {
    const port = await servers.listen(http((_, response) => response.end("ok")));
    const target = { ...TARGET, ports: [{ name: "web", containerPort: port }] };
    const get = { ...getAt(port), port: "web" };
    expect(await ask({ http: get }, { target })).toEqual({ result: "success", output: "ok" });
    expect(await ask({ tcp: { host: "", port: "web" } }, { target })).toEqual({ result: "success", output: "" });
    const exec = async () => ok({ exitCode: 0, stdout: "done", stderr: "" });
    expect(await attempt({ handler: { exec: ["x"] }, timeoutMs: 20_000, target }, { exec })).toEqual({
      result: "success",
      output: "done",
    });
  });
  test("returns the kubelet's error for an unknown port name", async () => {
    const words = 'strconv.Atoi: parsing "web": invalid syntax';
    expect(await ask({ http: { ...getAt(1), port: "web" } })).toEqual({ error: words });
    expect(await ask({ tcp: { host: "", port: "web" } })).toEqual({ error: words });
  });
  test("does not probe this machine in place of a pod without an address", async () => {
    const port = await servers.listen(http((_, response) => response.end("ok")));
    const target = { ...TARGET, podIP: "" };
    for (const handler of [{ http: getAt(port) }, { tcp: { host: "", port } }, { grpc: { port, service: "" } }]) {
      expect(await ask(handler, { target })).toEqual({ error: "the pod has no address yet" });
    }
    const elsewhere = { http: getAt(port, { host: "127.0.0.1" }) };
    expect(await ask(elsewhere, { target })).toEqual({ result: "success", output: "ok" });
  });
});

/** Everything that an attempt may leave open in this process, counted by kind. */
function openResources(): Readonly<Record<string, number>> {
  const kinds = process.getActiveResourcesInfo().filter((kind) => /TCP|TLS|Timeout|HTTP2|Connect/.test(kind));
  return Object.fromEntries([...new Set(kinds)].map((kind) => [kind, kinds.filter((k) => k === kind).length]));
}
/** The kinds of which there are more now than before. */
const addedSince = (before: ReturnType<typeof openResources>): readonly string[] =>
  Object.entries(openResources()).flatMap(([kind, n]) => (n > (before[kind] ?? 0) ? [`${kind}: ${n}`] : []));
/**
 * Waits until the condition is true, for half a minute at most. No timer may run meanwhile, since the test counts
 * timers.
 */
async function once(isSo: () => boolean): Promise<void> {
  for (let tries = 0; tries < 1000 && !isSo(); tries++) await sleep(30);
}
const why = noPrograms("probes of hanging servers over TLS", "openssl");

describe("2,000 attempts at servers that hang", () => {
  const HEAD = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";
  const byHttp = (scheme: "HTTP" | "HTTPS") => (port: number) => ({ http: getAt(port, { scheme }) });
  const byGrpc = (port: number) => ({ grpc: { port, service: "" } });
  const hears = (socket: Socket) => void socket.on("error", () => {}).resume();
  const secure = () => (why === undefined ? selfSigned(2048) : { key: "", cert: "" });
  type Stage = readonly [string, () => Promise<number>, (port: number) => ProbeHandler];
  const STAGES: readonly Stage[] = [
    ["before the first byte", () => servers.serve(), byHttp("HTTP")],
    ["within the headers", () => servers.raw("HTTP/1.1 200 OK\r\nA: "), byHttp("HTTP")],
    ["within the body", () => servers.raw(`${HEAD}x`), byHttp("HTTP")],
    ["in TLS", () => servers.serve(), byHttp("HTTPS")],
    ["before the preface of gRPC", () => servers.serve(), byGrpc],
    ["in the call of gRPC", () => servers.listen(http2(() => {})), byGrpc],
    ...(why === undefined
      ? ([
          ["behind TLS", () => servers.listen(tls(secure(), hears).on("tlsClientError", () => {})), byHttp("HTTPS")],
        ] as const)
      : []),
  ];

  test.each(STAGES)("%s end, and leave no timer or handle behind", async (_, serve, handlerAt) => {
    const handler = handlerAt(await serve());
    await ask(handler, { timeoutMs: 20 });
    await once(() => servers.open === 0);
    const before = openResources();
    for (let round = 0; round < 20; round++) {
      const outcomes = await Promise.all(Array.from({ length: 100 }, () => ask(handler, { timeoutMs: 20 })));
      expect(outcomes.filter((outcome) => "result" in outcome && outcome.result === "success")).toEqual([]);
    }
    await once(() => servers.open === 0 && addedSince(before).length === 0);
    expect(addedSince(before)).toEqual([]);
    expect(servers.open).toBe(0);
  });
  test("leave nothing behind when they are answered either", async () => {
    const port = await servers.listen(http((_, response) => response.end("ok")));
    const before = openResources();
    for (let round = 0; round < 20; round++) {
      await Promise.all(Array.from({ length: 100 }, () => ask({ http: getAt(port) }, { timeoutMs: 600_000 })));
    }
    await once(() => addedSince(before).length === 0);
    expect(addedSince(before)).toEqual([]);
  });
  test("leave nothing behind before a connection exists, or with a hanging runtime", async () => {
    await using full = await fullListener();
    const { port } = full;
    const handlers = [{ tcp: { host: "", port } }, { http: getAt(port) }, byGrpc(port), { exec: ["sleep", "9"] }];
    for (const handler of handlers) await ask(handler, { timeoutMs: 20 });
    const before = openResources();
    for (let round = 0; round < 20; round++) {
      const each = (handler: ProbeHandler) => Array.from({ length: 25 }, () => ask(handler, { timeoutMs: 20 }));
      const outcomes = await Promise.all(handlers.flatMap(each));
      expect(outcomes.every((outcome) => "result" in outcome && outcome.result === "failure")).toBe(true);
    }
    await once(() => addedSince(before).length === 0);
    expect(addedSince(before)).toEqual([]);
  });
});
