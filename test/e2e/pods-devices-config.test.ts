import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { CONTAINER_HASH } from "../../actuator/containerd/cri.ts";
import { cdiServed, runtimeVersion } from "../../actuator/containerd/pods.ts";
import { containerHash } from "../../actuator/lifecycle/config/labels.ts";
import type { PodContainer, RunnablePod } from "../../actuator/lifecycle/pod.ts";
import type { ContainerDevices } from "../../actuator/pods/devices/port.ts";
import { systemClock } from "../../actuator/pods/pod-clock.ts";
import { Images } from "../../actuator/pods/sync/images.ts";
import { PodWorker } from "../../actuator/pods/sync/pod-worker.ts";
import { systemMounter } from "../../actuator/pods/volumes/mounter.ts";
import { ok } from "../../api/base/result.ts";
import { v1_36 } from "../../api/profiles/v1_36.ts";
import { fakeDevices, options } from "../actuator/pods/fake-devices.ts";
import { scratch } from "../actuator/pods/scratch.ts";
import { NO_ACTIONS, NODE } from "../actuator/pods/worker-kit.ts";
import { limited, runnable, runnableContainer } from "../kit/runnable-pods.ts";
import { APP, PodRuntimeFixture } from "./containerd/pod-runtime-kit.ts";
import { must } from "./containerd/pods.ts";
import { whyNoContainerd } from "./containerd/start.ts";
import { openOwn } from "./own-cgroups.ts";
import { holds, until } from "./pods/until.ts";

const LONG_MS = 300_000;
const opened = openOwn("devices");
const why = whyNoContainerd() ?? (opened.ok && opened.value.version === 1 ? undefined : "no cgroup v1 is mounted");
if (why !== undefined) {
  if (process.env["CI"] === "true") throw new Error(`CI must run what containers get for their devices: ${why}`);
  console.warn(`skipped what containers get for their devices: ${why}`);
}

/**
 * A major device number for local use, which has no driver: opening the device fails with NO_DRIVER if it is allowed,
 * and with DENIED if it is not.
 */
const MAJOR = "240";
const NO_DRIVER = "No such device or address";
const DENIED = "Operation not permitted";
const SLEEPS = "trap 'exit 0' TERM; while :; do sleep 0.1; done";
const shell = (name: string, script: string, more: Partial<PodContainer> = {}) =>
  runnableContainer(name, { image: APP, command: ["/bin/busybox", "sh", "-c", `${script}; ${SLEEPS}`], ...more });

