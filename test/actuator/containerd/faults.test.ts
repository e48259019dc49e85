import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import { describe, expect, test } from "vitest";
import type { RuntimeFault } from "../../../actuator/containerd/cri.ts";
import { faultOf, faultText } from "../../../actuator/containerd/fault.ts";
import { openRuntime } from "../../../actuator/containerd/runtime.ts";
import { socketPathOf } from "../../../actuator/core/addresses.ts";
import { startMeddler } from "../../e2e/containerd/meddler.ts";
import { criContainer, EMPTY, fakeConnection, sockets } from "./fake-runtime.ts";

const { dir, serve, listen } = sockets();
/** The timeout for calls that are never answered. */
const TIMEOUT_MS = 300;
const PATIENT_MS = 30_000;

async function listAt(endpoint: string, timeoutMs = PATIENT_MS): Promise<RuntimeFault | "listed"> {
  const runtime = openRuntime({ endpoint, timeoutMs });
  if (!runtime.ok) throw new Error(runtime.error);
  try {
    const listed = await runtime.value.list();
    return listed.ok ? "listed" : listed.error;
  } finally {
    runtime.value.close();
  }
}

describe("a runtime endpoint", () => {
  test.each(["unix:///run/containerd/containerd.sock", "/run/containerd/containerd.sock"])(
    "%s is accepted",
    (given) => {
      expect(socketPathOf(given)).toEqual({ ok: true, value: "/run/containerd/containerd.sock" });
    },
  );
  test.each([
    ["tcp://127.0.0.1:1234", /only unix sockets/],
    ["run/containerd.sock", /must be a path from `\/`/],
    ["unix://run/containerd.sock", /must be a path from `\/`/],
    ["", /must be a path from `\/`/],
    ["/run/a\nb", /control characters/],
    [`/${"é".repeat(54)}`, /at most 107 bytes, this has 109/],
  ])("%j is refused with the reason", (given, reason) => {
    const path = socketPathOf(given);
    expect(path.ok ? "taken" : path.error).toMatch(reason);
    expect(openRuntime({ endpoint: given }).ok).toBe(false);
  });
});

describe("listing an unreachable runtime", () => {
  test("without a socket names the call and the socket", async () => {
    const socket = join(dir(), "none.sock");
    expect(await listAt(socket)).toEqual({
      call: "ListImages",
      code: "UNAVAILABLE",
      message: `connect ENOENT ${socket}; there is no socket at ${socket}: is the runtime running, and is the endpoint right?`,
    });
  });

  test("at a file instead of a socket says that nothing listens", async () => {
    const file = join(dir(), "file");
    writeFileSync(file, "");
    expect(await listAt(file)).toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringContaining("nothing listens at"),
    });
  });

  test("that never answers ends at the deadline", async () => {
    const socket = await listen(() => undefined);
    expect(await listAt(socket, TIMEOUT_MS)).toMatchObject({
      call: "ListImages",
      code: "DEADLINE_EXCEEDED",
      message: expect.stringContaining(`the runtime at ${socket} gave no answer within ${TIMEOUT_MS} ms`),
    });
  });

  test("that hangs in one call ends at the deadline and names the call", async () => {
    const endpoint = await serve(EMPTY, { fails: (method) => (method === "ListPodSandbox" ? "hang" : undefined) }, []);
    // enough time for the other calls to be answered: the error names the first unanswered call
    expect(await listAt(endpoint, 3000)).toMatchObject({ call: "ListPodSandbox", code: "DEADLINE_EXCEEDED" });
  });

  test("that speaks another protocol is UNAVAILABLE", async () => {
    const socket = await listen((peer) => void peer.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    expect(await listAt(socket)).toMatchObject({ call: "ListImages", code: "UNAVAILABLE" });
  });

  test("without CRI v1 says how to enable it", async () => {
    const details = "unknown service runtime.v1.ImageService";
    const endpoint = await serve(EMPTY, { fails: () => ({ code: status.UNIMPLEMENTED, details }) });
    const fault = await listAt(endpoint);
    expect(fault).toMatchObject({ call: "ListImages", code: "UNIMPLEMENTED" });
    expect(fault).toMatchObject({ message: expect.stringMatching(/^unknown service .*disabled_plugins.*v1alpha2/) });
  });

  test.each(["ListImages", "ListContainers", "ListPodSandbox", "ImageFsInfo", "Status"] as const)(
    "fails as a whole when %s fails",
    async (broken) => {
      const failure = { code: status.UNKNOWN, details: "database\n  is closed" };
      const endpoint = await serve(EMPTY, { fails: (method) => (method === broken ? failure : undefined) }, []);
      expect(await listAt(endpoint)).toEqual({ call: broken, code: "UNKNOWN", message: "database is closed" });
    },
  );

  test("succeeds on a new connection after failures", async () => {
    const socket = join(dir(), "meddler.sock");
    const runtime = openRuntime({ endpoint: socket, timeoutMs: PATIENT_MS });
    if (!runtime.ok) throw new Error(runtime.error);
    for (let i = 0; i < 3; i++) expect((await runtime.value.list()).ok).toBe(false);
    const server = await startMeddler(join(socket, ".."), fakeConnection(EMPTY, []), () => ({}));
    expect(await runtime.value.list()).toMatchObject({ ok: true });
    runtime.value.close();
    await server.close();
  });
});

