import { describe, expect, test } from "vitest";
import type { Connection } from "../../../actuator/containerd/connection.ts";
import type { CriMethod } from "../../../actuator/containerd/messages.ts";
import { containerLayers, podRuntimeOver } from "../../../actuator/containerd/pods.ts";
import { err, ok } from "../../../api/base/result.ts";
import { must } from "../../e2e/containerd/pods.ts";
import { PodsOfFake } from "./fake-pods.ts";
import { fakeConnection } from "./fake-runtime.ts";

const asked = (fake: PodsOfFake, method: CriMethod): string[] =>
  fake.asked.filter(([name]) => name === method).map(([, id]) => id);

describe("the pods of a runtime", () => {
  test("contain what only a status has, newest first", async () => {
    const fake = new PodsOfFake();
    fake.sandbox("s0", { uid: "u1", name: "web", createdAt: 1, state: "SANDBOX_NOTREADY", attempt: 0 });
    fake.sandbox("s1", { uid: "u1", name: "web", createdAt: 2, attempt: 1, ips: ["10.0.0.7", "fd00::7"] });
    fake.sandbox("s2", { uid: "u2", name: "host", createdAt: 3 });
    fake.container("c0", {
      sandbox: "s1",
      createdAt: 4,
      state: "CONTAINER_EXITED",
      exitCode: 137,
      reason: "OOMKilled",
    });
    fake.container("c1", { sandbox: "s1", createdAt: 5, attempt: 1 });
    fake.container("c2", { sandbox: "s2", createdAt: 6, state: "CONTAINER_CREATED" });
    const pods = await must(podRuntimeOver(fake.connection).pods());
    expect([...pods.keys()]).toEqual(["u1", "u2"]);
    expect(pods.get("u1")).toMatchObject({
      namespace: "default",
      name: "web",
      uid: "u1",
      sandboxes: [
        { id: "s1", attempt: 1, isReady: true, createdAtMs: 2, ips: ["10.0.0.7", "fd00::7"] },
        { id: "s0", attempt: 0, isReady: false, createdAtMs: 1, ips: [] },
      ],
    });
    expect(pods.get("u1")?.containers).toEqual([
      {
        id: "c1",
        name: "app",
        attempt: 1,
        sandboxId: "s1",
        state: "running",
        createdAtMs: 5,
        startedAtMs: 105,
        finishedAtMs: null,
        exitCode: 0,
        reason: "",
        message: "",
        image: "registry/app:1",
        imageId: "registry/app@sha256:ref",
        logPath: "/logs/c1",
        labels: {},
        annotations: { note: "c1" },
      },
      expect.objectContaining({ id: "c0", state: "exited", finishedAtMs: 204, exitCode: 137, reason: "OOMKilled" }),
    ]);
    expect(pods.get("u2")?.containers[0]).toMatchObject({ state: "created", startedAtMs: null, finishedAtMs: null });
    expect(pods.get("u2")?.sandboxes[0]).toMatchObject({ isReady: true, ips: [] });
  });

  test("with a sandbox that never started are sorted by its attempt number", async () => {
    const fake = new PodsOfFake();
    fake.sandbox("s1", { uid: "u", createdAt: 0, attempt: 1, state: "SANDBOX_NOTREADY" });
    fake.sandbox("s0", { uid: "u", createdAt: 5, attempt: 0, state: "SANDBOX_NOTREADY" });
    const pods = await must(podRuntimeOver(fake.connection).pods());
    expect(pods.get("u")?.sandboxes.map(({ id, createdAtMs }) => [id, createdAtMs])).toEqual([
      ["s1", 0],
      ["s0", 5],
    ]);
  });

  test("of an idle node cost two calls, and are the same object", async () => {
    const fake = new PodsOfFake();
    fake.fill(110, 2);
    const runtime = podRuntimeOver(fake.connection);
    const first = await must(runtime.pods());
    expect([asked(fake, "ContainerStatus").length, asked(fake, "PodSandboxStatus").length]).toEqual([220, 110]);
    fake.asked.length = 0;
    fake.shuffle();
    expect(await must(runtime.pods())).toBe(first);
    expect(fake.asked.map(([method]) => method)).toEqual(["ListPodSandbox", "ListContainers"]);
  });

  test("request a status only for what changed, once for each state", async () => {
    const fake = new PodsOfFake();
    fake.fill(3, 2);
    const runtime = podRuntimeOver(fake.connection);
    const before = await must(runtime.pods());
    fake.asked.length = 0;
    fake.container("c0-1", { sandbox: "s0", createdAt: 3, state: "CONTAINER_EXITED", exitCode: 3 });
    fake.sandbox("s2", { uid: "u2", name: "pod-2", createdAt: 1, state: "SANDBOX_NOTREADY" });
    for (let pass = 0; pass < 3; pass++) {
      const now = await must(runtime.pods());
      expect(now).not.toBe(before);
      expect(now.get("u0")?.containers.find(({ id }) => id === "c0-1")).toMatchObject({ state: "exited", exitCode: 3 });
      expect(now.get("u2")?.sandboxes[0]).toMatchObject({ isReady: false, ips: [] });
    }
    expect(asked(fake, "ContainerStatus")).toEqual(["c0-1"]);
    expect(asked(fake, "PodSandboxStatus")).toEqual([]);
  });

  test("believe a status newer than the list, and do not request it again", async () => {
    const fake = new PodsOfFake();
    fake.sandbox("s", { uid: "u", createdAt: 1 });
    fake.container("c", { sandbox: "s", createdAt: 2, state: "CONTAINER_RUNNING" });
    fake.before = () => fake.container("c", { sandbox: "s", createdAt: 2, state: "CONTAINER_EXITED", exitCode: 1 });
    const runtime = podRuntimeOver(fake.connection);
    expect((await must(runtime.pods())).get("u")?.containers[0]).toMatchObject({ state: "exited", exitCode: 1 });
    await must(runtime.pods());
    expect(asked(fake, "ContainerStatus")).toEqual(["c"]);
  });

  test("leave out what was removed before its status is requested, and forget it when no list contains it", async () => {
    const fake = new PodsOfFake();
    fake.fill(2, 2);
    fake.faults.set("c1-0", "NOT_FOUND").set("s0", "NOT_FOUND");
    const runtime = podRuntimeOver(fake.connection);
    const pods = await must(runtime.pods());
    expect(pods.get("u1")?.containers.map(({ id }) => id)).toEqual(["c1-1"]);
    // containers without labels and containers of a removed sandbox belong to no pod
    expect([...pods.keys()]).toEqual(["u1"]);
    fake.faults.clear();
    fake.drop("s1", "c1-0", "c1-1");
    expect([...(await must(runtime.pods())).keys()]).toEqual(["u0"]);
    fake.asked.length = 0;
    fake.fill(2, 2);
    expect((await must(runtime.pods())).get("u1")?.containers).toHaveLength(2);
    expect(asked(fake, "ContainerStatus").toSorted()).toEqual(["c1-0", "c1-1"]);
    fake.drop("c1-0");
    expect((await must(runtime.pods())).get("u1")?.containers.map(({ id }) => id)).toEqual(["c1-1"]);
  });

  test("assign a container by its labels when its sandbox is in no list", async () => {
    const fake = new PodsOfFake();
    const labels = {
      "io.kubernetes.pod.uid": "u",
      "io.kubernetes.pod.name": "web",
      "io.kubernetes.pod.namespace": "shop",
    };
    fake.container("c", { sandbox: "gone", createdAt: 1, labels });
    const pods = await must(podRuntimeOver(fake.connection).pods());
    expect(pods.get("u")).toMatchObject({ name: "web", namespace: "shop", sandboxes: [], containers: [{ id: "c" }] });
  });

  test.each(["ListPodSandbox", "ListContainers"] as const)("fail as a whole when %s fails", async (broken) => {
    const fake = new PodsOfFake();
    fake.fill(1, 1);
    const runtime = podRuntimeOver(fake.connection);
    const pods = await must(runtime.pods());
    fake.faults.set(broken, "UNKNOWN");
    expect(await runtime.pods()).toMatchObject({ ok: false, error: { call: broken, code: "UNKNOWN" } });
    fake.faults.clear();
    expect(await must(runtime.pods())).toBe(pods);
  });

  test.each(["s1", "c1-1"])(
    "fail as a whole when the status of %s fails, without requesting the others again",
    async (id) => {
      const fake = new PodsOfFake();
      fake.fill(2, 2);
      fake.faults.set(id, "DEADLINE_EXCEEDED");
      const runtime = podRuntimeOver(fake.connection);
      expect(await runtime.pods()).toMatchObject({ ok: false, error: { code: "DEADLINE_EXCEEDED" } });
      fake.faults.clear();
      const { length } = fake.asked;
      const pods = await must(runtime.pods());
      expect(pods.get("u1")?.containers).toHaveLength(2);
      const again = fake.asked.slice(length).map(([, of]) => of);
      expect(again).toContain(id);
      expect(again).not.toContain(id === "s1" ? "s0" : "c0-0");
    },
  );

  test("keep after a fault the statuses that were read before it", async () => {
    const fake = new PodsOfFake();
    fake.fill(1, 1);
    const runtime = podRuntimeOver(fake.connection);
    expect((await must(runtime.pods())).get("u0")?.containers[0]?.state).toBe("running");
    fake.container("c0-0", { sandbox: "s0", createdAt: 2, state: "CONTAINER_EXITED", exitCode: 4 });
    fake.container("late", { sandbox: "s0", createdAt: 9 });
    fake.faults.set("late", "UNAVAILABLE");
    expect((await runtime.pods()).ok).toBe(false);
    fake.drop("late");
    expect((await must(runtime.pods())).get("u0")?.containers).toMatchObject([{ state: "exited", exitCode: 4 }]);
    expect(asked(fake, "ContainerStatus")).toEqual(["c0-0", "c0-0", "late"]);
  });

  test("keep a container as it was while its status fails, and request it again", async () => {
    const fake = new PodsOfFake();
    fake.fill(1, 2);
    const runtime = podRuntimeOver(fake.connection);
    const [, before] = (await must(runtime.pods())).get("u0")?.containers ?? [];
    expect(before).toMatchObject({ id: "c0-0", state: "running" });
    fake.container("c0-0", { sandbox: "s0", createdAt: 2, state: "CONTAINER_EXITED", exitCode: 1 });
    fake.container("late", { sandbox: "s0", createdAt: 9, state: "CONTAINER_EXITED" });
    fake.faults.set("c0-0", "UNKNOWN").set("late", "INTERNAL");
    const containers = (await must(runtime.pods())).get("u0")?.containers;
    expect(containers?.map(({ id }) => id)).toEqual(["late", "c0-1", "c0-0"]);
    expect(containers?.[2]).toBe(before);
    expect(containers?.[0]).toMatchObject({
      state: "exited",
      exitCode: 255,
      reason: "Unknown",
      message: "ContainerStatus: INTERNAL: words",
      imageId: "registry/app@sha256:ref",
    });
    fake.faults.clear();
    const after = (await must(runtime.pods())).get("u0")?.containers;
    expect(after?.[2]).toMatchObject({ state: "exited", exitCode: 1 });
    expect(after?.[0]).toMatchObject({ exitCode: 0, reason: "" });
  });
});

