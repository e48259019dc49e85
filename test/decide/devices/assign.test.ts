import { describe, expect, it } from "vitest";
import { type AnsweredRequest, recordedAnswers } from "../../../api/decide/devices/preferred.ts";
import type { Container } from "../../../api/model/pod.ts";
import { epochMs } from "../../../api/model/units.ts";
import { admit, devicePod, GPU, held, managerOf, NIC, NOW, plain, resource, type Scene } from "./devices-kit.ts";

const one = (limits: Record<string, number>) => devicePod("p", { containers: { c: limits } });
/**
 * The devices that a pod's only container gets with this NUMA affinity, by the list they are taken from; or the error's
 * message.
 */
function given(scene: Scene, limits: Record<string, number>, affinity: number | null = null) {
  const manager = managerOf(scene);
  const error = admit(manager, one(limits), { nodes: affinity, preferred: false });
  return error ?? manager.given.flatMap((g) => g.taken.map((t) => `${t.from}: ${t.ids.join(" ")}`));
}
const ENTRY = { podUid: "p", containerName: "c", resourceName: GPU, allocResp: "" };
const holding = (...ids: string[]): NonNullable<Scene["checkpoint"]> => ({
  entries: [{ ...ENTRY, deviceIds: new Map([[-1, ids]]) }],
  registered: null,
});

describe("the kubelet's checks before it allocates devices", () => {
  const unregistered = "cannot allocate unregistered device example.com/gpu";
  const unhealthy = "no healthy devices present; cannot allocate unhealthy devices example.com/gpu";
  const lost = "previously allocated devices are no longer healthy; cannot allocate unhealthy devices example.com/gpu";
  const changed = 'pod "p" container "c" changed request for resource "example.com/gpu" from 1 to 2';

  it("skip a resource that no device plugin ever registered", () => {
    expect(given({ resources: [] }, { [GPU]: 1, cpu: 2 })).toEqual([]);
  });
  it("refuse a changed device count before any other fault", () => {
    expect(given({ resources: [], checkpoint: holding("a-0") }, { [GPU]: 2 })).toBe(changed);
    const running = { sourcesReady: false, runningAtStart: () => true };
    expect(given({ resources: [], checkpoint: holding("a-0"), ...running }, { [GPU]: 2 })).toBe(changed);
  });
  it("refuse a container that holds devices of a resource whose plugin was removed", () => {
    expect(given({ resources: [], checkpoint: holding("a-0") }, { [GPU]: 1 })).toBe(unregistered);
    const gone = { ...plain(GPU, 1), plugin: { registered: false, stoppedAt: epochMs(NOW - 300_001) } };
    expect(given({ resources: [gone], checkpoint: holding("a-0") }, { [GPU]: 1 })).toBe(unregistered);
  });
  it("refuse a resource without healthy devices, even to a container that asks for none", () => {
    const sick = resource(GPU, { "-a-0": null });
    expect(given({ resources: [sick] }, { [GPU]: 1 })).toBe(unhealthy);
    expect(given({ resources: [sick] }, { [GPU]: 0 })).toBe(unhealthy);
    expect(given({ resources: [sick], checkpoint: holding("a-0") }, { [GPU]: 1 })).toBe(unhealthy);
  });
  it("refuse a container that holds a device that is now unhealthy", () => {
    expect(
      given({ resources: [resource(GPU, { "-a-0": null, "a-1": null })], checkpoint: holding("a-0") }, { [GPU]: 1 }),
    ).toBe(lost);
    expect(given({ resources: [plain(GPU, 2)], checkpoint: holding("gone") }, { [GPU]: 1 })).toBe(lost);
  });
  it("leave a container the devices that it holds", () => {
    expect(given({ resources: [plain(GPU, 2)], checkpoint: holding("a-1") }, { [GPU]: 1 })).toEqual([]);
  });
  it("count only the devices that are still needed after reuse", () => {
    const manager = managerOf({ resources: [plain(GPU, 3)] });
    const pod = devicePod("p", { init: { i: { [GPU]: 2 } }, containers: { c: { [GPU]: 4 } } });
    expect(admit(manager, pod)).toBe(
      "requested number of devices unavailable for example.com/gpu. Requested: 2, Available: 1",
    );
  });
});

