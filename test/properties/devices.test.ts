import { describe, expect, test } from "vitest";
import { writeCheckpoint } from "../../api/decide/devices/checkpoint.ts";
import { ANY_NODE } from "../../api/decide/topology/hint.ts";
import type { Container, Pod } from "../../api/model/pod.ts";
import {
  checkCapacity,
  checkGiven,
  checkHinted,
  checkOwners,
  containersOf,
  look,
  must,
  noteKept,
  tookBack,
} from "./device-checks.ts";
import { type Draws, draws, Met } from "./draws.ts";
import { type DeviceWorld, deviceWorld, happen, managerNow, randomDevicePod } from "./random-devices.ts";

const SEED = 20_261;
const WORLDS = 250;
const STEPS = 40;
/** Allows for a loaded machine; the test does not measure speed. */
const PATIENT = { timeout: 120_000 };
/** A pod that the node already has; sometimes with changed limits, which the kubelet does not expect. */
function askedAgain(world: DeviceWorld, d: Draws): Pod {
  const pod = d.pick([...world.pods.values()]);
  if (!d.chance(6)) return pod;
  const other = randomDevicePod(world, d).spec.containers[0] as Container;
  const containers = pod.spec.containers.map((c) => ({ ...c, resources: other.resources }));
  return { ...pod, spec: { ...pod.spec, containers } };
}

/** Admits a pod as the kubelet does, each container with one of its hints as affinity if it has any. */
function admit(world: DeviceWorld, pod: Pod, d: Draws, met: Met): void {
  world.pods.set(pod.metadata.uid as string, pod);
  const manager = managerNow(world);
  let refused = false;
  for (const container of containersOf(pod)) {
    const lists = [...manager.containerHints(pod, container).values()].filter((l) => l !== null);
    const hints = lists.length === 1 ? (lists[0] ?? []) : [];
    const hint = hints.length > 0 ? d.pick(hints) : undefined;
    const affinity = hint ?? d.pick([ANY_NODE, { nodes: 1 + d.below(7), preferred: false }]);
    manager.purge(pod);
    const before = look(manager, pod, container);
    const allocated = manager.allocate(pod, container, affinity);
    if (!allocated.ok) {
      met.note(allocated.error.message.replace(/\d+|"[^"]*"|[a-z.]+\/[a-z]+/g, "_"));
      met.note("a refusal took devices of another resource back", tookBack(allocated.error.message, container, before));
      must(manager.given.length === before.given, () => "given in spite of an error");
      const { holds } = look(manager, pod, container);
      must(`${holds}` === `${before.holds}`, () => `holds in spite of an error: ${holds}`);
      refused = true;
      break;
    }
    checkGiven(manager, container, affinity, before, met);
    checkHinted(manager, container, hint, before, met);
    noteKept(world, pod, container, manager, before, met);
  }
  met.note("purged", manager.purged.length > 0);
  if (refused) world.pods.delete(pod.metadata.uid as string);
  world.file = writeCheckpoint(manager.checkpoint());
}

const BRANCHES = [
  "a plugin is registered",
  "a plugin is removed",
  "a plugin is stopped",
  "a plugin is unregistered",
  "a refusal took devices of another resource back",
  "a removed resource",
  "allocatable raised",
  "cannot allocate unregistered device _",
  "device plugin GetPreferredAllocation rpc failed with err: busy",
  "event back",
  "event gone",
  "event health",
  "event list",
  "event ready",
  "event reboot",
  "event restart",
  "event stop",
  "event wait",
  "given aligned",
  "given no-affinity",
  "given preferred",
  "given preferred in spite of affinity",
  "given reused",
  "given unaligned",
  "kept sick or unregistered devices over a restart",
  "kept what it holds",
  "near its own hint",
  "no healthy devices present; cannot allocate unhealthy devices _",
  "pod _ container _ changed request for resource _ from _ to _",
  "previously allocated devices are no longer healthy; cannot allocate unhealthy devices _",
  "purged",
  "requested number of devices unavailable for _. Requested: _, Available: _",
  "several pods hold devices",
];

describe("assigned devices over random pods, plugins, restarts and reboots", () => {
  test(
    "are never shared, healthy when new, reused ones first and then aligned ones, in the exact number",
    PATIENT,
    () => {
      const met = new Met();
      for (let i = 0; i < WORLDS; i++) {
        const d = draws(SEED + i);
        const world = deviceWorld(d);
        for (let step = 0; step < STEPS; step++) {
          if (d.chance(3)) admit(world, randomDevicePod(world, d), d, met);
          else if (d.chance(4) && world.pods.size > 0) admit(world, askedAgain(world, d), d, met);
          else met.note(`event ${happen(world, d)}`);
          checkOwners(world, met);
          checkCapacity(world, met);
        }
      }
      expect(met.hardly(10)).toEqual([]);
      expect(Object.keys(met.counts).sort()).toEqual(BRANCHES);
    },
  );

  test("are the same for the same state, whatever order the plugins list their devices in", PATIENT, () => {
    let given = 0;
    for (let i = 0; i < 300; i++) {
      const d = draws(SEED + i);
      const world = deviceWorld(d);
      const pod = randomDevicePod(world, d);
      const turned = { ...world, resources: new Map([...world.resources].reverse()) };
      for (const [name, r] of turned.resources) turned.resources.set(name, { ...r, devices: [...r.devices].reverse() });
      const files = [world, world, turned].map((w) => {
        const manager = managerNow(w);
        for (const c of containersOf(pod)) if (!manager.allocate(pod, c, { nodes: 0b11, preferred: false }).ok) break;
        given += manager.given.length;
        return writeCheckpoint(manager.checkpoint());
      });
      expect(new Set(files).size).toBe(1);
    }
    expect(given).toBeGreaterThan(300);
  });
});
