import { decideByAdmitHandlers } from "../../api/decide/kinds/admission.ts";
import { decidePreemption } from "../../api/decide/kinds/preemption.ts";
import type { Snapshot } from "../../api/model/snapshot.ts";
import { effectiveSnapshot } from "../../api/profiles/effective.ts";
import { node } from "../kit/nodes.ts";
import { decodedPod, pod, requesting } from "../kit/pods.ts";
import { decoded } from "../kit/snapshots.ts";

interface BenchCase {
  readonly name: string;
  readonly run: () => void;
}

const PODS = 250;
/** Sizes as in a real cluster: a few templates with many replicas. */
const SIZES = [
  { cpu: "100m", memory: "128Mi" },
  { cpu: "250m", memory: "512Mi" },
  { cpu: "500m", memory: "1Gi" },
  { cpu: "1", memory: "2Gi" },
  { cpu: "50m", memory: "64Mi" },
  {},
];
/** `each`: every pod has a different size, so that a search finds no two equal pods. */
function replica(i: number, each: boolean): unknown {
  const requests = each
    ? { cpu: `${97 + ((i * 7919) % 911)}m`, memory: `${64 + ((i * 104729) % 1999)}Mi` }
    : SIZES[i % 6];
  const resources = i % 3 === 0 ? { requests, limits: requests } : { requests };
  const status = { name: "c", state: { running: {} }, allocatedResources: requests, resources };
  return pod(`p${i}`, {
    metadata: { namespace: "bench" },
    spec: { nodeName: "n", priority: i % 10, containers: [{ name: "c", resources, ports: [{ containerPort: 80 }] }] },
    status: { phase: "Running", containerStatuses: [status] },
  });
}
/** A full node: its pods request all of `room`. */
const fullNode = (each: boolean, room: Readonly<Record<string, string>>): Snapshot =>
  decoded({
    node: node(
      {
        allocatable: { ...room, pods: "250", "ephemeral-storage": "100Gi" },
        conditions: [{ type: "Ready", status: "True" }],
      },
      { metadata: { labels: { "kubernetes.io/os": "linux", zone: "a" } } },
    ),
    pods: Array.from({ length: PODS }, (_, i) => replica(i, each)),
  });
const asking = (priority: number) =>
  decodedPod(requesting("asked", { cpu: "4", memory: "8Gi" }, { priority, nodeName: "n" }));

const alike = fullNode(false, { cpu: "79", memory: "160Gi" });
const unlike = fullNode(true, { cpu: "139", memory: "260Gi" });
const plain = { pod: asking(0) };
const critical = { pod: asking(2_000_000_000) };

/** One run makes one decision; the input is decoded before. */
export const ADMISSION_CASES: readonly BenchCase[] = [
  {
    name: "admission beside 250 pods",
    run: () => {
      if (!decideByAdmitHandlers({ snapshot: effectiveSnapshot(alike), facts: {}, ask: plain, explain: "reasons" }).ok)
        throw new Error("no answer");
    },
  },
  {
    name: "preemption, 250 candidates",
    run: () => {
      if (!decidePreemption({ snapshot: effectiveSnapshot(alike), facts: {}, ask: critical, explain: "reasons" }).ok)
        throw new Error("no answer");
    },
  },
  {
    name: "the same, no two alike",
    run: () => {
      if (!decidePreemption({ snapshot: effectiveSnapshot(unlike), facts: {}, ask: critical, explain: "reasons" }).ok)
        throw new Error("no answer");
    },
  },
];