describe("the devices that a container gets", () => {
  it("are the first healthy and free ones in natural order", () => {
    const devices = resource(GPU, { "gpu-10": null, "gpu-2": null, "-gpu-1": null, "gpu-3": null });
    expect(given({ resources: [devices] }, { [GPU]: 2 })).toEqual(["no-affinity: gpu-2 gpu-3"]);
  });
  const placed = { a: [0], b: [1], c: [0, 1], d: null, e: [], f: [7] };
  it("are NUMA-aligned ones first, then those on other nodes, then those without a node", () => {
    const scene = { resources: [resource(GPU, placed)] };
    expect(given(scene, { [GPU]: 1 }, 0b01)).toEqual(["aligned: a"]);
    expect(given(scene, { [GPU]: 2 }, 0b10)).toEqual(["aligned: b c"]);
    expect(given(scene, { [GPU]: 3 }, 0b10)).toEqual(["aligned: b c", "unaligned: a"]);
    expect(given(scene, { [GPU]: 6 }, 0b10)).toEqual(["aligned: b c", "unaligned: a f", "no-affinity: d e"]);
  });
  it("are taken in natural order when there is no NUMA hint or no topology", () => {
    expect(given({ resources: [resource(GPU, placed)] }, { [GPU]: 2 })).toEqual(["no-affinity: a b"]);
    expect(given({ resources: [resource(GPU, { z: null, y: [] })] }, { [GPU]: 1 }, 0b01)).toEqual(["no-affinity: y"]);
  });
  it("are allocated for all resources of a container or for none", () => {
    const manager = managerOf({ resources: [plain(GPU, 2), plain(NIC, 1)] });
    expect(admit(manager, one({ [GPU]: 1, [NIC]: 2 }))).toContain("unavailable for example.com/nic");
    expect(manager.given).toEqual([]);
    expect(manager.state.pods.size).toBe(0);
    expect(manager.state.inUse(GPU).size).toBe(0);
    expect(admit(manager, one({ [GPU]: 2, [NIC]: 1 }))).toBeUndefined();
    expect(held(manager, GPU)).toEqual({ "p/c": ["a-0", "a-1"] });
  });
});

describe("a plugin's GetPreferredAllocation", () => {
  const options = { getPreferredAllocationAvailable: true };
  const scene = (answer: Partial<AnsweredRequest>, over: Partial<AnsweredRequest> = {}): Scene => ({
    resources: [resource(GPU, { a: [0], b: [0], c: [0], d: [1], e: null }, options)],
    prefer: recordedAnswers([
      {
        resource: GPU,
        available: ["c", "b", "a"],
        mustInclude: [],
        size: 2,
        deviceIds: ["c", "b"],
        ...over,
        ...answer,
      },
    ]),
  });
  const all = { available: ["a", "b", "c", "d", "e"], mustInclude: ["a", "b", "c"] };

  it("chooses among aligned devices when there are more than needed", () => {
    expect(given(scene({}), { [GPU]: 2 }, 0b01)).toEqual(["preferred: c b"]);
  });
  it("is completed when it names too few devices, and cut when it names too many or foreign ones", () => {
    expect(given(scene({ deviceIds: ["c"] }), { [GPU]: 2 }, 0b01)).toEqual(["preferred: c", "aligned: a"]);
    expect(given(scene({ deviceIds: ["d", "x", "c", "c", "b", "a"] }), { [GPU]: 2 }, 0b01)).toEqual(["preferred: c b"]);
  });
  it("is asked with all aligned devices as mandatory when these do not suffice", () => {
    expect(given(scene({ deviceIds: ["a", "b", "c", "e"] }, { ...all, size: 4 }), { [GPU]: 4 }, 0b01)).toEqual([
      "aligned: a b c",
      "preferred: e",
    ]);
  });
  it("refuses the container when the call fails", () => {
    expect(given(scene({ error: "rpc error: code = Unknown desc = busy" }), { [GPU]: 2 }, 0b01)).toBe(
      "device plugin GetPreferredAllocation rpc failed with err: rpc error: code = Unknown desc = busy",
    );
  });
  it("is not called when the plugin does not offer it or there is no choice", () => {
    const manager = managerOf({ resources: [resource(GPU, { a: [0], b: [0] }), resource(NIC, { n: [0] }, options)] });
    expect(admit(manager, one({ [GPU]: 1, [NIC]: 1 }), { nodes: 1, preferred: true })).toBeUndefined();
    expect(manager.unanswered).toEqual([]);
  });
  it("is reported as unanswered when unknown, and the natural order decides", () => {
    const manager = managerOf({ ...scene({}), prefer: recordedAnswers([]) });
    expect(admit(manager, one({ [GPU]: 2 }), { nodes: 1, preferred: true })).toBeUndefined();
    expect(manager.unanswered).toEqual([{ resource: GPU, available: ["a", "b", "c"], mustInclude: [], size: 2 }]);
    expect(held(manager, GPU)).toEqual({ "p/c": ["a", "b"] });
  });
  it("must include reused devices", () => {
    const manager = managerOf({ ...scene({}), prefer: () => undefined });
    const pod = devicePod("p", { init: { i: { [GPU]: 1 } }, containers: { c: { [GPU]: 2 } } });
    const [init, app] = [pod.spec.initContainers?.[0] as Container, pod.spec.containers[0] as Container];
    expect(manager.allocate(pod, init, { nodes: 1, preferred: true }).ok).toBe(true);
    expect(manager.allocate(pod, app, { nodes: 1, preferred: true }).ok).toBe(true);
    expect(manager.unanswered[1]).toEqual({ resource: GPU, available: ["a", "b", "c"], mustInclude: ["a"], size: 2 });
  });
});