describe("the text of a fault", () => {
  const failed = { call: "StopContainer", socketPath: "/s.sock", timeoutMs: 5 };
  test.each([
    [status.UNAVAILABLE, "connect EACCES /s.sock", /this user may not use \/s.sock: run as root$/],
    [status.UNIMPLEMENTED, "unknown method X for service runtime.v1.RuntimeService", /this runtime is too old/],
    [status.RESOURCE_EXHAUSTED, "Received message larger than max (70 vs 64)", /larger than this client takes$/],
    [status.RESOURCE_EXHAUSTED, "no space left", /^StopContainer: RESOURCE_EXHAUSTED: no space left$/],
    [status.NOT_FOUND, "", /^StopContainer: NOT_FOUND: the runtime gave no reason$/],
    [
      status.DEADLINE_EXCEEDED,
      "Deadline exceeded after 0.005s,name resolution: 0.001s,metadata filters: 0.000s,time to current attempt start: 0.001s,LB pick: 0.001s,remote_addr=unix:/s.sock",
      /^StopContainer: DEADLINE_EXCEEDED: Deadline exceeded after 0.005s; the runtime at \/s.sock gave no answer/,
    ],
    [
      status.DEADLINE_EXCEEDED,
      "Deadline exceeded after 2.000s,previous attempts: 1,Waiting for LB pick",
      /^StopContainer: DEADLINE_EXCEEDED: Deadline exceeded after 2.000s; the runtime at/,
    ],
    [status.UNKNOWN, "pulling a, b: remote_addr is bad", /^StopContainer: UNKNOWN: pulling a, b: remote_addr is bad$/],
    [99 as status, "odd", /^StopContainer: CODE_99: odd$/],
  ])("for %s %j says what to do", (code, details, expected) => {
    expect(faultText(faultOf(failed, { code, details }))).toMatch(expected);
  });
});

test("an answer larger than the usual 16 MB is accepted", async () => {
  const labels = { "io.kubernetes.pod.name": "x".repeat(2000) };
  const containers = Array.from({ length: 10_000 }, (_, i) => criContainer(`c${i}`, { labels }));
  const Version = { runtimeName: "containerd", runtimeVersion: "1.6.20~ds1" };
  const endpoint = await serve({ ...EMPTY, Version, ListContainers: { containers } });
  const runtime = openRuntime({ endpoint, timeoutMs: PATIENT_MS });
  if (!runtime.ok) throw new Error(runtime.error);
  const inUse = await runtime.value.imagesInUse();
  runtime.value.close();
  expect(inUse.ok && inUse.value.size).toBe(10_000);
});
