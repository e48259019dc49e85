import { existsSync, readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { RunnablePod } from "../../../actuator/lifecycle/pod.ts";
import type { ContainerDevices } from "../../../actuator/pods/devices/port.ts";
import { err, ok } from "../../../api/base/result.ts";
import { limited } from "../../kit/runnable-pods.ts";
import { fakeDevices } from "./fake-devices.ts";
import { workerWorld } from "./worker-kit.ts";

const GPU = { "example.com/gpu": "1" };
const web = (init = false): RunnablePod =>
  limited("uid-1", init ? { app: {} } : { app: GPU }, init ? { first: GPU } : {}, "web");
const REFUSED = {
  reason: "UnexpectedAdmissionError",
  message: "Allocate failed due to rpc error: code = Unknown desc = no, which is unexpected",
};
/** A worker with these devices; `up` runs the turn that starts all containers of the pod. */
function coming(devices: ContainerDevices, one = web()) {
  const world = workerWorld(devices);
  const stop = new AbortController();
  const { initContainers, containers } = one.spec;
  const starts = (list: typeof containers) => list.map(({ name }) => ({ name, attempt: 0 }));
  const up = () =>
    world.sync(
      one,
      { createSandbox: true, initToStart: starts(initContainers), toStart: starts(containers) },
      { signal: stop.signal },
    );
  return { ...world, stop, up };
}

describe("devices are allocated", () => {
  test.each([false, true])("before anything of the pod is created; for an init container: %s", async (init) => {
    const made: unknown[] = [];
    const prepare = async () => {
      made.push(world.calls(), readdirSync(world.roots.podsDirectory));
      return ok(null);
    };
    const devices = fakeDevices({ allocate: prepare });
    const world = coming(devices, web(init));
    const turn = await world.up();
    expect(made).toEqual([[], []]);
    expect(turn).toMatchObject({ started: init ? ["first", "app"] : ["app"], refusal: null, error: null });
    expect(devices.asked).toEqual(["prepare uid-1", `startOf uid-1 ${init ? "first" : "app"}`]);
  });
  test("not for a pod without devices, and not when no container is to start", async () => {
    const devices = fakeDevices();
    const plain = limited("uid-1", { app: { cpu: "1", "kubernetes.io/gpu": "1" } }, {}, "web");
    expect((await coming(devices, plain).up()).started).toEqual(["app"]);
    expect(devices.asked).toEqual([]);
    const { up, sync } = coming(devices);
    await up();
    devices.asked.length = 0;
    await sync(web(), {});
    expect(devices.asked).toEqual([]);
  });
  test("again when a container is restarted", async () => {
    const devices = fakeDevices();
    const { up, sync, runtime } = coming(devices);
    await up();
    runtime.exit("container-2", 1);
    devices.asked.length = 0;
    expect((await sync(web(), { toStart: [{ name: "app", attempt: 1 }] })).started).toEqual(["app"]);
    expect(devices.asked).toEqual(["prepare uid-1", "startOf uid-1 app"]);
  });
});

describe("a pod whose devices are not allocated", () => {
  test("is refused, and no sandbox or container is created", async () => {
    const { roots, up, calls, takeMessages } = coming(fakeDevices({ allocate: async () => err(REFUSED) }));
    expect(await up()).toEqual({
      sandboxId: null,
      started: [],
      faults: { app: REFUSED },
      undecided: [],
      error: REFUSED.message,
      refusal: REFUSED,
      isCut: false,
    });
    // the caller that makes the pod pending again reports it
    expect([calls(), takeMessages(), existsSync(`${roots.podsDirectory}/uid-1`)]).toEqual([[], [], false]);
  });
  test("but kept admitted reports the reason, and starts once the devices are ready", async () => {
    const waits = { reason: "WaitingForDevicePlugin", message: "example.com/gpu is not back yet" };
    let isBack = false;
    const prepare = async () => (isBack ? ok(null) : err({ ...waits, keeps: true as const }));
    const { up, calls, takeMessages } = coming(fakeDevices({ allocate: prepare }), web(true));
    const turn = await up();
    expect(turn).toMatchObject({ refusal: null, error: waits.message, started: [], isCut: false });
    expect(turn.faults).toEqual({ first: waits, app: waits });
    expect([calls(), takeMessages()]).toEqual([[], ["Failed: Error: example.com/gpu is not back yet"]]);
    isBack = true;
    expect((await up()).started).toEqual(["first", "app"]);
  });
});

describe("a turn that is aborted during the allocation of devices", () => {
  const cut = (answer: Awaited<ReturnType<ContainerDevices["allocate"]>>) => {
    const prepare = async () => {
      world.stop.abort();
      return answer;
    };
    const world = coming(fakeDevices({ allocate: prepare }));
    return world;
  };
  test("creates nothing", async () => {
    const { roots, up, calls } = cut(ok(null));
    expect(await up()).toMatchObject({ isCut: true, error: null, faults: {}, refusal: null });
    expect([calls(), readdirSync(roots.podsDirectory)]).toEqual([[], []]);
  });
  test("still returns the refusal that released the devices", async () => {
    expect(await cut(err(REFUSED)).up()).toMatchObject({ isCut: true, refusal: REFUSED });
  });
  test("reports no fault when the devices are kept", async () => {
    const { up, takeMessages } = cut(err({ ...REFUSED, keeps: true as const }));
    expect(await up()).toMatchObject({ isCut: true, error: null, faults: {}, refusal: null });
    expect(takeMessages()).toEqual([]);
  });
});

test("without device plugins only the container that requests devices is not started", async () => {
  const { up, takeMessages, calls } = (() => {
    const world = workerWorld();
    const two = limited("uid-1", { app: GPU, plain: {} }, {}, "web");
    return { ...world, up: () => world.up(two) };
  })();
  const message = "example.com/gpu: device plugins are not served by this daemon (devicePlugins: off)";
  const turn = await up();
  expect(turn).toMatchObject({
    started: ["plain"],
    faults: { app: { reason: "CreateContainerConfigError", message } },
    refusal: null,
  });
  expect(takeMessages()).toContain(`Failed app: Error: ${message}`);
  expect(calls().filter((call) => call.startsWith("CreateContainer"))).toEqual([
    "CreateContainer plain_web_default_uid-1_0",
  ]);
});
