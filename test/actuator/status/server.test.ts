import { request } from "node:http";
import { connect, createServer } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { daemonMetrics } from "../../../actuator/status/metrics.ts";
import type { NodeStatus, SeenEvent } from "../../../actuator/status/node-status.ts";
import { type StatusServer, type StatusServerOptions, startStatusServer } from "../../../actuator/status/server.ts";
import { err, ok } from "../../../api/base/result.ts";
import { AT, CRASHING, earlier, nodeStatus, seenEvent, WEB } from "../../kit/node-status.ts";

const running: StatusServer[] = [];
afterEach(async () => {
  for (const server of running.splice(0)) await server.close();
});

async function serve(
  status: () => NodeStatus = nodeStatus,
  more: Pick<StatusServerOptions, "probeHistory"> = {},
): Promise<string> {
  const listen = { host: "127.0.0.1", port: 0 };
  const started = await startStatusServer({ listen, status, metrics: daemonMetrics(), ownNames: ["n1"], ...more });
  if (!started.ok) throw new Error(started.error);
  running.push(started.value);
  return started.value.url;
}

/** Fetch does not allow a Host header to be set. */
function ask(url: string, options: { method?: string; host?: string; path?: string; headers?: object }) {
  return new Promise<{ status: number; text: string; headers: Record<string, unknown> }>((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const { method = "GET", host = "127.0.0.1", path = "/healthz", headers = {} } = options;
    const asked = request({ hostname, port, method, path, headers: { host, ...headers }, agent: false }, (response) => {
      let text = "";
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text, headers: response.headers }));
    });
    asked.on("error", reject);
    asked.end();
  });
}
const raw = (url: string, text: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1", () => socket.write(text));
    let answer = "";
    socket.on("data", (chunk) => {
      answer += chunk;
    });
    socket.on("error", reject);
    socket.on("close", () => resolve(answer));
  });

describe("the status server answers", () => {
  test("/v1/status and parts of it with the current status", async () => {
    let now = nodeStatus();
    const url = await serve(() => now);
    const get = async (path: string) => (await fetch(url + path)).json();
    expect(await get("/v1/status")).toEqual(now);
    now = nodeStatus({ nodeName: "n2", pods: [WEB] });
    expect(await get("/v1/pods")).toEqual({ at: AT, nodeName: "n2", pods: [WEB], refusedManifests: [] });
    expect(await get("/v1/probes")).toEqual({ at: AT, nodeName: "n2", probes: null });
    expect(await get("/healthz")).toEqual({ status: "ok" });
  });

  test("/v1/probes/history with a pod's entries, up to the limit", async () => {
    const asked: unknown[] = [];
    const probeHistory = (what: object) => {
      asked.push(what);
      return "pod" in what && what.pod === "shop/broken" ? err("EIO") : ok([{ kind: "omitted", at: AT, count: 1 }]);
    };
    const url = await serve(undefined, { probeHistory });
    const get = async (query: string) => (await fetch(`${url}/v1/probes/history${query}`)).json();
    const entries = [{ kind: "omitted", at: AT, count: 1 }];
    expect(await get("?pod=shop%2Fweb&limit=7")).toEqual({ at: AT, nodeName: nodeStatus().nodeName, entries });
    await get("");
    expect(asked).toEqual([{ limit: 7, pod: "shop/web" }, { limit: 50 }]);
    for (const limit of ["0", "1001", "x", "1.5"])
      expect(await get(`?limit=${limit}`)).toMatchObject({ status: 400, detail: expect.stringMatching(/^limit: /) });
    expect(await get("?pod=shop/broken")).toMatchObject({ status: 500, detail: "EIO" });
    // a daemon without a history
    expect(await (await fetch(`${await serve()}/v1/probes/history`)).json()).toMatchObject({ entries: [] });
  });

  test("/readyz with 200 once a pass has ended and the runtime answers", async () => {
    let now = nodeStatus({ pass: null, runtime: null });
    const url = await serve(() => now);
    const get = async () => {
      const answer = await fetch(`${url}/readyz`);
      const { ready, reasons } = (await answer.json()) as { ready: boolean; reasons: string[] };
      return [answer.status, ready, reasons] as const;
    };
    const [status, ready, reasons] = await get();
    expect([status, ready, reasons.length]).toEqual([503, false, 2]);
    now = nodeStatus({ runtime: null });
    expect(await get()).toEqual([503, false, ["the container runtime does not answer"]]);
    now = nodeStatus({ runtime: null, mode: "observe" });
    expect((await get())[0]).toBe(200);
    now = nodeStatus();
    expect(await get()).toEqual([200, true, []]);
  });

  test("/v1/events with the events since a time", async () => {
    const events = [
      seenEvent("Pulled", WEB, { at: earlier(60) }),
      seenEvent("Created", WEB, { at: earlier(30) }),
      seenEvent("BackOff", CRASHING, { at: earlier(10) }),
    ];
    const url = await serve(() => nodeStatus({ events }));
    const get = async (query: string) =>
      (await (await fetch(`${url}/v1/events${query}`)).json()) as { events?: readonly SeenEvent[] };
    expect((await get("")).events).toEqual(events);
    expect((await get(`?since=${earlier(30)}`)).events).toEqual(events.slice(1));
    expect((await get("?since=2026-11-22T12:59:55%2B01:00")).events).toEqual([]);
    expect(await get("?since=yesterday")).toMatchObject({ status: 400, code: "bad_request" });
  });

  test("500 when the status cannot be computed, and continues to serve", async () => {
    let fails = true;
    const url = await serve(() => {
      if (fails) throw new Error("no records");
      return nodeStatus();
    });
    expect(await (await fetch(`${url}/v1/status`)).json()).toMatchObject({ status: 500, detail: "no records" });
    fails = false;
    expect((await fetch(`${url}/v1/status`)).status).toBe(200);
  });
});

