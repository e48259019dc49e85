import { createServer } from "node:net";
import { afterAll, expect, test } from "vitest";
import { httpProbe } from "../../../actuator/probes/http/http.ts";
import { tcpProbe } from "../../../actuator/probes/net/dial.ts";
import { PATIENT } from "../../patient.ts";
import { fullListener } from "./full-listener.ts";
import { getAt, reportOf, Servers, TARGET } from "./servers.ts";

const servers = new Servers();
afterAll(() => servers.close());
const LONG_MS = 20_000;
const failure = (output: string) => ({ result: "failure", output });

test("a TCP probe succeeds when the connection opens, by port number, name or number as text", async () => {
  const port = await servers.serve();
  const target = { ...TARGET, ports: [{ name: "db", containerPort: port }] };
  for (const asked of [port, "db", String(port)]) {
    expect(await tcpProbe({ host: "", port: asked }, target, LONG_MS)).toEqual({ result: "success", output: "" });
  }
  expect((await tcpProbe({ host: "localhost", port }, { ...TARGET, podIP: "" }, LONG_MS)).valueOf()).toMatchObject({
    result: "success",
  });
});
test("a TCP probe closes its connection in order, without a reset", async () => {
  const ends: string[] = [];
  const port = await servers.serve((socket) => {
    socket.on("error", ({ message }) => ends.push(message));
    socket.on("end", () => ends.push("end"));
    socket.resume();
  });
  await tcpProbe({ host: "", port }, TARGET, LONG_MS);
  await expect.poll(() => ends, PATIENT).toEqual(["end"]);
});
test("a TCP probe succeeds when the connection is reset right after it opened", async () => {
  const port = await servers.listen(createServer((socket) => socket.resetAndDestroy()));
  for (let i = 0; i < 50; i++) {
    expect(await tcpProbe({ host: "", port }, TARGET, LONG_MS)).toEqual({ result: "success", output: "" });
    const [, text] = reportOf(await httpProbe(getAt(port), TARGET, LONG_MS));
    expect(text).toMatch(/: (read|write) tcp HOST->HOST: /);
  }
});
test("a TCP probe fails when no server listens, or the host does not resolve", async () => {
  expect(await tcpProbe({ host: "", port: 1 }, TARGET, LONG_MS)).toEqual(
    failure("dial tcp 127.0.0.1:1: connect: connection refused"),
  );
  expect(await tcpProbe({ host: "no..name", port: 1 }, TARGET, LONG_MS)).toEqual(
    failure("dial tcp: lookup no..name: no such host"),
  );
});
test("a TCP probe times out when the server does not accept", async () => {
  await using full = await fullListener();
  expect(await tcpProbe({ host: "", port: full.port }, TARGET, 300)).toEqual(
    failure(`dial tcp 127.0.0.1:${full.port}: i/o timeout`),
  );
});
test.each([
  ["nope", 'strconv.Atoi: parsing "nope": invalid syntax'],
  [0, "invalid port number: 0"],
  ["70000", "invalid port number: 70000"],
])("a TCP probe of port %j is an error", async (port, error) => {
  expect(await tcpProbe({ host: "", port }, TARGET, LONG_MS)).toEqual({ error });
});
