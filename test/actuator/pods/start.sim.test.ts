import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { PodContainer, PodSpec, RunnablePod } from "../../../actuator/lifecycle/pod.ts";
import type { ContainerDevices } from "../../../actuator/pods/devices/port.ts";
import { PodEvents } from "../../../actuator/pods/records/records.ts";
import { Images } from "../../../actuator/pods/sync/images.ts";
import { OwnedRuntime } from "../../../actuator/pods/sync/owned-runtime.ts";
import { type StartContainerRequest, startContainer } from "../../../actuator/pods/sync/sync-pod.ts";
import { err, ok } from "../../../api/base/result.ts";
import { cpuShares } from "../../../api/model/units.ts";
import { v1_34 } from "../../../api/profiles/v1_34.ts";
import { v1_36 } from "../../../api/profiles/v1_36.ts";
import { limited, runnable, runnableContainer } from "../../kit/runnable-pods.ts";
import { SERVES } from "../../sim/fake-pod-parts.ts";
import { fakeDevices, options } from "./fake-devices.ts";
import { ME, NODE, workerWorld } from "./worker-kit.ts";

/** A pod with its sandbox, in which the test starts containers one by one. */
async function sandboxed(web: RunnablePod = runnable(), devices?: ContainerDevices, profile = v1_36) {
  const world = workerWorld();
  const { roots, time, runtime, mounter } = world;
  await world.sync(web, { createSandbox: true, toStart: [{ name: "none", attempt: 0 }] });
  const sandbox = runtime.sandboxes.get("sandbox-1");
  if (sandbox === undefined) throw new Error("it has no sandbox");
  const messages: string[] = [];
  const stop = new AbortController();
  const places = {
    podDirectory: join(roots.podsDirectory, web.uid),
    logDirectory: join(roots.podLogsDirectory, "default_web_uid-1"),
  };
  const turn = {
    pod: web,
    places,
    runtime: new OwnedRuntime(runtime, ME, web.uid, await world.seenOf()),
    events: new PodEvents(web, time, ({ reason, message }) => messages.push(`${reason}: ${message}`)),
    clock: time,
    profile,
    signal: stop.signal,
    images: new Images(runtime, time, { serializeImagePulls: true, maxParallelImagePulls: null }),
    mounter,
    devices,
    claims: undefined,
    owner: ME,
    node: NODE,
    logLinks: undefined,
    sandboxId: sandbox.id,
    sandboxConfig: sandbox.config,
    podIps: sandbox.ip === null ? [] : [sandbox.ip],
  };
  world.calls();
  const start = (app: PodContainer, asked: Partial<StartContainerRequest> = {}) =>
    time.drive(startContainer(turn, { container: app, attempt: 0, values: () => ({}), ...asked }));
  return { ...world, places, start, stop, messages };
}

test.each([
  [v1_34, ["Created: Created container: app", "Started: Started container app"]],
  [v1_36, ["Created: Container created", "Started: Container started"]],
])("the events of a container's start have the kubelet version's words", async (profile, words) => {
  const { start, messages } = await sandboxed(runnable(), undefined, profile);
  expect(await start(runnableContainer("app"))).toBe("started");
  expect(messages.filter((one) => /^(?:Created|Started)/.test(one))).toEqual(words);
});

test("the attempt number of a container that the runtime has forgotten follows from its log files", async () => {
  const { places, runtime, start } = await sandboxed();
  mkdirSync(join(places.logDirectory, "app"), { recursive: true });
  writeFileSync(join(places.logDirectory, "app/4.log"), "a line\n");
  expect(await start(runnableContainer("app"))).toBe("started");
  expect(runtime.containers.get("container-2")?.config).toMatchObject({
    metadata: { name: "app", attempt: 5 },
    logPath: "app/5.log",
  });
});

test("a container is created with its image, decided cgroup values, restart count and the pod's address", async () => {
  const { runtime, start, messages } = await sandboxed();
  const app = runnableContainer("app", { env: [{ name: "IP", fieldPath: "status.podIP" }] });
  expect(await start(app, { attempt: 3, values: () => ({ cpuShares: cpuShares(102) }) })).toBe("started");
  expect(runtime.containers.get("container-2")).toMatchObject({
    sandboxId: "sandbox-1",
    state: "running",
    config: {
      metadata: { name: "app", attempt: 3 },
      image: { image: "sha256:1", userSpecifiedImage: "busybox" },
      envs: [{ key: "IP", value: "10.0.0.1" }],
      logPath: "app/3.log",
      linux: { resources: { cpuShares: 102 } },
    },
  });
  expect(messages.map((one) => one.split(":")[0])).toEqual(["Pulled", "Created", "Started"]);
});

test("a container on the host's network gets the node's address", async () => {
  const { runtime, start } = await sandboxed(runnable({ hostNetwork: true }));
  await start(runnableContainer("app", { env: [{ name: "IP", fieldPath: "status.podIP" }] }));
  expect(runtime.containers.get("container-2")?.config.envs).toEqual([{ key: "IP", value: "192.168.0.1" }]);
});

