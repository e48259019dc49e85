import { expect, test } from "vitest";
import type { NodeDevices } from "../../../../actuator/pods/devices/port.ts";
import { fakeDevices } from "../fake-devices.ts";
import { appPod, SimulatedPodsNode } from "./simulated-node.ts";

const GPU = "example.com/gpu";
const lives = (world: SimulatedPodsNode, uids: readonly string[]): readonly string[] =>
  uids.filter((uid) => world.pod(uid).record.state === "active");

/**
 * A pod that an API server stored is bound to a node; a pod without a nodeName would not be one that a kubelet runs.
 */
const boundAt = (creationTimestamp: string) => ({ metadata: { creationTimestamp }, spec: { nodeName: "sim" } });

test("waiting pods are admitted in order of arrival, then by creation time, then in the list's order", async () => {
  const world = new SimulatedPodsNode();
  const wants = (uid: string, createdAt?: string) =>
    appPod(uid, { cpu: "5" }, createdAt === undefined ? {} : boundAt(createdAt));
  const holder = wants("holder");
  world.pods = [holder];
  await world.run(2);
  const waiting = ["z", "y", "new", "old"];
  const [z, y] = waiting.slice(0, 2).map((uid) => wants(uid));
  const dated = [wants("new", "2026-01-02T00:00:00Z"), wants("old", "2026-01-01T00:00:00Z")];
  world.pods = [holder, z as object, y as object];
  await world.run(2);
  world.pods = [...world.pods, ...dated];
  await world.run(2);
  expect(lives(world, waiting)).toEqual([]);
  const cameIn: string[] = [];
  for (let round = 0; round < 4; round++) {
    const leaves = cameIn.at(-1) ?? "holder";
    world.pods = world.pods.filter((pod) => uidOf(pod) !== leaves);
    await world.run(6);
    const there = waiting.filter((uid) => !cameIn.includes(uid));
    cameIn.push(...lives(world, there));
  }
  expect(cameIn).toEqual(["z", "y", "old", "new"]);
});
const uidOf = (pod: object): string => (pod as { readonly metadata: { readonly uid: string } }).metadata.uid;

test("a single device goes to the pod that came first, even when its plugin answers slowly", async () => {
  const asked: string[] = [];
  let version = 1;
  let preferred: { available: string[]; size: number; deviceIds: string[] }[] = [];
  const nodeDevices: NodeDevices = {
    get version() {
      return version;
    },
    snapshot: (podUid) => ({
      devices: ["g0", "g1"].map((id) => ({ resource: GPU, id, health: "Healthy" })),
      devicePlugins: [
        {
          resource: GPU,
          registered: true,
          options: { getPreferredAllocationAvailable: true },
          preferred: podUid === "first" ? preferred : [],
        },
      ],
      kubelet: { startedAt: new Date(0).toISOString() },
    }),
    amounts: () => new Map([[GPU, { capacity: 2, allocatable: 2 }]]),
    whyPending: () => null,
    isChosenByPlugin: () => true,
    hasFailed: () => false,
    registrationOf: () => "1",
    recover: () => {},
    toReallocate: () => new Map(),
    reallocated: () => {},
    slowCalls: () => new Map(),
    vanished: () => [],
    askPreferred: (podUid) => {
      asked.push(podUid);
      return true;
    },
    forget: () => {},
    withResponses: (next) => next,
    problems: () => [],
    update: () => {},
  };
  const world = new SimulatedPodsNode({ nodeDevices, containerDevices: fakeDevices() });
  const wants = (uid: string) => appPod(uid, { cpu: "100m", [GPU]: "1" } as object);
  world.pods = [wants("first")];
  await world.run(2);
  world.pods = [wants("first"), wants("second")];
  await world.run(5);
  expect(asked).toEqual(["first"]);
  expect(world.pod("second").record.refusal).toMatchObject({ reason: "WaitingForEarlierPod", tries: 0 });
  expect(world.pod("second").record.refusal?.message).toContain(`the device plugin of ${GPU} has answered`);
  preferred = [{ available: ["g0", "g1"], size: 1, deviceIds: ["g1"] }];
  version++;
  await world.run(2);
  expect(lives(world, ["first", "second"])).toEqual(["first"]);
  expect(asked).toEqual(["first", "second"]);
});
