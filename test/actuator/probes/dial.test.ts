import { createServer, Socket } from "node:net";
import { afterAll, expect, test } from "vitest";
import { httpProbe } from "../../../actuator/probes/http/http.ts";
import type { ProbeTarget } from "../../../actuator/probes/net/dial.ts";
import { dial, OpenConnections } from "../../../actuator/probes/net/dial.ts";
import { getAt, reportOf, Servers, TARGET } from "./servers.ts";

const servers = new Servers();
afterAll(() => servers.close());
const LONG_MS = 20_000;

test("a reset connection is reported with both addresses, however the host was written", async () => {
  const reset = () => createServer((socket) => socket.once("data", () => socket.resetAndDestroy()));
  const port = await servers.listen(reset(), "::1");
  for (const host of ["::1", "0:0:0:0:0:0:0:1"]) {
    const [result, text] = reportOf(await httpProbe(getAt(port, { host }), TARGET, LONG_MS));
    expect(result).toBe("failure");
    expect(text).toMatch(
      new RegExp(`: read tcp \\[::1\\]:[1-9]\\d*->\\[::1\\]:${port}: read: connection reset by peer$`),
    );
  }
});

test.each(["127.0.0.1", "localhost"])("a redirect to port 65536 at %s is an invalid port", async (host) => {
  const port = await servers.raw(`HTTP/1.1 302 x\r\nLocation: http://${host}:65536/\r\nContent-Length: 0\r\n\r\n`);
  const outcome = await httpProbe(getAt(port, { host }), TARGET, LONG_MS);
  const text = `Get "http://${host}:65536/": dial tcp: address 65536: invalid port`;
  expect(outcome).toEqual({ result: "failure", output: text });
});

test("closing all connections cancels a dial under way and refuses new ones", async () => {
  const port = await servers.serve();
  const opened = new OpenConnections();
  const dialed = dial("127.0.0.1", port, opened);
  opened.closeAll();
  const words = `dial tcp 127.0.0.1:${port}: operation was canceled`;
  expect(await dialed).toEqual({ ok: false, error: { words, wasOpen: false } });
  expect(opened.add(new Socket()).destroyed).toBe(true);
});

test("requests are reused only for the same pod with the same ports", async () => {
  const serving = (text: string) => servers.raw(`HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n${text}`);
  const [a, b] = [await serving("a"), await serving("b")];
  const get = getAt(0, { port: "web" });
  const [atA, atB] = [a, b].map((containerPort) => ({ ...TARGET, ports: [{ name: "web", containerPort }] }));
  const asked = async (target: ProbeTarget = TARGET) => reportOf(await httpProbe(get, target, LONG_MS))[1];
  expect(await asked(atA)).toBe("a");
  expect(await asked(atB)).toBe("b");
  const refused = `Get "http://127.0.0.2:${b}/": dial tcp 127.0.0.2:${b}: connect: connection refused`;
  expect(await asked({ ...TARGET, ...atB, podIP: "127.0.0.2" })).toBe(refused);
});