describe.skipIf(why !== undefined)("a container's device options on a real containerd", { timeout: LONG_MS }, () => {
  let ground: PodRuntimeFixture;
  beforeAll(async () => {
    if (!opened.ok) throw new Error(opened.error.message);
    ground = await PodRuntimeFixture.start(opened.value);
  }, LONG_MS);
  afterAll(() => ground?.stop(), LONG_MS);

  /** Starts the pod; returns the ids of its containers by name. */
  async function up(web: RunnablePod, dir: string, devices: ContainerDevices): Promise<ReadonlyMap<string, string>> {
    const { runtime, hierarchy } = ground;
    const worker = new PodWorker({
      profile: v1_36,
      runtime,
      images: new Images(runtime, systemClock, { serializeImagePulls: true, maxParallelImagePulls: null }),
      mounter: systemMounter,
      devices,
      clock: systemClock,
      onEvent() {},
      owner: "nodewise-e2e",
      roots: { podsDirectory: join(dir, "pods"), podLogsDirectory: join(dir, "logs") },
      node: () => ({ ...NODE, cgroupVersion: 1 }),
      cgroupParentOf: ({ name }) => `${hierarchy.root}/pod-${name}`,
      sandboxValuesOf: () => undefined,
      memoryBytes: () => null,
    });
    for (const path of ["/", "/pod-web"]) await hierarchy.create(path, hierarchy.support().controllers);
    const toStart = web.spec.containers.map(({ name }) => ({ name, attempt: 0 }));
    const actions = { ...NO_ACTIONS, createSandbox: true, toStart };
    const signal = new AbortController().signal;
    const seenNow = async () => (await must(runtime.pods())).get(web.uid) ?? null;
    onTestFinished(async () => {
      const seen = await seenNow();
      if (seen !== null) await worker.end({ pod: web, runtimePod: seen, graceSeconds: 5, signal });
      await worker.forget(web, await seenNow(), signal);
    });
    const turn = await worker.sync({ pod: web, runtimePod: null, actions, valuesOf: () => ({}), signal });
    expect([turn.error, turn.faults, turn.refusal]).toEqual([null, {}, null]);
    return new Map((await seenNow())?.containers.map(({ name, id }) => [name, id]));
  }
  /** Runs a script in the container and returns its stdout and stderr. */
  const inside = async (id: string, script: string): Promise<string> => {
    const { stdout, stderr } = await must(ground.runtime.exec(id, ["/bin/busybox", "sh", "-c", script], 60));
    return `${stdout}${stderr}`.trim();
  };

  test("set variables, a read-only mount, device nodes with permissions, and annotations", async () => {
    const dir = scratch();
    const given = join(dir, "given");
    mkdirSync(given);
    writeFileSync(join(given, "driver"), "of the plugin\n");
    const node = (minor: string): string => {
      execFileSync("mknod", [join(dir, `node-${minor}`), "c", MAJOR, minor]);
      return join(dir, `node-${minor}`);
    };
    const toys = options({
      envs: [
        { name: "TOYS", value: "a,b" },
        { name: "OWN", value: "the plugin's" },
      ],
      mounts: [{ containerPath: "/given", hostPath: given, readOnly: true }],
      devices: [
        { pathInContainer: "/dev/toy-null", pathOnHost: "/dev/null", permissions: "rw" },
        { pathInContainer: "/dev/toys/r", pathOnHost: node("71"), permissions: "r" },
        { pathInContainer: "/dev/toys/rw", pathOnHost: node("72"), permissions: "rw" },
      ],
      annotations: [
        { name: "example.com/toys", value: "a,b" },
        { name: CONTAINER_HASH, value: "the plugin's" },
      ],
    });
    const app = shell("app", 'echo "$(TOYS) $(OWN)"', { env: [{ name: "OWN", value: "the pod's" }] });
    const web = runnable(
      { hostNetwork: true, containers: [app, shell("plain", "true")] },
      { object: limited("uid-1", { app: { "example.com/toy": "2" }, plain: {} }, {}, "web").object },
    );
    const devices = fakeDevices({ runContainerOptions: async () => ok(toys) });
    const ids = await up(web, dir, devices);
    expect(devices.asked).toEqual(["prepare uid-1", "startOf uid-1 app"]);
    const id = ids.get("app") ?? "";
    const log = join(dir, "logs/default_web_uid-1/app/0.log");
    const printed = () => existsSync(log) && readFileSync(log, "utf8").includes("a,b the pod's");
    await until("what its command prints", () => holds(printed()));

    expect(await inside(id, 'echo "$TOYS $OWN"')).toBe("a,b the pod's");
    expect(await inside(id, "cat /given/driver")).toBe("of the plugin");
    expect(await inside(id, "touch /given/mine")).toContain("Read-only file system");
    expect(await inside(id, "echo gone > /dev/toy-null && wc -c < /dev/toy-null")).toBe("0");
    expect(await inside(id, "cat /dev/toys/r")).toContain(NO_DRIVER);
    expect(await inside(id, "echo > /dev/toys/r")).toContain(DENIED);
    expect(await inside(id, "cat /dev/toys/rw")).toContain(NO_DRIVER);
    expect(await inside(id, "echo > /dev/toys/rw")).toContain(NO_DRIVER);
    const other = ids.get("plain") ?? "";
    expect(await inside(other, "ls /dev/toys /dev/toy-null")).toContain("No such file");
    expect(await inside(other, `mknod /dev/own c ${MAJOR} 72; cat /dev/own`)).toContain(DENIED);

    const { status } = await must(ground.containerd.connection.call("ContainerStatus", { containerId: id }));
    expect(status?.annotations).toMatchObject({
      "example.com/toys": "a,b",
      [CONTAINER_HASH]: containerHash(web, app),
    });
    expect(status?.mounts).toContainEqual(expect.objectContaining({ containerPath: "/given", hostPath: given }));
  });

  test("lie below the pod's own mount at the same path", async () => {
    const dir = scratch();
    for (const one of ["plugins", "pods-own"]) {
      mkdirSync(join(dir, one));
      writeFileSync(join(dir, one, "whose"), one);
    }
    const mounts = [{ containerPath: "/both", hostPath: join(dir, "plugins"), readOnly: true }];
    const mount = { volume: "v", mountPath: "/both", readOnly: false, subPath: "", isExpression: false } as const;
    const web = runnable(
      {
        hostNetwork: true,
        volumes: [{ name: "v", hostPath: { path: join(dir, "pods-own"), type: "Directory" } }],
        containers: [shell("app", "true", { mounts: [{ ...mount, propagation: "None" }] })],
      },
      { object: limited("uid-1", { app: { "example.com/toy": "1" } }, {}, "web").object },
    );
    const ids = await up(web, dir, fakeDevices({ runContainerOptions: async () => ok(options({ mounts })) }));
    expect(await inside(ids.get("app") ?? "", "cat /both/whose")).toBe("pods-own");
  });

  test("are refused by name for CDI devices that the runtime would ignore", async () => {
    const { connection } = ground.containerd;
    const { version } = await must(runtimeVersion(connection));
    const served = await cdiServed(connection, { CDIDevices: [{ name: "example.com/toy=a" }] });
    if (/^v?1\.[0-6]\./.test(version)) {
      const message = `CDI devices (example.com/toy=a): containerd ${version} does not know them`;
      expect(served).toMatchObject({ ok: false, error: { message: expect.stringContaining(message) } });
    } else if (!served.ok) expect(served.error.message).toContain("enable_cdi");
  });
});