describe("a container's cgroup values", () => {
  test("are requested after the image pull, since they may change during it", async () => {
    const { runtime, start, calls } = await sandboxed();
    runtime.registry.set("pulled:1", { id: "sha256:2", takesMs: 60_000 });
    const before: (readonly string[])[] = [];
    const values = () => {
      before.push(calls());
      return {};
    };
    expect(await start(runnableContainer("app", { image: "pulled:1" }), { values })).toBe("started");
    expect(before).toEqual([["PullImage pulled:1"]]);
  });
  test("that are not decided yet keep the container from being created", async () => {
    const { places, start, calls, messages } = await sandboxed();
    expect(await start(runnableContainer("app"), { values: () => null })).toBe("undecided");
    expect(calls()).toEqual([]);
    expect(existsSync(join(places.logDirectory, "app"))).toBe(false);
    expect(messages.map((one) => one.split(":")[0])).toEqual(["Pulled"]);
  });
  test("are not requested when the image pull fails", async () => {
    const { start, calls } = await sandboxed();
    const values = () => {
      throw new Error("they are asked for");
    };
    const started = await start(runnableContainer("app", { image: "gone:1" }), { values });
    expect(started).toMatchObject({ reason: "ErrImagePull" });
    expect(calls()).toEqual(["PullImage gone:1"]);
  });
});

describe("a container's device options", () => {
  const { object } = limited("uid-1", { app: { "example.com/gpu": "2" }, other: {} }, {}, "web");
  const gpus = (spec: Partial<PodSpec> = {}) => runnable(spec, { object });

  test("are requested right before the container is created, and passed to the runtime", async () => {
    const given = options({
      envs: [{ name: "GPUS", value: "0,1" }],
      devices: [{ pathInContainer: "/dev/gpu0", pathOnHost: "/dev/gpu7", permissions: "rw" }],
      annotations: [{ name: "example.com/gpus", value: "0,1" }],
      cdiDevices: ["example.com/gpu=0"],
    });
    const before: (readonly string[])[] = [];
    const devices = fakeDevices({
      runContainerOptions: async () => {
        before.push(calls());
        return ok(given);
      },
    });
    const { runtime, start, calls } = await sandboxed(gpus(), devices);
    runtime.registry.set("pulled:1", { id: "sha256:2" });
    expect(await start(runnableContainer("app", { image: "pulled:1", args: ["$(GPUS)"] }))).toBe("started");
    expect(before).toEqual([["PullImage pulled:1"]]);
    expect(runtime.containers.get("container-2")?.config).toMatchObject({
      args: ["0,1"],
      envs: [{ key: "GPUS", value: "0,1" }],
      devices: [{ containerPath: "/dev/gpu0", hostPath: "/dev/gpu7", permissions: "rw" }],
      annotations: { "example.com/gpus": "0,1", "io.kubernetes.container.restartCount": "0" },
      CDIDevices: [{ name: "example.com/gpu=0" }],
    });
  });
  test("do not expand in the container's own env variables, but in a subPathExpr", async () => {
    const volumes = [{ name: "v", emptyDir: { medium: "" as const, sizeLimitBytes: null } }];
    const mount = { volume: "v", mountPath: "/v", readOnly: false, isExpression: true, propagation: "None" as const };
    const startOf = async () => ok(options({ envs: [{ name: "GPUS", value: "one" }] }));
    const { runtime, mounter, start } = await sandboxed(
      gpus({ volumes }),
      fakeDevices({ runContainerOptions: startOf }),
    );
    const app = runnableContainer("app", {
      env: [{ name: "A", value: "$(GPUS)" }],
      mounts: [{ ...mount, subPath: "of-$(GPUS)" }],
    });
    expect(await start(app)).toBe("started");
    expect(runtime.containers.get("container-2")?.config.envs).toEqual([
      { key: "GPUS", value: "one" },
      { key: "A", value: "$(GPUS)" },
    ]);
    expect(mounter.asked.filter((one) => one.startsWith("bind"))).toHaveLength(1);
  });
  test("are not requested for a container without devices", async () => {
    const devices = fakeDevices();
    const { start } = await sandboxed(gpus(), devices);
    devices.asked.length = 0;
    expect(await start(runnableContainer("other"))).toBe("started");
    expect(devices.asked).toEqual([]);
  });

  const faults: readonly (readonly [string, ContainerDevices["runContainerOptions"] | undefined, string, string])[] = [
    [
      "for a reason of its own",
      async () => err({ reason: "WaitingForDevicePlugin", message: "gone" }),
      "WaitingForDevicePlugin",
      "gone",
    ],
    [
      "for none",
      async () => err({ reason: "", message: "endpoint not found in cache" }),
      "CreateContainerConfigError",
      "endpoint not found in cache",
    ],
    [
      "since it holds none",
      async () => ok(null),
      "CreateContainerConfigError",
      "no device of example.com/gpu is given to it",
    ],
    [
      "since none are served",
      undefined,
      "CreateContainerConfigError",
      "example.com/gpu: device plugins are not served by this daemon (devicePlugins: off)",
    ],
  ];
  test.each(faults)(
    "that are refused, %s, keep the container from being created",
    async (_, startOf, reason, message) => {
      const { start, calls, messages } = await sandboxed(
        gpus(),
        startOf && { ...fakeDevices(), runContainerOptions: startOf },
      );
      expect(await start(runnableContainer("app"))).toEqual({ reason, message });
      expect([calls(), messages.at(-1)]).toEqual([[], `Failed: Error: ${message}`]);
    },
  );
  test("are not used, and nothing is created, when the turn is aborted meanwhile", async () => {
    const startOf = async () => {
      stop.abort();
      return ok(options({}));
    };
    const { places, start, stop, calls } = await sandboxed(gpus(), fakeDevices({ runContainerOptions: startOf }));
    expect(await start(runnableContainer("app"))).toBe("cut");
    expect([calls(), existsSync(join(places.logDirectory, "app"))]).toEqual([[], false]);
  });
});

