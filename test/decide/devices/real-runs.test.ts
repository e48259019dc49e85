import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type DeviceCheckpoint, writeCheckpoint } from "../../../api/decide/devices/checkpoint.ts";
import { readCheckpoint } from "../../../api/decide/devices/checkpoint-read.ts";
import {
  type DevicePlugin,
  type DeviceResource,
  deviceCapacity,
  inventoriesOf,
} from "../../../api/decide/devices/inventory.ts";
import { containerDevices, type DeviceManager, deviceManager } from "../../../api/decide/devices/manager.ts";
import { holdingOf } from "../../../api/decide/devices/pod-devices.ts";
import { numaNodes } from "../../../api/decide/topology/hint.ts";
import { epochMs } from "../../../api/model/units.ts";
import { decodedPod } from "../../kit/pods.ts";
import { BEHAVIOUR } from "../../kit/profiles.ts";
import { admit } from "./devices-kit.ts";

/** The state of a kubelet 1.36.3 at one moment. */
interface Seen {
  readonly at: string;
  readonly capacity: Readonly<Record<string, string>>;
  readonly allocatable: Readonly<Record<string, string>>;
  readonly checkpoint: unknown;
  readonly pods: readonly { readonly name: string; readonly uid: string; readonly phase: string }[];
}
interface Step {
  readonly name: string;
  readonly before?: Seen;
  readonly pod?: unknown;
  readonly outcome?: { readonly phase: string; readonly reason?: string; readonly message?: string };
  readonly runtime?: Readonly<Record<string, { envs: unknown[]; devices: unknown[]; mounts: unknown[] }>>;
  readonly after: Seen;
}
const STEPS = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../data/real-devices/story.json"), "utf8"),
) as readonly Step[];
const asked = STEPS.filter((s) => s.before !== undefined);
const step = (name: string): Step => STEPS.find((s) => s.name.startsWith(name)) as Step;

const SAMPLE = "example.com/resource";
const FUSE = "example.com/fuse";
const FUSE_IDS = [
  "88147f87fc92e69580ba38051f238b947269e059",
  "a68db766f638034740111848aafee2d2dcd6b642",
  "e599ef874758d327fa12ad6d44bcd43b1af19dfb",
];
const at = (time: string) => epochMs(Date.parse(time));
const RESTARTED = at("2026-11-21T06:44:20Z");
const listed = (resource: string, ids: readonly string[], plugin: DevicePlugin): DeviceResource => ({
  resource,
  devices: ids.map((id) => ({ id, health: "Healthy" })),
  plugin,
});

/** The plugins at each step; the sample plugin stopped before step 12 and came back after a restart, at step 17. */
function pluginsAt(name: string): readonly DeviceResource[] {
  const number = Number(name.slice(0, 2));
  const sample = (): DevicePlugin => {
    if (number < 12 || number >= 17) return { registered: true };
    return number < 15 ? { registered: false, stoppedAt: at("2026-11-21T06:44:10Z") } : { registered: false };
  };
  return [
    ...(number >= 1 ? [listed(SAMPLE, ["Dev-1", "Dev-2"], sample())] : []),
    ...(number >= 8 ? [listed(FUSE, FUSE_IDS, { registered: true })] : []),
  ];
}
const inventoriesAt = (name: string, time: string) =>
  inventoriesOf({
    resources: pluginsAt(name),
    checkpointed: [],
    now: at(time),
    kubeletStartedAt: Number(name.slice(0, 2)) >= 15 ? RESTARTED : undefined,
  });

const fileOf = (seen: Seen): string => JSON.stringify(seen.checkpoint);
function checkpointOf(seen: Seen): DeviceCheckpoint {
  const read = readCheckpoint(fileOf(seen));
  if (!read.ok) throw new Error(JSON.stringify(read.error));
  return read.value;
}
/** A checkpoint without the orders that depend on Go maps. */
const content = ({ entries, registered }: DeviceCheckpoint) => ({
  entries: (entries ?? [])
    .map((e) => ({ ...e, deviceIds: [...(e.deviceIds ?? [])].map(([node, ids]) => [node, [...(ids ?? [])].sort()]) }))
    .sort((a, b) =>
      `${a.podUid}${a.containerName}${a.resourceName}` < `${b.podUid}${b.containerName}${b.resourceName}` ? -1 : 1,
    ),
  registered: Object.fromEntries([...(registered ?? [])].map(([name, ids]) => [name, [...(ids ?? [])].sort()])),
});

function managerBefore({ name, before }: Step): DeviceManager {
  const seen = before as Seen;
  return deviceManager({
    inventories: inventoriesAt(name, seen.at),
    checkpoint: checkpointOf(seen),
    nodes: numaNodes([0]),
    sourcesReady: true,
    activePods: new Set(seen.pods.filter((p) => p.phase === "Running").map((p) => p.uid)),
    runningAtStart: () => false,
    prefer: () => undefined,
    behaviour: BEHAVIOUR,
  });
}

