import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { OWNER } from "../../../actuator/containerd/cri.ts";
import { runnable, runnableContainer } from "../../kit/runnable-pods.ts";
import { ME, workerWorld } from "./worker-kit.ts";

const PULLED = 'Container image "busybox" already present on machine and can be accessed by the pod';
const upEvents = (name: string) => [
  `Pulled ${name}: ${PULLED}`,
  `Created ${name}: Container created`,
  `Started ${name}: Container started`,
];

describe("a new pod", () => {
  test("gets its directories, its sandbox, then its containers in order", async () => {
    const { roots, runtime, up, takeMessages, calls } = workerWorld();
    const web = runnable({
      initContainers: [runnableContainer("mesh", { isSidecar: true })],
      containers: [runnableContainer("a"), runnableContainer("b")],
    });
    const turn = await up(web);
    expect(turn).toEqual({
      sandboxId: "sandbox-1",
      started: ["mesh", "a", "b"],
      faults: {},
      undecided: [],
      error: null,
      refusal: null,
      isCut: false,
    });
    expect(calls()).toEqual([
      "RunPodSandbox web_default_uid-1_0",
      "CreateContainer mesh_web_default_uid-1_0",
      "StartContainer container-2",
      "CreateContainer a_web_default_uid-1_0",
      "StartContainer container-3",
      "CreateContainer b_web_default_uid-1_0",
      "StartContainer container-4",
    ]);
    expect(takeMessages()).toEqual(["mesh", "a", "b"].flatMap(upEvents));
    const sandbox = runtime.sandboxes.get("sandbox-1")?.config;
    const logDirectory = join(roots.podLogsDirectory, "default_web_uid-1");
    expect(sandbox).toMatchObject({
      logDirectory,
      linux: { cgroupParent: "/kubepods/poduid-1" },
      dnsConfig: { servers: ["10.96.0.10"] },
    });
    expect(sandbox?.labels?.[OWNER]).toBe(ME);
    expect(existsSync(join(logDirectory, "b"))).toBe(true);
    const mounts = runtime.containers.get("container-3")?.config.mounts;
    expect(mounts?.map(({ containerPath }) => containerPath)).toEqual(["/etc/hosts", "/dev/termination-log"]);
  });
  test("starts no container without decided values, and no container after such an init container", async () => {
    const { sync, calls } = workerWorld();
    const web = runnable({
      initContainers: [runnableContainer("init")],
      containers: [runnableContainer("a"), runnableContainer("b")],
    });
    const first = { createSandbox: true, initToStart: [{ name: "init", attempt: 0 }] };
    const none = await sync(web, first, { valuesOf: () => null });
    expect([none.undecided, none.started]).toEqual([["init"], []]);
    calls();
    const both = [
      { name: "a", attempt: 0 },
      { name: "b", attempt: 0 },
    ];
    const one = await sync(web, { toStart: both }, { valuesOf: (name) => (name === "a" ? null : {}) });
    expect([one.undecided, one.started]).toEqual([["a"], ["b"]]);
    expect(calls()).toEqual(["CreateContainer b_web_default_uid-1_0", "StartContainer container-2"]);
  });
  test("gets no sandbox when one of its volumes cannot be made", async () => {
    const { dir, up, takeMessages, calls } = workerWorld();
    const path = join(dir, "gone");
    const volumes = [{ name: "v", hostPath: { path, type: "Directory" as const } }];
    const message = `MountVolume.SetUp failed for volume "v" : hostPath type check failed: ${path} is not a directory`;
    expect((await up(runnable({ volumes }))).error).toBe(message);
    expect([takeMessages(), calls()]).toEqual([[`FailedMount: ${message}`], []]);
  });
  test("reports why its sandbox cannot be created", async () => {
    const { runtime, up, takeMessages } = workerWorld();
    runtime.on = ({ call }) =>
      call === "RunPodSandbox" ? { effect: false, answer: { call, code: "UNKNOWN", message: "no cni" } } : undefined;
    const message = "Failed to create pod sandbox: rpc error: code = Unknown desc = no cni";
    expect((await up(runnable())).error).toBe(message);
    expect(takeMessages()).toEqual([`FailedCreatePodSandBox: ${message}`]);
  });
  test("with a path as uid creates nothing", async () => {
    const { dir, up, calls } = workerWorld();
    const turn = await up(runnable({}, { uid: "../../escaped" }));
    expect(turn.error).toContain("is not the name of one entry");
    expect([calls(), existsSync(join(dir, "../escaped"))]).toEqual([[], false]);
  });
});

