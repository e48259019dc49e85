import { decideContainerGc } from "../../api/decide/kinds/container-gc.ts";
import type { Snapshot } from "../../api/model/snapshot.ts";
import { effectiveSnapshot } from "../../api/profiles/effective.ts";
import { decoded } from "../kit/snapshots.ts";

interface BenchCase {
  readonly name: string;
  readonly run: () => void;
}
const DEAD = 10_000;
const NOW_NANOS = BigInt(Date.parse("2026-01-31T12:00:00Z")) * 1_000_000n;

/**
 * Ids, uids and times look like those of containerd. There are `perUnit` dead containers of each name, and about a
 * tenth of their pods do not exist any more.
 */
function crowdedNode(perUnit: number): Snapshot {
  const hex = (i: number, length: number): string =>
    ((i + 1) * 2_654_435_761).toString(16).padStart(13, "0").repeat(5).slice(0, length);
  const uidOf = (pod: number): string => `${hex(pod, 8)}-0000-4000-8000-${String(pod).padStart(12, "0")}`;
  const units = DEAD / perUnit;
  const pods = Array.from({ length: Math.min(512, units) }, (_, i) => i);
  const podAt = (i: number): number => (i % units) % Math.ceil(pods.length * 1.1);
  const numbers = Array.from({ length: DEAD }, (_, i) => i);
  return decoded({
    observedAt: "2026-01-31T12:00:00Z",
    pods: pods.map((i) => ({
      metadata: { name: `p${i}`, namespace: "default", uid: uidOf(i) },
      spec: { containers: [{ name: "c" }] },
    })),
    kubelet: { minimumContainerTTLMs: 60_000, maximumDeadContainers: DEAD / 4 },
    runtime: {
      containers: numbers.map((i) => ({
        id: hex(i, 52) + String(i).padStart(12, "0"),
        podSandboxId: hex(podAt(i), 64),
        metadata: { name: `c${i % units}`, attempt: Math.floor(i / units) },
        state: i % 100 === 0 ? "CONTAINER_UNKNOWN" : "CONTAINER_EXITED",
        createdAt: String(NOW_NANOS - BigInt((i * 2_654_435_761) % 86_400_000) * 1_000_003n),
        labels: {
          "io.kubernetes.container.name": `c${i % units}`,
          "io.kubernetes.pod.name": `p${podAt(i)}`,
          "io.kubernetes.pod.namespace": "default",
          "io.kubernetes.pod.uid": uidOf(podAt(i)),
        },
      })),
      sandboxes: numbers.slice(0, DEAD / 10).map((i) => ({
        id: hex(i, 64),
        metadata: { name: `p${podAt(i)}`, namespace: "default", uid: uidOf(podAt(i)), attempt: i },
        state: "SANDBOX_NOTREADY",
        createdAt: String(NOW_NANOS - BigInt(i) * 1_000_000_000n),
      })),
      podLogDirectories: pods.map((i) => `default_p${i}_${uidOf(i)}`),
      danglingLogLinks: pods.map((i) => `p${i}_default_c-${hex(i, 52)}${String(i).padStart(12, "0")}.log`),
    },
  });
}

const benchCase = (name: string, perUnit: number): BenchCase => {
  const snapshot = crowdedNode(perUnit);
  return {
    name: `${DEAD.toLocaleString("en")} dead containers, ${name}`,
    run: () => {
      const ask = { operation: "garbage-collect", done: null } as const;
      const decided = decideContainerGc({ snapshot: effectiveSnapshot(snapshot), facts: {}, ask, explain: "reasons" });
      if (!decided.ok || decided.value.verdict !== "removes") throw new Error("nothing goes");
    },
  };
};

/** The snapshots are decoded before the measurement; the decisions include all reasons. */
export const CONTAINER_GC_CASES: readonly BenchCase[] = [
  benchCase("10 of each name", 10),
  benchCase("each of another name", 1),
  benchCase("all of one name", DEAD),
];
