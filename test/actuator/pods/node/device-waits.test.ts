import { expect, test } from "vitest";
import type { DeviceFault, NodeDevices } from "../../../../actuator/pods/devices/port.ts";
import { err, ok, type Result } from "../../../../api/base/result.ts";
import { fakeDevices } from "../fake-devices.ts";
import { appPod, SimulatedPodsNode } from "./simulated-node.ts";

const GPU = "example.com/gpu";
const POD = appPod("p", { cpu: "1", [GPU]: "1" } as object);
const WAITS: DeviceFault = { reason: "WaitingForDevicePlugin", message: "deferred", keeps: true };
const REFUSED: DeviceFault = { reason: "UnexpectedAdmissionError", message: "Allocate failed" };

/** A node whose plugin is always ready for admission; the test defines the answers to allocations. */
function worldWith() {
  const now = {
    answer: ok(null) as Result<null, DeviceFault> | Promise<Result<null, DeviceFault>>,
    registration: "1",
    hasFailed: false,
    version: 1,
    slow: new Map<string, DeviceFault>(),
  };
  const nodeDevices: NodeDevices = {
    get version() {
      return now.version;
    },
    snapshot: () => ({ devices: [], devicePlugins: [], kubelet: { startedAt: new Date(0).toISOString() } }),
    amounts: () => new Map([[GPU, { capacity: 4, allocatable: 4 }]]),
    whyPending: () => null,
    isChosenByPlugin: () => false,
    hasFailed: () => now.hasFailed,
    registrationOf: () => now.registration,
    recover: () => {},
    toReallocate: () => new Map(),
    reallocated: () => {},
    slowCalls: () => now.slow,
    vanished: () => [],
    askPreferred: () => false,
    forget: () => {},
    withResponses: (next) => next,
    problems: () => [],
    update: () => {},
  };
  const its = fakeDevices({ allocate: async () => now.answer });
  const world = new SimulatedPodsNode({ nodeDevices, containerDevices: its });
  world.pods = [POD];
  const tries = () => its.asked.filter((one) => one.startsWith("prepare")).length;
  const waiting = () => world.status("p").containerStatuses[0]?.state.waiting;
  return { world, now, tries, waiting };
}

test("waiting for a device plugin does not raise a container's back-off", async () => {
  const { world, now, tries, waiting } = worldWith();
  await world.run(3);
  expect(world.idOf("p")).not.toBe("none");
  now.answer = err(WAITS);
  world.runtime.exit(world.idOf("p"), 1);
  const before = tries();
  await world.run(60);
  expect(tries()).toBeGreaterThan(before + 3);
  expect(waiting()).toEqual({ reason: WAITS.reason, message: WAITS.message });
  now.answer = ok(null);
  await world.run(12);
  expect(world.idOf("p")).not.toBe("none");
  expect(world.pod("p").record.backOff["app"]?.delayMs).toBe(10_000);
});

test("a device plugin call that hangs is shown in the pod's status until it returns", async () => {
  const { world, now, waiting } = worldWith();
  const answer = Promise.withResolvers<Result<null, DeviceFault>>();
  now.answer = answer.promise;
  await world.run(2);
  const fault = { reason: "AllocatingDevices", message: `waits for the device plugin of ${GPU} to answer Allocate` };
  now.slow.set("p", fault);
  await world.run(1);
  expect(waiting()).toEqual(fault);
  now.slow.clear();
  now.answer = err(WAITS);
  answer.resolve(err(WAITS));
  await world.run(2);
  expect(waiting()?.reason).toBe(WAITS.reason);
  now.answer = ok(null);
  await world.run(12);
  expect(world.idOf("p")).not.toBe("none");
});

test("a failing device plugin is called less and less often, and anew once it registers again", async () => {
  const { world, now, tries } = worldWith();
  now.answer = err(REFUSED);
  for (let i = 0; i < 160; i++) {
    // other events of plugins cause no attempt
    now.version++;
    await world.run(1);
  }
  // attempts after 0, 10, 30, 70 and 150 s
  expect(tries()).toBe(5);
  expect(world.pod("p").record.refusal).toMatchObject({ ...REFUSED, tries: 5 });
  now.registration = "2";
  await world.run(2);
  expect(tries()).toBe(6);
  expect(world.pod("p").record.refusal).toMatchObject({ tries: 1 });
});
