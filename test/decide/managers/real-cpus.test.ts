import { describe, expect, it } from "vitest";
import { decideKind } from "../../../api/decide/kinds/index.ts";
import type { CpusDecision } from "../../../api/model/cpus.ts";
import { decodeAsk } from "../../../api/model/decode-ask.ts";
import type { MemoryDecision } from "../../../api/model/memory.ts";
import runs from "../../data/real-cpus/runs.json" with { type: "json" };
import { running } from "../../kit/containers.ts";
import { pod } from "../../kit/pods.ts";
import { captured } from "../../kit/real-node.ts";
import { decoded } from "../../kit/snapshots.ts";

interface Moment {
  readonly cpuManagerState: object;
  /** The cpuset.cpus of each `pod/container`. */
  readonly cpusets: Readonly<Record<string, string>>;
  readonly memory: Readonly<Record<string, unknown>>;
}
interface Run {
  readonly name: string;
  readonly pod: { readonly metadata: { readonly name: string; readonly uid: string } };
  readonly phase: string;
  readonly reason: string | null;
  readonly message: string | null;
  readonly before: Moment;
  readonly sixSecondsLater: Moment;
}

/** The captured machine: 2 CPUs, one of them reserved. Other pods run on it, each with one container `c`. */
function snapshotBefore({ before }: Run): object {
  const pods = Object.keys(before.cpusets).map((place, i) => {
    const [name, container] = place.split("/") as [string, string];
    return pod(name, {
      metadata: { uid: `beside-${i}` },
      spec: { containers: [{ name: container }] },
      status: { phase: "Running", containerStatuses: [running(container, `${i}`)] },
    });
  });
  return {
    machine: captured("machine.json"),
    node: captured("node.json"),
    kubeletConfiguration: captured("configz.json"),
    cgroup: { version: 1, cpusets: Object.fromEntries(Object.values(before.cpusets).map((cpus, i) => [i, cpus])) },
    pods,
    assignments: { cpu_manager_state: before.cpuManagerState },
  };
}

function answered(kind: "cpus" | "memory", run: Run) {
  const ask = decodeAsk(kind, { pod: run.pod });
  if (!ask.ok) throw new Error(JSON.stringify(ask));
  const answer = decideKind(kind, {
    snapshot: decoded(snapshotBefore(run)),
    facts: {},
    ask: ask.value,
    explain: "reasons",
  });
  if (!answer.ok) throw new Error(answer.error.message);
  return answer.value;
}

describe("pods on a captured node with one assignable CPU", () => {
  it.each(runs as unknown as Run[])(
    "$name ($phase): the CPU decision and the written state file are the kubelet's",
    (run) => {
      const { decision, verdict, next } = answered("cpus", run);
      const { refusal, assigned, sharedPool, reconcile } = decision as CpusDecision;
      expect(verdict).toBe(run.phase === "Failed" ? "refused" : "decided");
      expect(refusal && [refusal.reason, `Pod was rejected: ${refusal.message}`]).toEqual(
        run.reason === null ? null : [run.reason, run.message],
      );
      const later = run.sixSecondsLater;
      // byte for byte the kubelet's file, including the checksum
      const { assignments } = next as { assignments: Record<string, string> };
      expect(assignments["cpu_manager_state"]).toBe(JSON.stringify(later.cpuManagerState));
      for (const { container, cpus } of assigned) {
        expect(later.cpusets[`${run.pod.metadata.name}/${container}`], container).toBe(cpus);
      }
      // the next pass writes the values that the cgroups had then
      const now = { ...run.before.cpusets };
      for (const { pod, container, cpus } of reconcile) now[`${pod.name}/${container}`] = cpus;
      const others = Object.entries(later.cpusets).filter(([place]) => place in run.before.cpusets);
      expect(others.map(([place]) => [place, now[place]])).toEqual(others);
      expect(sharedPool).toBe((later.cpuManagerState as { defaultCpuSet: string }).defaultCpuSet);
    },
  );

  it.each((runs as unknown as Run[]).filter(({ phase }) => phase === "Running"))(
    "$name: the memory blocks are the kubelet's",
    (run) => {
      const { assigned } = answered("memory", run).decision as MemoryDecision;
      const held = assigned.flatMap(({ container, blocks }) => (blocks.length === 0 ? [] : [[container, blocks]]));
      const want = Object.entries(
        run.sixSecondsLater.memory as Record<string, { numaAffinity: number[]; type: string; size: number }[]>,
      );
      expect(held).toEqual(
        want.map(([container, blocks]) => [
          container,
          blocks.map(({ numaAffinity, type, size }) => ({ numaNodes: numaAffinity, resource: type, size })),
        ]),
      );
    },
  );
});
