import { describe, expect, it } from "vitest";
import { writeCheckpoint } from "../../../api/decide/devices/checkpoint.ts";
import { decideKind } from "../../../api/decide/kinds/index.ts";
import type { CpusDecision } from "../../../api/model/cpus.ts";
import type { DevicesDecision } from "../../../api/model/devices.ts";
import { pod } from "../../kit/pods.ts";
import { decoded } from "../../kit/snapshots.ts";

const node = {
  machine: { cpus: [0, 1, 2, 3].map((cpu) => ({ cpu, core: cpu, socket: 0, numa: 0 })) },
  kubeletConfiguration: { cpuManagerPolicy: "static", kubeReserved: { cpu: "1" } },
  pods: ["a", "b"].map((name) => pod(name, { metadata: { namespace: "shop", uid: `u-${name}` } })),
};

function decided<D>(kind: "cpus" | "devices", input: object): D {
  const snapshot = decoded({ ...node, ...input });
  const answer = decideKind(kind, { snapshot, facts: {}, ask: { pod: null }, explain: "off" });
  if (!answer.ok) throw new Error(answer.error.message);
  return answer.value.decision as D;
}

describe("a decision reports what the kubelet accepts silently", () => {
  it("when two pods hold the same exclusive CPU", () => {
    const file = { policyName: "static", defaultCpuSet: "0,3", entries: { "u-a": { c: "1-2" }, "u-b": { c: "2" } } };
    const { overlaps, startErrors } = decided<CpusDecision>("cpus", { assignments: { cpu_manager_state: file } });
    expect(startErrors).toEqual([]);
    expect(overlaps).toEqual([
      {
        cpus: "2",
        holders: [
          { pod: { namespace: "shop", name: "a", uid: "u-a" }, container: "c" },
          { pod: { namespace: "shop", name: "b", uid: "u-b" }, container: "c" },
        ],
      },
    ]);
  });
  it("when two pods hold the same device", () => {
    const entry = (podUid: string, ids: string[]) => ({
      podUid,
      containerName: "c",
      resourceName: "example.com/gpu",
      deviceIds: new Map([[0, ids]]),
      allocResp: "",
    });
    const file = writeCheckpoint({
      entries: [entry("u-a", ["g0", "g1"]), entry("u-b", ["g1"])],
      registered: new Map([["example.com/gpu", ["g0", "g1"]]]),
    });
    const { overlaps, resources } = decided<DevicesDecision>("devices", {
      devices: ["g0", "g1"].map((id) => ({ resource: "example.com/gpu", id })),
      assignments: { kubelet_internal_checkpoint: file },
    });
    expect(overlaps).toEqual([
      {
        resource: "example.com/gpu",
        device: "g1",
        pods: ["a", "b"].map((name) => ({ namespace: "shop", name, uid: `u-${name}` })),
      },
    ]);
    expect(resources).toMatchObject([{ capacity: 2, allocatable: 2, allocated: 2 }]);
  });
  it("when the device checkpoint has a wrong checksum and is discarded", () => {
    const { checkpointError, assignments } = decided<DevicesDecision>("devices", {
      devices: [],
      assignments: {
        kubelet_internal_checkpoint: '{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":1}',
      },
    });
    expect(checkpointError).toBe("checkpoint is corrupted");
    expect(assignments).toEqual([]);
  });
});
