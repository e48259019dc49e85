import { connect } from "node:net";
import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import { expect, onTestFinished, test, vi } from "vitest";
import type { ConnectionOptions } from "../../../actuator/containerd/connection.ts";
import type { PodRuntime } from "../../../actuator/containerd/cri.ts";
import { faultOf } from "../../../actuator/containerd/fault.ts";
import { openPodRuntime } from "../../../actuator/containerd/pods.ts";
import { type Failure, startMeddler } from "../../e2e/containerd/meddler.ts";
import { must } from "../../e2e/containerd/pods.ts";
import { PATIENT } from "../../patient.ts";
import { EMPTY, fakeConnection, sockets } from "./fake-runtime.ts";

const { dir, listen, serve } = sockets();
const TIMEOUT_MS = 300;
const PATIENT_MS = 30_000;

function open(options: ConnectionOptions): PodRuntime {
  const runtime = openPodRuntime(options);
  if (!runtime.ok) throw new Error(runtime.error);
  onTestFinished(runtime.value.close);
  return runtime.value;
}
const pipes = (): number => process.getActiveResourcesInfo().filter((name) => name === "PipeWrap").length;
const until = (holds: () => boolean): Promise<true> => vi.waitUntil(holds, PATIENT);

test("every call to a hanging runtime ends at its deadline, and no socket remains", async () => {
  const before = pipes();
  const endpoint = await serve(EMPTY, { fails: () => "hang" });
  const listening = pipes();
  const runtime = open({ endpoint, timeoutMs: TIMEOUT_MS });
  for (let round = 0; round < 3; round++) {
    const answers = await Promise.all([
      ...Array.from({ length: 10 }, () => runtime.pods()),
      runtime.startContainer("c"),
      runtime.removeSandbox("s"),
    ]);
    for (const answer of answers)
      expect(answer).toMatchObject({
        ok: false,
        error: { code: "DEADLINE_EXCEEDED", message: expect.stringContaining(`within ${TIMEOUT_MS} ms`) },
      });
    // each round has one connection, with one socket in the client and one in the server
    await until(() => pipes() <= listening + 2);
  }
  runtime.close();
  await until(() => pipes() <= listening);
  expect(listening).toBeGreaterThanOrEqual(before);
});

test("close ends waiting calls, and later calls fail", async () => {
  const held: Failure[] = [];
  const endpoint = await serve(EMPTY, {
    fails: () => {
      held.push("hang");
      return "hang";
    },
  });
  const runtime = open({ endpoint, timeoutMs: 3000 });
  const waiting = runtime.startContainer("c");
  await until(() => held.length === 1);
  runtime.close();
  expect(await runtime.pods()).toEqual({
    ok: false,
    error: { call: "ListPodSandbox", code: "CANCELLED", message: "the connection was closed before the call" },
  });
  expect((await waiting).ok).toBe(false);
  expect(held).toHaveLength(1);
  runtime.close();
});

test("a DEADLINE_EXCEEDED from the runtime is reported in its words, and keeps the connection", async () => {
  const details = "failed to exec in container: timeout 1s exceeded: context deadline exceeded";
  const failing = {
    fails: (method: string): Failure | undefined =>
      method === "ExecSync" ? { code: status.DEADLINE_EXCEEDED, details } : undefined,
  };
  const [, served = ""] = (await serve(EMPTY, failing)).split("unix://");
  let connections = 0;
  const endpoint = await listen((socket) => {
    connections++;
    socket.pipe(connect(served)).pipe(socket);
  });
  const runtime = open({ endpoint, timeoutMs: PATIENT_MS });
  await must(runtime.pods());
  for (let i = 0; i < 3; i++)
    expect(await runtime.exec("c", ["sleep", "9"], 1)).toEqual({
      ok: false,
      error: { call: "ExecSync", code: "DEADLINE_EXCEEDED", message: details },
    });
  await must(runtime.pods());
  expect(connections).toBe(1);
  const own = { code: status.DEADLINE_EXCEEDED, details: "Deadline exceeded after 1.2s" };
  expect(faultOf({ call: "ExecSync", socketPath: "/s", timeoutMs: 7 }, own).message).toContain("no answer within 7 ms");
});

test("a runtime too old for one call says so, and other calls work", async () => {
  const details = "method UpdateContainerResources not implemented";
  const failing = {
    fails: (method: string): Failure | undefined =>
      method === "UpdateContainerResources" ? { code: status.UNIMPLEMENTED, details } : undefined,
  };
  const endpoint = await serve({ ...EMPTY, StartContainer: {} }, failing);
  const runtime = open({ endpoint, timeoutMs: PATIENT_MS });
  expect(await runtime.updateContainer("c", { cpuShares: 2 })).toEqual({
    ok: false,
    error: {
      call: "UpdateContainerResources",
      code: "UNIMPLEMENTED",
      message: `${details}; this runtime is too old for the call`,
    },
  });
  expect(await runtime.startContainer("c")).toEqual({ ok: true, value: null });
});

test("a runtime without CRI v1 is reported with the missing service", async () => {
  const details = "unknown service runtime.v1.RuntimeService";
  const endpoint = await serve(EMPTY, { fails: () => ({ code: status.UNIMPLEMENTED, details }) });
  const answer = await open({ endpoint, timeoutMs: PATIENT_MS }).pods();
  expect(answer).toMatchObject({
    ok: false,
    error: { call: "ListPodSandbox", code: "UNIMPLEMENTED", message: expect.stringContaining("v1alpha2") },
  });
});

test("the next call reaches a runtime that was restarted", async () => {
  const place = dir();
  const none = pipes();
  const runtime = open({ endpoint: join(place, "meddler.sock"), timeoutMs: PATIENT_MS });
  for (let life = 0; life < 3; life++) {
    expect(await runtime.pods()).toMatchObject({ ok: false, error: { code: "UNAVAILABLE" } });
    const server = await startMeddler(place, fakeConnection(EMPTY), () => ({}));
    expect((await must(runtime.pods())).size).toBe(0);
    await server.close();
    // until the client notices the closed connection, a new call would fail as interrupted
    await until(() => pipes() <= none);
  }
});