describe("the runtime's calls", () => {
  /** Answers every call in the same way; `calls` lists each request with its additional deadline. */
  const answering = (code: string | null, answer: unknown = {}) => {
    const calls: [CriMethod, unknown, number][] = [];
    const call: Connection["call"] = async (method, request, extraMs = 0) => {
      calls.push([method, request, extraMs]);
      return code === null ? ok(answer as never) : err({ call: method, code, message: "words" });
    };
    return { calls, runtime: podRuntimeOver({ ...fakeConnection({}), call, timeoutMs: 500 }) };
  };

  test("treat NOT_FOUND as success when stopping and removing", async () => {
    const { runtime } = answering("NOT_FOUND");
    for (const end of [
      runtime.stopSandbox("s"),
      runtime.removeSandbox("s"),
      runtime.stopContainer("c", 3),
      runtime.removeContainer("c"),
      runtime.image("i"),
    ])
      expect(await end).toEqual({ ok: true, value: null });
    const config = { metadata: { name: "a", attempt: 0 }, image: { image: "i" } };
    const sandbox = { metadata: { name: "a", uid: "u", namespace: "n", attempt: 0 } };
    for (const [call, begin] of [
      ["StartContainer", runtime.startContainer("c")],
      ["UpdateContainerResources", runtime.updateContainer("c", {})],
      ["ExecSync", runtime.exec("c", ["a"], 1)],
      ["PullImage", runtime.pull("i")],
      ["CreateContainer", runtime.createContainer("s", config, sandbox)],
    ] as const)
      expect(await begin).toEqual({ ok: false, error: { call, code: "NOT_FOUND", message: "words" } });
  });

  test("return any other error", async () => {
    const { runtime } = answering("UNIMPLEMENTED");
    for (const answer of [
      runtime.stopContainer("c", 0),
      runtime.removeSandbox("s"),
      runtime.image("i"),
      runtime.updateContainer("c", {}),
    ])
      expect(await answer).toMatchObject({ ok: false, error: { code: "UNIMPLEMENTED" } });
  });

  test("wait longer by the timeout of the process", async () => {
    const { calls, runtime } = answering(null, { stdout: Buffer.from("né"), stderr: Buffer.from("e"), exitCode: 3 });
    expect(await must(runtime.exec("c", ["a", "b"], 9))).toEqual({ exitCode: 3, stdout: "né", stderr: "e" });
    await runtime.stopContainer("c", 30);
    await runtime.runSandbox({ metadata: { name: "a", uid: "u", namespace: "n", attempt: 0 } });
    await runtime.startContainer("c");
    expect(calls).toEqual([
      ["ExecSync", { containerId: "c", cmd: ["a", "b"], timeout: 9 }, 9000],
      ["StopContainer", { containerId: "c", timeout: 30 }, 30_000],
      ["RunPodSandbox", expect.anything(), 500],
      ["StartContainer", { containerId: "c" }, 0],
    ]);
  });

  test.each([
    [
      { uid: { value: "0" }, username: "", size: "7" },
      { user: "0", sizeBytes: 7 },
    ],
    [{ uid: null, username: "nobody", size: "0" }, { user: "nobody" }],
    [
      { uid: null, username: "", size: "9" },
      { user: null, sizeBytes: 9 },
    ],
  ])("read an image's user and size from %j", async (reported, expected) => {
    const { runtime } = answering(null, { image: { id: "sha256:a", ...reported } });
    expect(await must(runtime.image("a"))).toEqual({ id: "sha256:a", ...expected });
  });
  test("return null for a missing image", async () => {
    expect(await must(answering(null, { image: null }).runtime.image("a"))).toBeNull();
  });
});

test("the writable layers of containers are listed as far as they were measured", async () => {
  const usage = {
    timestamp: "1700000000123456789",
    fsId: null,
    usedBytes: { value: "4096" },
    inodesUsed: { value: "2" },
  };
  const stats = [
    { attributes: { id: "a" }, writableLayer: usage },
    { attributes: { id: "new" }, writableLayer: null },
    { attributes: { id: "never" }, writableLayer: { ...usage, timestamp: "0" } },
  ];
  expect(await must(containerLayers(fakeConnection({ ListContainerStats: { stats } })))).toEqual(
    new Map([["a", { usedBytes: 4096, inodesUsed: 2, measuredAtMs: 1_700_000_000_123 }]]),
  );
});
