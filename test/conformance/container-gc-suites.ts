import { decideContainerGc } from "../../api/decide/kinds/container-gc.ts";
import type { GcOperation } from "../../api/model/container-gc.ts";
import { effectiveSnapshot } from "../../api/profiles/effective.ts";
import type { Profile } from "../../api/profiles/profile.ts";
import { container } from "../kit/containers.ts";
import { namedPod } from "../kit/pods.ts";
import { runtimeContainer, unixNanos } from "../kit/runtime.ts";
import { decoded } from "../kit/snapshots.ts";
import { type Suite, suite } from "./suite.ts";

interface PassCase {
  readonly minAgeMs: number;
  readonly maxPerPodContainer: number;
  readonly maxContainers: number;
  readonly allSourcesReady: boolean;
  readonly evictNonDeletedPods: boolean;
  readonly deletedPodUIDs: readonly string[];
  readonly containers: readonly {
    readonly id: string;
    readonly podUID: string;
    readonly name: string;
    readonly attempt: number;
    readonly createdMsAgo: number;
    readonly state: "created" | "running" | "exited" | "unknown";
  }[];
}
const NOW = Date.parse("2026-01-31T12:00:00Z");

/**
 * In the suite also pods with running containers count as deleted. Only an evicted pod counts as removed while its
 * containers run, so deleted pods are given as evicted.
 */
const EVICTED = { conditions: [{ type: "DisruptionTarget", status: "True", reason: "TerminationByKubelet" }] };
function readPass(input: PassCase, profile: Profile) {
  const deleted = new Set(input.deletedPodUIDs);
  const snapshot = decoded({
    observedAt: new Date(NOW).toISOString(),
    kubelet: {
      sourcesReady: input.allSourcesReady,
      minimumContainerTTLMs: input.minAgeMs,
      maximumDeadContainersPerContainer: input.maxPerPodContainer,
      maximumDeadContainers: input.maxContainers,
    },
    pods: [...new Set(input.containers.map((c) => c.podUID))].map((uid) => ({
      ...namedPod(uid, [container("c0")]),
      status: deleted.has(uid) ? EVICTED : { phase: "Running" },
    })),
    runtime: {
      sandboxes: [],
      containers: input.containers.map((c) =>
        runtimeContainer(c.id, {
          metadata: { name: c.name, attempt: c.attempt },
          state: `CONTAINER_${c.state.toUpperCase()}`,
          createdAt: unixNanos(NOW - c.createdMsAgo),
          labels: { "io.kubernetes.pod.uid": c.podUID },
        }),
      ),
    },
  });
  const operation: GcOperation = input.evictNonDeletedPods ? "delete-unused" : "garbage-collect";
  return {
    snapshot: effectiveSnapshot(snapshot, profile),
    facts: {},
    ask: { operation, done: null },
    explain: "off" as const,
  };
}

const containerGc = suite({
  read: readPass,
  decide: decideContainerGc,
  show: (decided) => ({ removed: decided.ok ? decided.value.decision.remove.map((r) => r.id).sort() : null }),
});

export const CONTAINER_GC_SUITES: Readonly<Record<string, Suite>> = { "container-gc": containerGc };
