import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { sourceOf } from "../../../actuator/podresources/live-source.ts";
import {
  allocatableResources,
  alphaPodResources,
  podResources,
  podResourcesOf,
} from "../../../actuator/podresources/server.ts";
import { managedNode } from "../../../api/decide/managers/node.ts";
import { effectiveSnapshot } from "../../../api/profiles/effective.ts";
import { pod } from "../../kit/pods.ts";
import { realSnapshot } from "../../kit/real-node.ts";
import { decoded } from "../../kit/snapshots.ts";

function managedNodeOf(snapshot: unknown) {
  const node = managedNode(effectiveSnapshot(decoded(snapshot)), []);
  if (!node.ok || !node.value.ok) throw new Error(JSON.stringify(node));
  return node.value.value;
}
const sourceFrom = (snapshot: unknown) => sourceOf(managedNodeOf(snapshot));
const topology = { nodes: [{ ID: 0 }] };
const memory = (size: number) => [{ memoryType: "memory", size, topology }];

describe("the captured node of a real kubelet 1.36.3", () => {
  const source = sourceFrom(realSnapshot());
  const reported = new Map(
    podResources(source).podResources.flatMap(({ name, containers }) =>
      containers.map((c) => [`${name}/${c.name}`, c] as const),
    ),
  );
  test("lists CPUs by cpu_manager_state and memory by memory_manager_state, for the pinned containers alone", () => {
    expect(reported.get("guar-int/c")).toEqual({
      name: "c",
      devices: [],
      cpuIds: [1],
      memory: memory(134_217_728),
      dynamicResources: [],
    });
    expect(reported.get("guar-frac/c")?.cpuIds).toEqual([]);
    expect(reported.get("guar-frac/c")?.memory).toEqual(memory(67_108_864));
    expect([...reported.values()].filter(({ cpuIds }) => cpuIds.length > 0)).toHaveLength(1);
    expect([...reported.values()].filter((c) => c.memory.length > 0)).toHaveLength(3);
  });
  test("lists a sidecar before the pod's containers, and no other init containers", () => {
    const sidecar = podResourcesOf(source, { podName: "sidecar", podNamespace: "default" });
    expect(sidecar.ok && sidecar.value.podResources.containers.map(({ name }) => name)).toEqual(["side", "c"]);
    expect([...reported.keys()].filter((name) => name.startsWith("inits/"))).toEqual(["inits/c"]);
  });
  test("offers all CPUs and memory but the reserved ones as allocatable", () => {
    expect(allocatableResources(source)).toEqual({ devices: [], cpuIds: [1], memory: memory(15_273_775_104) });
  });
  test("lists no CPUs or memory for containers, nor as allocatable, without the static policies", () => {
    const none = sourceFrom({ ...realSnapshot(), kubeletConfiguration: {}, assignments: {} });
    expect(allocatableResources(none)).toEqual({ devices: [], cpuIds: [], memory: [] });
    const all = podResources(none).podResources.flatMap(({ containers }) => containers);
    expect(all).toHaveLength(reported.size);
    expect(all.every(({ cpuIds, memory }) => cpuIds.length === 0 && memory.length === 0)).toBe(true);
  });
});

