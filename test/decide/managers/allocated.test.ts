import { expect, test } from "vitest";
import { decideKind } from "../../../api/decide/kinds/index.ts";
import type { CpusDecision } from "../../../api/model/cpus.ts";
import { decodeAsk } from "../../../api/model/decode-ask.ts";
import type { MemoryDecision } from "../../../api/model/memory.ts";
import { container, sidecar } from "../../kit/containers.ts";
import { podOf } from "../../kit/pods.ts";
import { decoded, type Json, many } from "../../kit/snapshots.ts";

/** A container that requests 2 CPUs and 1 GiB in its spec, and to which 3 CPUs and 2 GiB are allocated. */
const asked = { cpu: "2", memory: "1Gi" };
const given = { cpu: "3", memory: "2Gi" };
const podWith = (status: Json): Json =>
  podOf(
    [container("c", asked, asked)],
    { initContainers: [container("init", asked, asked), sidecar("side", asked, asked)] },
    { metadata: { name: "p", namespace: "shop", uid: "u" }, status },
  );

function decided<D>(
  kind: "cpus" | "memory",
  kubeletVersion: string,
  status: Json,
  featureGates: Json = {},
  settings: Json = {},
): D {
  const snapshot = decoded({
    node: { metadata: { name: "n" }, status: { capacity: { memory: "64Gi" }, nodeInfo: { kubeletVersion } } },
    machine: {
      cpus: many(16, (cpu) => ({ cpu, core: cpu, socket: 0, numa: 0 })),
      numaNodes: [{ id: 0, memoryBytes: 2 ** 36 }],
    },
    kubeletConfiguration: {
      cpuManagerPolicy: "static",
      memoryManagerPolicy: "Static",
      evictionHard: {},
      kubeReserved: { cpu: "1", memory: "1Gi" },
      reservedMemory: [{ numaNode: 0, limits: { memory: "1Gi" } }],
      featureGates,
      ...settings,
    },
  });
  const ask = decodeAsk(kind, { pod: podWith(status) });
  if (!ask.ok) throw new Error(JSON.stringify(ask.error));
  const answer = decideKind(kind, { snapshot, facts: {}, ask: ask.value, explain: "off" });
  if (!answer.ok) throw new Error(answer.error.message);
  return { ...(answer.value.decision as D), next: answer.value.next };
}
type Next = { readonly next: { readonly assignments: Readonly<Record<string, string>> } };
const entriesOf = (of: unknown, file: string) =>
  JSON.parse((of as Next).next.assignments[file] as string).entries["u"] as Record<string, unknown>;
/** The CPUs and the memory that each container gets. */
function held(version: string, status: Json, gates?: Json): Readonly<Record<string, string>> {
  const cpus = entriesOf(decided<CpusDecision>("cpus", version, status, gates), "cpu_manager_state");
  const memory = entriesOf(decided<MemoryDecision>("memory", version, status, gates), "memory_manager_state");
  const count = (list: unknown): number =>
    String(list ?? "")
      .split(",")
      .filter((part) => part !== "")
      .reduce((sum, part) => {
        const [first, last = first] = part.split("-").map(Number) as [number, number?];
        return sum + last - first + 1;
      }, 0);
  const gibs = (name: string): number =>
    ((memory[name] ?? []) as readonly { size: number }[]).reduce((sum, { size }) => sum + size / 2 ** 30, 0);
  return Object.fromEntries(["init", "side", "c"].map((name) => [name, `${count(cpus[name])} CPUs, ${gibs(name)} Gi`]));
}

const allocated = (name: string): Json => ({ name, allocatedResources: given });
const full = {
  initContainerStatuses: ["init", "side"].map(allocated),
  containerStatuses: [allocated("c")],
};
const AS_ASKED = { init: "2 CPUs, 0 Gi", side: "2 CPUs, 1 Gi", c: "2 CPUs, 1 Gi" };

test("kubelet 1.34 counts resources allocated in the status, except for init containers", () => {
  expect(held("v1.34.4", full)).toEqual({ init: "2 CPUs, 0 Gi", side: "3 CPUs, 2 Gi", c: "3 CPUs, 2 Gi" });
  expect(held("v1.34.4", {})).toEqual(AS_ASKED);
});
test("in 1.34 a status without allocated resources counts as no CPUs and unsatisfiable memory", () => {
  const status = { containerStatuses: [{ name: "c" }] };
  expect(decided<MemoryDecision>("memory", "v1.34.4", status).refusal?.message).toMatch(
    /failed to get the default NUMA affinity, no NUMA nodes with enough memory is available/,
  );
  const settings = { memoryManagerPolicy: "None", reservedMemory: [] };
  const cpus = decided<CpusDecision>("cpus", "v1.34.4", status, {}, settings);
  expect(Object.keys(entriesOf(cpus, "cpu_manager_state"))).toEqual(["init", "side"]);
});
test("with the gate off, and from 1.35 on, the resource managers count the spec", () => {
  expect(held("v1.34.4", full, { InPlacePodVerticalScaling: false })).toEqual(AS_ASKED);
  for (const version of ["v1.35.4", "v1.36.3", "v1.37.2"]) expect(held(version, full)).toEqual(AS_ASKED);
});