describe("a container with an invalid configuration is reported and not created", () => {
  const cases: readonly (readonly [string, Partial<PodContainer>, RegExp, (logs: string, podAt: string) => void])[] = [
    ["an unknown field", { env: [{ name: "A", fieldPath: "spec.x" }] }, /^unsupported fieldPath: spec\.x$/, () => {}],
    [
      "a log directory that cannot be made",
      {},
      /^create container log directory for container app failed: mkdir .*\/app: /,
      (logs) => writeFileSync(join(logs, "app"), ""),
    ],
    [
      "a pod's directory that is none",
      {},
      /not a directory|file exists/,
      (_, podAt) => {
        rmSync(podAt, { recursive: true });
        writeFileSync(podAt, "");
      },
    ],
  ];
  test.each(cases)("%s", async (_, more, message, spoil) => {
    const { places, start, calls, messages } = await sandboxed();
    spoil(places.logDirectory, places.podDirectory);
    const started = await start(runnableContainer("app", more));
    expect(started).toEqual({ reason: "CreateContainerConfigError", message: expect.stringMatching(message) });
    expect([calls(), messages.at(-1)]).toEqual([[], `Failed: Error: ${(started as { message: string }).message}`]);
  });
});

describe("an aborted turn", () => {
  test("requests no values and creates nothing", async () => {
    const { start, stop, calls } = await sandboxed();
    const values = () => {
      throw new Error("they are asked for");
    };
    stop.abort();
    expect(await start(runnableContainer("app"), { values })).toBe("cut");
    expect(calls()).toEqual([]);
  });
  test("creates no container after its directories", async () => {
    const { start, stop, calls } = await sandboxed();
    const values = () => {
      stop.abort();
      return {};
    };
    expect(await start(runnableContainer("app"), { values })).toBe("cut");
    expect(calls()).toEqual([]);
  });
  test("leaves the container running when it is aborted during the postStart hook", async () => {
    const { time, runtime, start, stop, messages } = await sandboxed();
    const from = time.monotonicMs();
    time.after(1000, () => stop.abort());
    expect(await start(runnableContainer("app", { postStart: { sleepSeconds: 60 } }))).toBe("started");
    expect(time.monotonicMs() - from).toBe(1000);
    expect([runtime.running("app").length, messages.at(-1)]).toEqual([1, "Started: Container started"]);
  });
  test("neither kills nor reports a container whose postStart hook fails", async () => {
    const { runtime, start, stop, calls, messages } = await sandboxed();
    runtime.programOf = () => ({ ...SERVES, exec: () => ({ exitCode: 1 }) });
    runtime.on = ({ call }) => {
      if (call === "ExecSync") stop.abort();
      return undefined;
    };
    expect(await start(runnableContainer("app", { postStart: { exec: ["true"] } }))).toBe("cut");
    expect(calls().at(-1)).toBe("ExecSync container-2");
    expect(messages.at(-1)).toBe("Started: Container started");
    expect(runtime.running("app")).toHaveLength(1);
  });
});

test("a container whose postStart hook fails is stopped with its preStop hook and the pod's grace period", async () => {
  const { time, runtime, start } = await sandboxed(runnable({ terminationGracePeriodSeconds: 7 }));
  const ran: string[] = [];
  const exec = ([command = ""]: readonly string[]) => {
    ran.push(command);
    return { exitCode: command === "fails" ? 1 : 0 };
  };
  runtime.programOf = () => ({ ...SERVES, stopsMs: null, exec });
  const from = time.monotonicMs();
  const app = runnableContainer("app", { postStart: { exec: ["fails"] }, preStop: { exec: ["says goodbye"] } });
  expect(await start(app)).toMatchObject({ reason: "PostStartHookError" });
  expect([ran, (time.monotonicMs() - from) / 1000]).toEqual([["fails", "says goodbye"], 7]);
  expect(runtime.running("app")).toEqual([]);
});