describe("the status server refuses", () => {
  test("foreign Host headers, against DNS rebinding", async () => {
    const url = await serve();
    for (const host of ["evil.example", "127.0.0.1.evil.example:80"])
      expect((await ask(url, { host, path: "/v1/status" })).status, host).toBe(403);
    for (const host of ["localhost:1", "n1", "[::1]"]) expect((await ask(url, { host })).status, host).toBe(200);
    expect((await ask(url, {})).headers["access-control-allow-origin"]).toBeUndefined();
  });

  test("methods other than GET, bodies, unknown paths and invalid targets", async () => {
    const url = await serve();
    for (const method of ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"]) {
      const answer = await ask(url, { method });
      expect([answer.status, answer.headers["allow"]], method).toEqual([405, "GET"]);
    }
    expect((await ask(url, { headers: { "transfer-encoding": "chunked" } })).status).toBe(413);
    expect(await raw(url, "GET /healthz HTTP/1.1\r\nHost: n1\r\nContent-Length: 9\r\n\r\n")).toMatch(/^HTTP\/1.1 413 /);
    expect(await raw(url, "GET /healthz HTTP/1.1\r\nHost: \r\n\r\n")).toMatch(/^HTTP\/1.1 403 /);
    expect((await ask(url, { path: "/v1/pods/" })).status).toBe(404);
    expect((await ask(url, { path: "/../etc/passwd" })).status).toBe(404);
    expect(await raw(url, "GET http://127.0.0.1/healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")).toMatch(
      /^HTTP\/1.1 400 /,
    );
    expect(await raw(url, "GET /healthz HTTP/1.0\r\n\r\n")).toMatch(/^HTTP\/1.1 403 /);
    expect(await raw(url, `GET /${"a".repeat(20_000)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`)).toMatch(/^HTTP\/1.1 431 /);
    expect(await raw(url, "nonsense\r\n\r\n")).toMatch(/^HTTP\/1.1 400 /);
  });

  test("to start on an address in use, with one line", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => taken.once("listening", resolve));
    const { port } = taken.address() as { port: number };
    const listen = { host: "127.0.0.1", port };
    const started = await startStatusServer({ listen, status: nodeStatus, metrics: daemonMetrics(), ownNames: [] });
    expect(started).toEqual({
      ok: false,
      error: `statusListen: cannot listen on 127.0.0.1:${port}: EADDRINUSE: another program listens there, perhaps another nodewise: name another port, or off`,
    });
    taken.close();
  });

  test("more connections than its limit, and closing it cuts the open ones", async () => {
    const url = await serve();
    const sockets = Array.from({ length: 40 }, () => connect(Number(new URL(url).port), "127.0.0.1"));
    const closed = sockets.map(
      (socket) =>
        new Promise<void>((resolve) => {
          socket.on("error", () => {});
          socket.on("close", () => resolve());
        }),
    );
    await Promise.race([Promise.all(closed.slice(32)), Promise.any(closed)]);
    await running.splice(0)[0]?.close();
    await Promise.all(closed);
  });
});
