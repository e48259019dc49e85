import { describe, expect, test } from "vitest";
import { writeCheckpoint } from "../../../api/decide/devices/checkpoint.ts";
import { decideKind } from "../../../api/decide/kinds/index.ts";
import type { CpusDecision } from "../../../api/model/cpus.ts";
import { decodeAsk } from "../../../api/model/decode-ask.ts";
import type { DevicesDecision } from "../../../api/model/devices.ts";
import type { MemoryDecision } from "../../../api/model/memory.ts";
import { container } from "../../kit/containers.ts";
import { bestEffort, namedPod } from "../../kit/pods.ts";
import { realSnapshot } from "../../kit/real-node.ts";
import { decoded } from "../../kit/snapshots.ts";

const RUNNING = { running: { startedAt: "2026-01-01T00:00:00Z" } };
const OVER = { terminated: { exitCode: 137, reason: "Error" } };
type State = typeof RUNNING | typeof OVER;
interface PostedPod {
  readonly metadata: { readonly name: string };
  readonly status: { readonly containerStatuses: readonly { readonly name: string }[] };
}

function answer<D>(kind: "cpus" | "memory" | "devices", snapshot: object, pod: object) {
  const ask = decodeAsk(kind, { pod });
  if (!ask.ok) throw new Error(JSON.stringify(ask.error));
  const reported = decideKind(kind, { snapshot: decoded(snapshot), facts: {}, ask: ask.value, explain: "off" });
  if (!reported.ok) throw new Error(reported.error.message);
  return { decision: reported.value.decision as D, next: JSON.stringify(reported.value.next) };
}

describe("the captured node when its pod with an exclusive CPU is evicted", () => {
  const wanting = { cpu: "1", memory: "64Mi" };
  const next = namedPod("next", [container("c", wanting, wanting)]);
  const real = realSnapshot();
  const pods = (real["pods"] as { readonly items: readonly PostedPod[] }).items;
  const held = pods.find(({ metadata }) => metadata.name === "guar-int") as PostedPod;
  const evicted = (state: State, assignments = real["assignments"]) => {
    const containerStatuses = held.status.containerStatuses.map((one) => ({ ...one, state }));
    const failed = { ...held, status: { ...held.status, phase: "Failed", reason: "Evicted", containerStatuses } };
    return { ...real, assignments, pods: pods.map((pod) => (pod === held ? failed : pod)) };
  };
  test("the CPU stays assigned while the container runs, and the next pod is refused", () => {
    const { decision } = answer<CpusDecision>("cpus", evicted(RUNNING), next);
    expect(decision.refusal?.message).toContain("not enough cpus available to satisfy request");
    expect(decision.assigned).toEqual([]);
  });
  test("the CPU is free once the container has stopped", () => {
    const { decision } = answer<CpusDecision>("cpus", evicted(OVER), next);
    expect(decision.refusal).toBeNull();
    expect(decision.assigned).toMatchObject([{ container: "c", cpus: "1" }]);
  });
  test("the pod's memory stays assigned until the container has stopped", () => {
    const small = bestEffort("next");
    const freeAfter = (state: State): number => {
      const file = JSON.parse(answer<MemoryDecision>("memory", evicted(state), small).next) as {
        readonly assignments: { readonly memory_manager_state: string };
      };
      return JSON.parse(file.assignments.memory_manager_state).machineState["0"].memoryMap.memory.free;
    };
    expect(freeAfter(OVER) - freeAfter(RUNNING)).toBe(134_217_728);
  });
  test("without the kubelet's state file the evicted pod is not re-admitted", () => {
    const { cpu_manager_state: _, ...others } = real["assignments"] as Record<string, string>;
    const { decision } = answer<CpusDecision>("cpus", evicted(RUNNING, others), next);
    expect(decision.refusal).toBeNull();
  });
});

describe("devices of a failed pod", () => {
  const resource = "example.com/gpu";
  const limits = { [resource]: "1" };
  const nodeOfFailed = (state: State) => ({
    pods: [
      {
        ...namedPod("old", [container("c", undefined, limits)]),
        status: { phase: "Failed", containerStatuses: [{ name: "c", state }] },
      },
    ],
    devices: [{ resource, id: "gpu-0" }],
    assignments: {
      kubelet_internal_checkpoint: writeCheckpoint({
        entries: [
          {
            podUid: "old",
            containerName: "c",
            resourceName: resource,
            deviceIds: new Map([[-1, ["gpu-0"]]]),
            allocResp: null,
          },
        ],
        registered: new Map([[resource, ["gpu-0"]]]),
      }),
    },
  });
  const next = namedPod("next", [container("c", undefined, limits)]);
  test.each([
    [RUNNING, [], []],
    [OVER, ["old"], ["gpu-0"]],
  ] as const)("with container state %j: purged pods %j, devices given to the next pod %j", (state, purged, given) => {
    const { decision } = answer<DevicesDecision>("devices", nodeOfFailed(state), next);
    expect(decision.purged).toEqual(purged);
    expect(decision.assigned.flatMap(({ devices }) => devices)).toEqual(given);
    expect(decision.refusal === null).toBe(given.length > 0);
  });
});
