import { readdirSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import type { PodResourcesSource } from "../../../actuator/podresources/live-source.ts";
import {
  allocatableResources,
  alphaPodResources,
  podResources,
  podResourcesOf,
} from "../../../actuator/podresources/server.ts";
import { err, ok, type Result } from "../../../api/base/result.ts";
import { PREFACE, rawConnection, SETTINGS } from "../grpc/http2.ts";
import { clientOf, FULL, type ServedAnswer, scratch, servedPod, serving, sourceWith } from "./served.ts";

const A = { podName: "a", podNamespace: "default" };
/** Converts fields that have no value on the wire to null. */
const read = (reported: unknown): unknown =>
  JSON.parse(JSON.stringify(reported), (key, value) => (key === "topology" && value === null ? undefined : value));

describe("a call", () => {
  test("returns the source's values over the socket", async () => {
    const ask = clientOf((await serving()).path);
    expect(read(await ask("List"))).toEqual({ ok: podResources(FULL) });
    expect(read(await ask("GetAllocatableResources"))).toEqual({ ok: allocatableResources(FULL) });
    const found = podResourcesOf(FULL, A);
    expect(read(await ask("Get", A))).toEqual({ ok: found.ok && found.value });
    expect(read(await ask("v1alpha1.List"))).toEqual({ ok: alphaPodResources(FULL) });
  });

  test("for an unknown pod fails as in the kubelet, and each call is reported with its code", async () => {
    const calls: string[] = [];
    const ask = clientOf((await serving({ onCall: (method, code) => calls.push(`${method} ${code}`) })).path);
    expect(await ask("Get", { podName: "x", podNamespace: "y" })).toEqual({
      code: "UNKNOWN",
      message: "pod x in namespace y not found",
    });
    expect(await ask("Get")).toEqual({ code: "UNKNOWN", message: "pod  in namespace  not found" });
    await ask("List");
    expect(calls).toEqual(["Get UNKNOWN", "Get UNKNOWN", "List OK"]);
  });

  test("sees the source's current state, and fails with the reason while there is none", async () => {
    let now: Result<PodResourcesSource, string> = err("the first turn has not ended yet");
    const ask = clientOf((await serving({ source: () => now })).path);
    expect(await ask("List")).toEqual({ code: "UNAVAILABLE", message: "the first turn has not ended yet" });
    now = ok(sourceWith({ activePods: [servedPod("one", ["c"])] }));
    const names = async () => JSON.stringify(await ask("List")).match(/"name":"(one|two)"/g);
    expect(await names()).toEqual(['"name":"one"']);
    now = ok(sourceWith({ activePods: [servedPod("two", ["c"])] }));
    expect(await names()).toEqual(['"name":"two"']);
  });

  test("beyond ten at once is refused as RESOURCE_EXHAUSTED, and succeeds after a pause", async () => {
    const calls: string[] = [];
    const ask = clientOf((await serving({ onCall: (_, code) => calls.push(code) })).path);
    // on a slow machine the limit may recover meanwhile: then the loop sends more requests
    const reported: ServedAnswer[] = [];
    while (!reported.some((one) => "code" in one))
      reported.push(...(await Promise.all(Array.from({ length: 60 }, () => ask("List")))));
    const refused = reported.filter((one) => "code" in one);
    expect(reported.slice(0, 10).filter((one) => "code" in one)).toEqual([]);
    expect(new Set(refused.map((one) => JSON.stringify(one)))).toEqual(
      new Set([JSON.stringify({ code: "RESOURCE_EXHAUSTED", message: "rejected by rate limit" })]),
    );
    expect(calls.filter((code) => code === "RESOURCE_EXHAUSTED")).toHaveLength(refused.length);
    await expect.poll(() => ask("List")).toHaveProperty("ok");
  });

  test("with bytes that cannot be decoded fails without harm to others", async () => {
    const ask = clientOf((await serving()).path);
    expect(await ask("Get", {}, Buffer.from([0xff]))).toHaveProperty("code", "INTERNAL");
    expect(await ask("Get", {}, Buffer.from([0x0a]))).toHaveProperty("code", "INTERNAL");
    expect(await ask("Get", {}, Buffer.alloc(5 * 1024 * 1024, 1))).toHaveProperty("code", "RESOURCE_EXHAUSTED");
    expect(await ask("Get", A)).toHaveProperty("ok");
  });

  test("fails alone when its source throws", async () => {
    let isBroken = true;
    const source = () => {
      if (isBroken) throw new Error("broken");
      return ok(FULL);
    };
    const ask = clientOf((await serving({ source })).path);
    expect(await ask("List")).toHaveProperty("code", "UNKNOWN");
    isBroken = false;
    expect(await ask("List")).toHaveProperty("ok");
  });
});

describe("connections", () => {
  const raw = (path: string): Promise<Socket> =>
    new Promise((done) => {
      const socket = connect(path, () => done(socket)).on("error", () => undefined);
      onTestFinished(() => void socket.destroy());
    });

  test("of another protocol, or silent ones, do not block other clients", async () => {
    const { path } = await serving();
    const sockets = await Promise.all(Array.from({ length: 20 }, () => raw(path)));
    for (const [i, socket] of sockets.entries()) if (i % 2 === 0) socket.write(Buffer.alloc(100_000, `GET / ${i}\r\n`));
    expect(await clientOf(path)("Get", A)).toHaveProperty("ok");
  });

  test("that are half closed are ended, even without a request", async () => {
    const { path } = await serving();
    for (const bytes of [PREFACE, Buffer.concat([PREFACE, SETTINGS])]) {
      const { socket, closed } = await rawConnection(path);
      socket.end(bytes);
      await closed;
    }
  });

  test("end with the server, and clients reconnect when it serves the same path again", async () => {
    const directory = scratch();
    const first = await serving({ directory });
    const ask = clientOf(first.path);
    await ask("List");
    const idle = await raw(first.path);
    const ended = new Promise<void>((done) => void idle.once("close", () => done()));
    await first.close();
    await ended;
    expect(readdirSync(directory)).toEqual([]);
    expect(await ask("List")).toHaveProperty("code", "UNAVAILABLE");
    await serving({ directory });
    await expect.poll(() => ask("List")).toHaveProperty("ok");
  });
});
