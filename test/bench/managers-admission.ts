import { decideAdmission } from "../../api/decide/kinds/admission.ts";
import { decidePreemption } from "../../api/decide/kinds/preemption.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import type { Snapshot } from "../../api/model/snapshot.ts";
import { effectiveSnapshot } from "../../api/profiles/effective.ts";

interface BenchCase {
  readonly name: string;
  readonly run: () => void;
}

const PODS = 250;
/** Sizes as a cluster has them: a few templates, many replicas. */
const SIZES = [
  { cpu: "100m", memory: "128Mi" },
  { cpu: "250m", memory: "512Mi" },
  { cpu: "500m", memory: "1Gi" },
  { cpu: "1", memory: "2Gi" },
  { cpu: "50m", memory: "64Mi" },
  {},
];
/** `each`: every pod of another size, so that no two are alike to a search. */
function podOf(i: number, each: boolean): unknown {
  const requests = each
    ? { cpu: `${97 + ((i * 7919) % 911)}m`, memory: `${64 + ((i * 104729) % 1999)}Mi` }
    : SIZES[i % 6];
  const resources = i % 3 === 0 ? { requests, limits: requests } : { requests };
  const status = { name: "c", state: { running: {} }, allocatedResources: requests, resources };
  return {
    metadata: { name: `p${i}`, namespace: "bench", uid: `uid-${i}` },
    spec: { nodeName: "n", priority: i % 10, containers: [{ name: "c", resources, ports: [{ containerPort: 80 }] }] },
    status: { phase: "Running", containerStatuses: [status] },
  };
}
const read = (input: unknown): Snapshot => {
  const decoded = decodeSnapshot(input);
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
  return decoded.value;
};
/** A node that is full: `room` is what its pods request. */
const nodeOf = (each: boolean, room: Readonly<Record<string, string>>): Snapshot =>
  read({
    node: {
      metadata: { name: "n", labels: { "kubernetes.io/os": "linux", zone: "a" } },
      status: {
        allocatable: { ...room, pods: "250", "ephemeral-storage": "100Gi" },
        conditions: [{ type: "Ready", status: "True" }],
      },
    },
    pods: Array.from({ length: PODS }, (_, i) => podOf(i, each)),
  });
const asking = (priority: number) =>
  read({
    pods: [
      {
        metadata: { name: "asked", namespace: "bench", uid: "asked" },
        spec: {
          priority,
          nodeName: "n",
          containers: [{ name: "c", resources: { requests: { cpu: "4", memory: "8Gi" } } }],
        },
      },
    ],
  }).pods?.[0] ?? null;

const alike = nodeOf(false, { cpu: "79", memory: "160Gi" });
const unlike = nodeOf(true, { cpu: "139", memory: "260Gi" });
const plain = { pod: asking(0) };
const critical = { pod: asking(2_000_000_000) };

/** One decision a run, the input decoded before. */
export const ADMISSION_CASES: readonly BenchCase[] = [
  {
    name: "admission beside 250 pods",
    run: () => {
      if (!decideAdmission({ snapshot: effectiveSnapshot(alike), facts: {}, ask: plain, explain: "reasons" }).ok)
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