describe("the plugin devices of a real kubelet 1.36.3", () => {
  interface Step {
    readonly name: string;
    readonly pod?: { readonly metadata: { readonly name: string } };
    readonly after: {
      readonly checkpoint: { readonly Data: { readonly RegisteredDevices: Readonly<Record<string, string[]>> } };
      readonly pods: readonly { readonly name: string; readonly uid: string; readonly phase: string }[];
    };
  }
  const STEPS = JSON.parse(
    readFileSync(join(import.meta.dirname, "../../data/real-devices/story.json"), "utf8"),
  ) as readonly Step[];
  const step = (number: string) => STEPS.find(({ name }) => name.startsWith(number)) as Step;
  const snapshotAfter = ({ after }: Step, plugins: readonly object[] = []) => ({
    pods: after.pods.map(({ name, uid, phase }) =>
      pod(name, { metadata: { uid, namespace: "default" }, status: { phase } }),
    ),
    devices: Object.entries(after.checkpoint.Data.RegisteredDevices).flatMap(([resource, ids]) =>
      ids.map((id) => ({ resource, id })),
    ),
    devicePlugins: plugins,
    assignments: { kubelet_internal_checkpoint: after.checkpoint },
  });
  const device = (resourceName: string, id: string) => ({ resourceName, deviceIds: [id] });
  const SAMPLE = "example.com/resource";
  const FUSE = "example.com/fuse";
  const IDS = ["88147f87fc92e69580ba38051f238b947269e059", "a68db766f638034740111848aafee2d2dcd6b642"];
  const LAST = "e599ef874758d327fa12ad6d44bcd43b1af19dfb";

  test("are listed for each running pod by the checkpoint; a refused pod is not listed", () => {
    const source = sourceFrom(snapshotAfter(step("11")));
    const held = podResources(source).podResources.map(({ name, containers: [c] }) => [name, c?.devices]);
    expect(held).toEqual([
      ["dp1", [device(SAMPLE, "Dev-1")]],
      ["fu1", IDS.map((id) => device(FUSE, id))],
      ["fu3", [device(FUSE, LAST), device(SAMPLE, "Dev-2")]],
      ["static1-n1", []],
    ]);
    expect(podResourcesOf(source, { podName: "fu2", podNamespace: "default" })).toEqual({
      ok: false,
      error: "pod fu2 in namespace default not found",
    });
  });
  test("are allocatable while healthy, held or not, unless their plugin stopped", () => {
    const all = snapshotAfter(step("11"));
    const fuse = [...IDS, LAST].map((id) => device(FUSE, id));
    expect(allocatableResources(sourceFrom(all)).devices).toEqual([
      ...fuse,
      device(SAMPLE, "Dev-1"),
      device(SAMPLE, "Dev-2"),
    ]);
    const stopped = [{ resource: SAMPLE, registered: false, stoppedAt: "2026-11-21T06:44:10Z" }];
    const later = { ...all, observedAt: "2026-11-21T06:44:12Z", devicePlugins: stopped };
    expect(allocatableResources(sourceFrom(later)).devices).toEqual(fuse);
    // the pod keeps the devices that it holds
    const held = podResourcesOf(sourceFrom(later), { podName: "dp1", podNamespace: "default" });
    expect(held.ok && held.value.podResources.containers[0]?.devices).toEqual([device(SAMPLE, "Dev-1")]);
  });
  test("are allocatable without a topology, but left out with an empty one", () => {
    const devices = [
      { resource: FUSE, id: "a" },
      { resource: FUSE, id: "b", numaNodes: [] },
      { resource: FUSE, id: "c", numaNodes: [1, 0] },
    ];
    const on = (node: number) => ({ ...device(FUSE, "c"), topology: { nodes: [{ ID: node }] } });
    expect(allocatableResources(sourceFrom({ devices })).devices).toEqual([device(FUSE, "a"), on(0), on(1)]);
  });
  test("are still listed for a Failed pod whose containers are being stopped", () => {
    const { pods, ...rest } = snapshotAfter(step("11"));
    const failing = pods.map((pod) =>
      pod.metadata.name === "dp1"
        ? { ...pod, status: { phase: "Failed", containerStatuses: [{ name: "c", state: { running: {} } }] } }
        : pod,
    );
    const names = podResources(sourceFrom({ ...rest, pods: failing })).podResources.map(({ name }) => name);
    expect(names).toContain("dp1");
    expect(names).not.toContain("fu2");
  });
  test("are listed by v1alpha1 for refused and ended pods too, without devices once all sources are ready", () => {
    const { pods, ...rest } = snapshotAfter(step("11"));
    const ended = pods.map((pod) => (pod.metadata.name === "dp1" ? { ...pod, status: { phase: "Succeeded" } } : pod));
    const reportOf = (kubelet: object) =>
      alphaPodResources(sourceFrom({ ...rest, pods: ended, kubelet })).podResources.map(({ name, containers: [c] }) => [
        name,
        c?.devices,
      ]);
    expect(reportOf({})).toEqual([
      ["dp1", []],
      ["fu1", IDS.map((id) => device(FUSE, id))],
      ["fu2", []],
      ["fu3", [device(FUSE, LAST), device(SAMPLE, "Dev-2")]],
      ["static1-n1", []],
    ]);
    expect(reportOf({ sourcesReady: false })[0]).toEqual(["dp1", [device(SAMPLE, "Dev-1")]]);
  });
  test("are not listed when the checkpoint has a wrong checksum", () => {
    const { assignments, ...rest } = snapshotAfter(step("11"));
    const wrong = { kubelet_internal_checkpoint: { ...assignments.kubelet_internal_checkpoint, Checksum: 1 } };
    const reported = podResources(sourceFrom({ ...rest, assignments: wrong })).podResources;
    expect(reported).toHaveLength(4);
    expect(reported.every(({ containers }) => containers.every(({ devices }) => devices.length === 0))).toBe(true);
  });
});