/** Adds the plugins' answers from the kubelet's later checkpoint. */
function answer(manager: DeviceManager, after: DeviceCheckpoint): void {
  for (const { podUid, containerName, resourceName, allocResp } of after.entries ?? []) {
    const holding = manager.state.holding(podUid, containerName, resourceName);
    if (holding?.allocResp !== null || holding === undefined) continue;
    manager.state.give(podUid, containerName, resourceName, holdingOf(holding.perNuma, allocResp));
  }
}

describe("device plugins captured on a real node", () => {
  const moments = STEPS.flatMap((s) =>
    [s.before, s.after].flatMap((seen) => (seen === undefined ? [] : [{ name: s.name, seen }])),
  );

  it("cover all steps and moments of the capture", () => {
    expect(STEPS).toHaveLength(20);
    expect(asked).toHaveLength(13);
    expect(moments).toHaveLength(33);
  });

  it.each(moments)("at $name, $seen.at capacity and allocatable equal the node's", ({ name, seen }) => {
    const { capacity, allocatable, removed } = deviceCapacity(inventoriesAt(name, seen.at));
    const text = (counts: ReadonlyMap<string, number>) => Object.fromEntries([...counts].map(([k, n]) => [k, `${n}`]));
    expect(text(capacity)).toEqual(seen.capacity);
    expect(text(allocatable)).toEqual(seen.allocatable);
    expect(removed).toEqual([]);
  });

  it.each(moments.filter((m) => m.seen.checkpoint !== null))(
    "the checkpoint at $name, $seen.at has its checksum and is rewritten byte for byte",
    ({ seen }) => {
      expect(writeCheckpoint(checkpointOf(seen))).toBe(fileOf(seen));
    },
  );

  it.each(asked.filter((s) => s.outcome?.phase === "Running"))(
    "$name: the pod is given the devices that the kubelet gave it",
    (s) => {
      const manager = managerBefore(s);
      expect(admit(manager, decodedPod(s.pod))).toBeUndefined();
      expect(manager.given.length).toBeGreaterThan(0);
      const after = checkpointOf(s.after);
      answer(manager, after);
      expect(content(manager.checkpoint())).toEqual(content(after));
    },
  );

  it.each(asked.filter((s) => s.outcome?.phase === "Failed"))(
    "$name: the pod is refused in the kubelet's words",
    (s) => {
      const manager = managerBefore(s);
      const text = admit(manager, decodedPod(s.pod));
      expect(`Pod was rejected: Allocate failed due to ${text}, which is unexpected`).toBe(s.outcome?.message);
      expect(manager.given).toEqual([]);
      // the kubelet writes nothing in this step either
      expect(fileOf(s.after)).toBe(fileOf(s.before as Seen));
    },
  );

  it.each(asked.filter((s) => s.runtime !== undefined))("$name: the runtime gets the same mounts and devices", (s) => {
    const manager = managerBefore(s);
    admit(manager, decodedPod(s.pod));
    answer(manager, checkpointOf(s.after));
    for (const [container, sent] of Object.entries(s.runtime ?? {})) {
      const { options, pending } = containerDevices(manager, decodedPod(s.pod).metadata.uid as string, container);
      expect(pending).toEqual([]);
      expect(options?.envs).toEqual(sent.envs);
      expect(options?.mounts.map((m) => ({ container_path: m.containerPath, host_path: m.hostPath }))).toEqual(
        sent.mounts,
      );
      expect(
        options?.devices.map((d) => ({
          container_path: d.pathInContainer,
          host_path: d.pathOnHost,
          permissions: d.permissions,
        })),
      ).toEqual(sent.devices);
    }
  });
});

describe("the captured kubelet after a restart with a dead plugin", () => {
  it("frees a deleted pod's devices when the next pod asks for devices, even if that pod is refused", () => {
    const s = step("16");
    const gone = "2dc83e7c-10ac-4065-9a51-9e1eeb43deeb";
    const manager = managerBefore(s);
    expect(manager.state.pods.has(gone)).toBe(true);
    admit(manager, decodedPod(s.pod));
    expect(manager.purged).toEqual([gone]);
    // the next write happens when the plugin registers again
    expect(content(manager.checkpoint()).entries).toEqual(content(checkpointOf(step("17").after)).entries);
  });

  it("takes the resource from the checkpoint with 0 allocatable, and drops it after 5 minutes", () => {
    const checkpoint = checkpointOf(step("16").before as Seen);
    const known = {
      resources: [],
      checkpointed: [...(checkpoint.registered?.keys() ?? [])],
      kubeletStartedAt: RESTARTED,
    };
    const within = deviceCapacity(inventoriesOf({ ...known, now: epochMs(RESTARTED + 300_000) }));
    expect([...within.capacity]).toEqual([
      [FUSE, 0],
      [SAMPLE, 0],
    ]);
    const after = deviceCapacity(inventoriesOf({ ...known, now: epochMs(RESTARTED + 300_001) }));
    expect([...after.capacity]).toEqual([]);
    expect(after.removed).toEqual([FUSE, SAMPLE]);
  });
});
