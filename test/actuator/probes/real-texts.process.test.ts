import { execFile } from "node:child_process";
import { createServer } from "node:http";
import { createServer as createTcp } from "node:net";
import { afterAll, expect, test } from "vitest";
import { attempt, type ProbeDeps } from "../../../actuator/probes/engine/attempt.ts";
import { probeEvent } from "../../../api/decide/probes/worker.ts";
import type { ProbeHandler, ProbeType } from "../../../api/model/probe-spec.ts";
import captured from "../../data/real-probes.json" with { type: "json" };
import { healthServer } from "./health-server.ts";
import { getAt, Servers, TARGET } from "./servers.ts";

/** Compares the texts of a real kubelet 1.36.3 about servers and commands with those of the handlers here. */
const servers = new Servers();
afterAll(() => servers.close());

/** Runs a command here as a runtime would run it in a container. */
const exec: ProbeDeps["exec"] = (_id, [file = "", ...args]) =>
  new Promise((resolve) => {
    execFile(file, args, { maxBuffer: 2 ** 20 }, (error, stdout, stderr) => {
      const exitCode = typeof error?.code === "number" ? error.code : 0;
      resolve({ ok: true, value: { exitCode, stdout, stderr } });
    });
  });
const HOST = /(?:\d+\.){3}\d+:\d+/g;
async function said(type: ProbeType, handler: ProbeHandler, timeoutMs = 20_000): Promise<string | undefined> {
  const outcome = await attempt({ handler, timeoutMs, target: TARGET }, { exec });
  return probeEvent(type, outcome)?.message.replace(HOST, "HOST");
}
/** The texts of one capture, with addresses replaced by HOST. */
const textsOf = (name: string): readonly string[] =>
  (captured.find((one) => one.name === name)?.events ?? [])
    .filter(({ type }) => type === "Warning")
    .map(({ message }) => message.replace(HOST, "HOST"));
const commandOf = (name: string, type: "livenessProbe" | "readinessProbe"): readonly string[] => {
  const [container] = captured.find((one) => one.name === name)?.spec.containers ?? [];
  const probe = (container as Readonly<Record<string, { readonly exec?: { readonly command: string[] } }>>)[type];
  return probe?.exec?.command ?? [];
};
const answering = (status: number, headers: Readonly<Record<string, string>> = {}): Promise<number> =>
  servers.listen(createServer((_request, response) => void response.writeHead(status, headers).end("secret")));

test("exec probes have the real kubelet's texts: stdout, then stderr, at most 10 KiB", async () => {
  const both = await said("liveness", { exec: commandOf("exec-exit-3-output", "livenessProbe") });
  expect(textsOf("exec-exit-3-output")).toEqual([both]);
  expect(textsOf("live-grace")).toEqual([await said("liveness", { exec: commandOf("live-grace", "livenessProbe") })]);
  const long = await said("readiness", { exec: commandOf("exec-long-output", "readinessProbe") });
  const [real = ""] = textsOf("exec-long-output");
  // the captured text is truncated, and contains its original length
  const [, length] = /\.\.\.\((\d+) characters\)$/.exec(real) ?? [];
  expect(long).toHaveLength(Number(length));
  expect(long?.startsWith(real.replace(/\.\.\.\(.*$/, ""))).toBe(true);
});

test("HTTP probes have the real kubelet's texts: status without body, refusals and redirects", async () => {
  const statuses = { "http-400": 400, "http-500-body": 500 };
  for (const [name, status] of Object.entries(statuses))
    expect(textsOf(name)).toContain(await said("readiness", { http: getAt(await answering(status)) }));
  expect(textsOf("http-refused")).toContain(await said("readiness", { http: getAt(1) }));
  expect(textsOf("http-400")).toContain(await said("readiness", { http: getAt(1) }));
  // the server answers once, and is closed before the redirected request arrives
  const once = createTcp((socket) => {
    once.close();
    const location = `HTTP/1.1 302 Found\r\nLocation: /ok\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`;
    socket.once("data", () => socket.end(location));
  });
  const port = await servers.listen(once);
  expect(textsOf("http-302-same-host")).toContain(await said("readiness", { http: getAt(port) }));
  const resets = await servers.raw("", "reset");
  expect(textsOf("http-500-body").map(unnamed)).toContain(
    unnamed((await said("readiness", { http: getAt(resets) })) ?? ""),
  );
});
/** Texts with two addresses differ in the form of the client's own port, so both addresses are replaced. */
const unnamed = (text: string): string => text.replace(/HOST->HOST/, "ENDS");

test("gRPC probes have the real kubelet's texts: not serving, and refused", async () => {
  await using down = await healthServer((_call, answer) => answer(null, { status: "NOT_SERVING" }));
  const service = "";
  expect(textsOf("grpc-flip")).toEqual([await said("readiness", { grpc: { port: down.port, service } })]);
  expect(textsOf("grpc-refused")).toEqual([await said("readiness", { grpc: { port: 1, service } }, 1000)]);
});
