import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { ok } from "../../../api/base/result.ts";
import { type Device, type Inventory, inventoriesOf } from "../../../api/decide/devices/inventory.ts";
import { type DeviceManager, deviceManager } from "../../../api/decide/devices/manager.ts";
import { perNumaOf } from "../../../api/decide/devices/pod-devices.ts";
import type { PreferredAllocation } from "../../../api/decide/devices/preferred.ts";
import {
  ANY_NODE,
  idsOf,
  maskOf,
  type NumaNodes,
  numaNodes,
  type ResourceHints,
} from "../../../api/decide/topology/hint.ts";
import { type Container, containersOf, isSidecar, type Pod } from "../../../api/model/pod.ts";
import { epochMs } from "../../../api/model/units.ts";
import { decodedPod } from "../../kit/pods.ts";
import { BEHAVIOUR } from "../../kit/profiles.ts";

/**
 * Random cases and the answers of the device manager of k8s.io/kubernetes v1.36.3, run as a library with plugins that
 * answer like `plugin` below. Each case is about one container, whose pod's earlier containers have their devices
 * already.
 */
interface Case {
  readonly nodes: readonly number[];
  readonly ready: boolean;
  readonly running: readonly string[];
  readonly active: readonly string[];
  readonly resources: readonly {
    readonly resource: string;
    readonly devices: readonly Device[];
    readonly prefers: boolean;
    readonly stopped?: true;
  }[];
  readonly held: readonly (readonly [pod: string, container: string, resource: string, ids: readonly string[]])[];
  readonly pod: unknown;
  readonly container: string;
  readonly affinity: readonly number[] | null;
  readonly out: {
    readonly hints: unknown;
    readonly podHints?: unknown;
    readonly error?: string;
    readonly given?: Readonly<Record<string, readonly string[]>>;
  };
}
const FILE = join(import.meta.dirname, "../../data/device-manager/kubelet-answers.jsonl.gz");
const CASES = gunzipSync(readFileSync(FILE))
  .toString("utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Case);

/**
 * A plugin's answer: the devices that must be included, then the available ones in reverse alphabetical order; one
 * device too few for an odd size.
 */
const plugin: PreferredAllocation = ({ available, mustInclude, size }) => {
  const rest = available
    .filter((id) => !mustInclude.includes(id))
    .sort()
    .reverse();
  return ok([...mustInclude, ...rest.slice(0, Math.max(0, size - (size % 2) - mustInclude.length))]);
};
const NOW = epochMs(1_800_000_000_000);

interface Replay {
  readonly manager: DeviceManager;
  readonly nodes: NumaNodes;
  readonly pod: Pod;
  readonly container: Container;
}
/** The manager's state before the container's allocation. */
function replay(c: Case): Replay {
  const inventories = inventoriesOf({
    resources: c.resources.map((r) => ({
      resource: r.resource,
      devices: r.devices,
      plugin: {
        registered: r.stopped !== true,
        stoppedAt: r.stopped === true ? NOW : undefined,
        options: { getPreferredAllocationAvailable: r.prefers },
      },
    })),
    checkpointed: [],
    now: NOW,
    kubeletStartedAt: undefined,
  });
  const entries = c.held.map(([podUid, containerName, resourceName, ids]) => ({
    podUid,
    containerName,
    resourceName,
    deviceIds: perNumaOf(inventories.get(resourceName) as Inventory, ids),
    allocResp: "",
  }));
  const nodes = numaNodes(c.nodes);
  const manager = deviceManager({
    inventories,
    checkpoint: { entries, registered: null },
    nodes,
    sourcesReady: c.ready,
    activePods: new Set(c.active),
    runningAtStart: (pod, container) => c.running.includes(`${pod}/${container}`),
    prefer: plugin,
    behaviour: BEHAVIOUR,
  });
  const pod = decodedPod(c.pod);
  const containers = containersOf(pod);
  const turn = containers.findIndex((x) => x.name === c.container);
  for (const earlier of containers.slice(0, turn)) expect(manager.allocate(pod, earlier, ANY_NODE).ok).toBe(true);
  expect(manager.given).toEqual([]);
  return { manager, nodes, pod, container: containers[turn] as Container };
}

const shown = (hints: ResourceHints, nodes: NumaNodes): unknown =>
  Object.fromEntries(
    [...hints].map(([resource, list]) => [
      resource,
      list?.map((h) => ({ nodes: idsOf(nodes, h.nodes as number), preferred: h.preferred })) ?? null,
    ]),
  );
const decided = (c: Case) => {
  const { manager, nodes, pod, container } = replay(c);
  const affinity = { nodes: c.affinity === null ? null : maskOf(nodes, c.affinity), preferred: false };
  return { manager, allocated: manager.allocate(pod, container, affinity) };
};

/** Devices that the pod's earlier init containers can pass on, according to the case. */
function leftBefore(c: Case, resource: string): ReadonlySet<string> {
  const pod = decodedPod(c.pod);
  let left: readonly string[] = [];
  for (const { name } of containersOf(pod)) {
    if (name === c.container) break;
    const ids = c.held.find(([p, n, r]) => p === pod.metadata.uid && n === name && r === resource)?.[3] ?? [];
    const init = pod.spec.initContainers?.find((x) => x.name === name);
    left = init !== undefined && !isSidecar(init) ? [...left, ...ids] : left.filter((id) => !ids.includes(id));
  }
  return new Set(left);
}
/**
 * The group from which each id comes. A Go map decides which of equal devices the kubelet takes, so answers are
 * compared by group.
 */
function kinds(c: Case, resource: string, ids: Iterable<string>): readonly string[] {
  const devices = c.resources.find((r) => r.resource === resource)?.devices ?? [];
  const placed = devices.some((d) => (d.numaNodes?.length ?? 0) > 0);
  const left = leftBefore(c, resource);
  const kind = (id: string): string => {
    const on = devices.find((d) => d.id === id)?.numaNodes ?? [];
    if (left.has(id)) return "reused";
    if (c.affinity === null || !placed) return "any";
    if (on.length === 0) return "without topology";
    return on.some((node) => c.affinity?.includes(node)) ? "aligned" : "unaligned";
  };
  return [...ids].map(kind).sort();
}

describe("recorded answers of the kubelet's own device manager", () => {
  it("cover many cases of every kind", () => {
    const count = (is: (c: Case) => boolean) => CASES.filter(is).length;
    expect(CASES.length).toBeGreaterThan(300);
    expect(count((c) => c.out.error !== undefined)).toBeGreaterThan(90);
    expect(count((c) => c.out.podHints !== undefined)).toBeGreaterThan(100);
    expect(count((c) => !c.ready)).toBeGreaterThan(30);
    const given = CASES.flatMap((c) => Object.entries(c.out.given ?? {}).flatMap(([r, ids]) => kinds(c, r, ids)));
    expect(new Set(given)).toEqual(new Set(["any", "reused", "aligned", "unaligned", "without topology"]));
  });

  it("have the same topology hints for container and pod", () => {
    for (const [i, c] of CASES.entries()) {
      const { manager, nodes, pod, container } = replay(c);
      if (c.out.podHints !== undefined)
        expect(shown(manager.podHints(pod), nodes), `case ${i}`).toEqual(c.out.podHints);
      expect(shown(manager.containerHints(pod, container), nodes), `case ${i}`).toEqual(c.out.hints);
    }
  });

  it("have the same errors, word for word", () => {
    for (const [i, c] of CASES.entries()) {
      const { allocated } = decided(c);
      expect(allocated.ok ? undefined : allocated.error.message, `case ${i}`).toBe(c.out.error);
    }
  });

  it("give as many devices of each sort: reused, aligned, unaligned and without topology", () => {
    for (const [i, c] of CASES.entries()) {
      if (c.out.given === undefined) continue;
      const { manager } = decided(c);
      const given = Object.fromEntries(manager.given.map((g) => [g.resource, g.taken.flatMap((t) => t.ids)]));
      expect(Object.keys(given).sort(), `case ${i}`).toEqual(Object.keys(c.out.given).sort());
      for (const [resource, ids] of Object.entries(c.out.given)) {
        expect(kinds(c, resource, given[resource] ?? []), `case ${i}`).toEqual(kinds(c, resource, ids));
      }
    }
  });

  it("give the very same devices where a plugin chose them all", () => {
    let met = 0;
    for (const [i, c] of CASES.entries()) {
      const { manager } = decided(c);
      for (const { resource, taken } of manager.given) {
        const ids = taken.flatMap((t) => t.ids);
        const prefers = c.resources.find((r) => r.resource === resource)?.prefers === true;
        if (!prefers || ids.length % 2 === 1 || leftBefore(c, resource).size > 0) continue;
        met++;
        expect([...ids].sort(), `case ${i}`).toEqual(c.out.given?.[resource]);
      }
    }
    expect(met).toBeGreaterThan(20);
  });
});