describe("a container that fails to start", () => {
  const cases = [
    ["CreateContainer", "CreateContainerError", ["Pulled", "Failed"]],
    ["StartContainer", "RunContainerError", ["Pulled", "Created", "Failed"]],
  ] as const;
  test.each(cases)("in %s does not affect the others", async (call, reason, reasons) => {
    const { runtime, up, takeMessages } = workerWorld();
    runtime.on = (one) =>
      one.call === call && one.count === 1
        ? { effect: false, answer: { call, code: "UNKNOWN", message: `bad container-2` } }
        : undefined;
    const turn = await up(runnable({ containers: [runnableContainer("a"), runnableContainer("b")] }));
    expect(turn.faults).toEqual({ a: { reason, message: "bad container-2" } });
    expect(turn.started).toEqual(["b"]);
    const events = takeMessages();
    expect(events.slice(0, reasons.length).map((event) => event.split(" ")[0])).toEqual(reasons);
    // a container id in its message would make each event a different one
    expect(events[reasons.length - 1]).toBe(`Failed a: Error: bad ${call === "StartContainer" ? "a" : "container-2"}`);
  });
  test("because of its image or configuration reports the reason", async () => {
    const { up, takeMessages } = workerWorld();
    const nonRoot = { ...runnableContainer("x").security, runAsNonRoot: true };
    const containers = [
      runnableContainer("a", { image: "gone", imagePullPolicy: "Never" }),
      runnableContainer("b", { security: nonRoot }),
    ];
    const { faults } = await up(runnable({ containers }));
    const why = 'container has runAsNonRoot and image will run as root (pod: "web_default(uid-1)", container: b)';
    expect(faults["a"]?.reason).toBe("ErrImageNeverPull");
    expect(faults["b"]).toEqual({ reason: "CreateContainerConfigError", message: why });
    expect(takeMessages().filter((event) => event.startsWith("Failed"))).toEqual([
      "Failed a: Error: ErrImageNeverPull",
      `Failed b: Error: ${why}`,
    ]);
  });
  test("holds back the next init container, unless it is a sidecar", async () => {
    const { up } = workerWorld();
    const broken = { image: "gone", imagePullPolicy: "Never" as const };
    const first = await up(runnable({ initContainers: [runnableContainer("i", broken)] }));
    expect([first.started, Object.keys(first.faults)]).toEqual([[], ["i"]]);
    const sidecar = runnable(
      { initContainers: [runnableContainer("i", { ...broken, isSidecar: true })] },
      { uid: "uid-2" },
    );
    expect((await up(sidecar)).started).toEqual(["app"]);
  });
  test("because of a bug in the daemon fails that turn only", async () => {
    const { sync } = workerWorld();
    const turn = await sync(
      runnable(),
      { createSandbox: true, toStart: [{ name: "app", attempt: 0 }] },
      {
        valuesOf: () => {
          throw new Error("a mistake");
        },
      },
    );
    expect(turn.error).toBe("unexpected: a mistake");
  });
});

test("an aborted turn stops between two steps", async () => {
  for (const at of ["RunPodSandbox", "CreateContainer", "StartContainer", "PullImage"]) {
    const { runtime, sync, calls } = workerWorld();
    const stop = new AbortController();
    runtime.registry.set("pulled:1", { id: "sha256:2" });
    runtime.on = ({ call }) => {
      if (call === at) stop.abort();
      return undefined;
    };
    const two = runnable({ containers: [runnableContainer("a", { image: "pulled:1" }), runnableContainer("b")] });
    const toStart = two.spec.containers.map(({ name }) => ({ name, attempt: 0 }));
    const turn = await sync(two, { createSandbox: true, toStart }, { signal: stop.signal });
    expect(calls().at(-1)?.split(" ")[0], at).toBe(at);
    expect([turn.isCut, turn.error, turn.faults], at).toEqual([true, null, {}]);
  }
});

test("a pod directory that cannot be created is reported", async () => {
  const { roots, up, takeMessages } = workerWorld();
  writeFileSync(join(roots.podsDirectory, "uid-1"), "");
  const { error } = await up(runnable());
  expect(error).toMatch(/^error making pod data directories: mkdir .+: (?:not a directory|file exists)$/);
  expect(takeMessages()).toEqual([`Failed: ${error}`]);
  mkdirSync(join(roots.podsDirectory, "uid-2"));
  expect((await up(runnable({}, { uid: "uid-2" }))).started).toEqual(["app"]);
});
