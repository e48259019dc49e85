import { describe, expect, it } from "vitest";
import type { DeviceCheckpoint } from "../../../api/decide/devices/checkpoint.ts";
import { containerDevices } from "../../../api/decide/devices/manager.ts";
import type { HintProvider } from "../../../api/decide/topology/hint.ts";
import type { Container, Pod } from "../../../api/model/pod.ts";
import { profileOf } from "../../../api/profiles/index.ts";
import type { Profile } from "../../../api/profiles/profile.ts";
import { admit, devicePod, GPU, held, managerOf, NIC, plain, resource } from "./devices-kit.ts";

const app = (pod: Pod): Container => pod.spec.containers[0] as Container;
const entry = (podUid: string, containerName: string, ids: readonly string[], resourceName = GPU, allocResp = "") => ({
  podUid,
  containerName,
  resourceName,
  deviceIds: new Map([[-1, ids]]),
  allocResp,
});
const checkpoint = (...entries: ReturnType<typeof entry>[]): DeviceCheckpoint => ({
  entries,
  registered: new Map([[GPU, []]]),
});

it("a resource provided by a claim takes no plugin device, from kubelet 1.35 on with the gate", () => {
  const bare = devicePod("p", { containers: { c: { [GPU]: 1 }, d: { [GPU]: 1 } } });
  const requestMappings = [{ containerName: "c", resourceName: GPU }];
  const pod: Pod = { ...bare, status: { extendedResourceClaimStatus: { requestMappings } } };
  const given = ({ behaviour }: Profile, claims: boolean) => {
    const manager = managerOf({ resources: [plain(GPU, 4)], behaviour, claims });
    expect(admit(manager, pod)).toBeUndefined();
    return Object.keys(held(manager, GPU));
  };
  expect(given(profileOf("1.34"), true)).toEqual(["p/c", "p/d"]);
  for (const version of ["1.35", "1.36", "1.37"]) {
    expect(given(profileOf(version), true)).toEqual(["p/d"]);
    expect(given(profileOf(version), false)).toEqual(["p/c", "p/d"]);
  }
});

describe("devices within a pod", () => {
  it("are reused from one init container by the next and by the app containers", () => {
    const manager = managerOf({ resources: [plain(GPU, 4)] });
    const pod = devicePod("p", {
      init: { i1: { [GPU]: 1 }, i2: { [GPU]: 2 } },
      containers: { c: { [GPU]: 2 }, d: { [GPU]: 1 } },
    });
    expect(admit(manager, pod)).toBeUndefined();
    expect(held(manager, GPU)).toEqual({
      "p/i1": ["a-0"],
      "p/i2": ["a-0", "a-1"],
      "p/c": ["a-0", "a-1"],
      "p/d": ["a-2"],
    });
  });
  it("stay with a sidecar, including those reused from an init container before it", () => {
    const manager = managerOf({ resources: [plain(GPU, 4)] });
    const init = { i: { [GPU]: 2 }, side: { [GPU]: 1 } };
    const pod = devicePod("p", { init, sidecars: ["side"], containers: { c: { [GPU]: 2 } } });
    expect(admit(manager, pod)).toBeUndefined();
    expect(held(manager, GPU)).toEqual({ "p/i": ["a-0", "a-1"], "p/side": ["a-0"], "p/c": ["a-1", "a-2"] });
  });
  it("that only an init container needed stay allocated until the pod ends", () => {
    const manager = managerOf({ resources: [plain(GPU, 3)] });
    expect(
      admit(manager, devicePod("p", { init: { i: { [GPU]: 3 } }, containers: { c: { [GPU]: 1 } } })),
    ).toBeUndefined();
    expect(admit(manager, devicePod("q", { containers: { c: { [GPU]: 1 } } }))).toBe(
      "requested number of devices unavailable for example.com/gpu. Requested: 1, Available: 0",
    );
  });
  it("of an init container are not reused by another pod", () => {
    const manager = managerOf({ resources: [plain(GPU, 2)] });
    expect(admit(manager, devicePod("p", { init: { i: { [GPU]: 1 } }, containers: { c: {} } }))).toBeUndefined();
    expect(admit(manager, devicePod("q", { containers: { c: { [GPU]: 1 } } }))).toBeUndefined();
    expect(held(manager, GPU)).toEqual({ "p/i": ["a-0"], "q/c": ["a-1"] });
  });
  it("are reused without a check of their health", () => {
    const pod = devicePod("p", { init: { i: { [GPU]: 1 } }, containers: { c: { [GPU]: 1 } } });
    const manager = managerOf({
      resources: [resource(GPU, { "a-0": null, "a-1": null })],
      checkpoint: checkpoint(entry("p", "i", ["a-0"])),
    });
    expect(admit(manager, pod)).toBeUndefined();
    expect(held(manager, GPU)["p/c"]).toEqual(["a-0"]);
  });
});

describe("devices of pods that are no longer active", () => {
  const scene = { resources: [plain(GPU, 1)], checkpoint: checkpoint(entry("gone", "c", ["a-0"])) };
  const pod = devicePod("p", { containers: { c: { [GPU]: 1 } } });

  it("are freed for the next pod once all pod sources are ready", () => {
    const manager = managerOf(scene);
    expect(admit(manager, pod)).toBeUndefined();
    expect(manager.purged).toEqual(["gone"]);
    expect(held(manager, GPU)).toEqual({ "p/c": ["a-0"] });
  });
  it("stay allocated until sources are ready, and while their pod is active", () => {
    const text = "requested number of devices unavailable for example.com/gpu. Requested: 1, Available: 0";
    expect(admit(managerOf({ ...scene, sourcesReady: false }), pod)).toBe(text);
    expect(admit(managerOf({ ...scene, activePods: new Set(["gone"]) }), pod)).toBe(text);
  });
  it("are freed after a pod of the same decision was refused its devices", () => {
    const manager = managerOf({ resources: [plain(GPU, 2)] });
    const both = devicePod("q", { containers: { c: { [GPU]: 2 }, d: { [GPU]: 1 } } });
    expect(admit(manager, both)).toContain("Requested: 1, Available: 0");
    expect(held(manager, GPU)).toEqual({ "q/c": ["a-0", "a-1"] });
    expect(admit(manager, pod)).toBeUndefined();
    expect(manager.purged).toEqual(["q"]);
    expect(held(manager, GPU)).toEqual({ "p/c": ["a-0"] });
  });
  it("are purged only when devices or hints are requested", () => {
    const manager = managerOf(scene);
    expect(admit(manager, devicePod("q", { containers: { c: { cpu: 1 } } }))).toBeUndefined();
    expect(manager.purged).toEqual([]);
    manager.podHints(pod);
    expect(manager.purged).toEqual(["gone"]);
    const other = managerOf(scene);
    other.purge();
    expect(other.purged).toEqual(["gone"]);
  });
});

describe("a device manager after a kubelet start", () => {
  const held1 = checkpoint(entry("p", "c", ["a-0"]));
  const pod = devicePod("p", { containers: { c: { [GPU]: 1 } } });
  const noHealthy = "no healthy devices present; cannot allocate unhealthy devices example.com/gpu";

  it("leaves a running container alone while its pod sources are not ready", () => {
    const manager = managerOf({ resources: [], checkpoint: held1, sourcesReady: false, runningAtStart: () => true });
    expect(admit(manager, pod)).toBeUndefined();
    expect(held(manager, GPU)).toEqual({ "p/c": ["a-0"] });
  });
  it("refuses a container after a reboot, or once sources are ready, until its plugin is back", () => {
    const rebooted = { resources: [], checkpoint: held1, sourcesReady: false };
    expect(admit(managerOf(rebooted), pod)).toBe(noHealthy);
    expect(admit(managerOf({ ...rebooted, sourcesReady: true, runningAtStart: () => true }), pod)).toBe(noHealthy);
    expect(admit(managerOf({ ...rebooted, resources: [plain(GPU, 1)] }), pod)).toBeUndefined();
  });
  it("looks at the running container itself, not at others of its pod", () => {
    const scene = { resources: [], checkpoint: held1, sourcesReady: false };
    const manager = managerOf({ ...scene, runningAtStart: (uid, name) => uid === "p" && name === "other" });
    expect(admit(manager, pod)).toBe(noHealthy);
  });
  it("drops checkpoint entries whose plugin answer cannot be decoded, and reports them", () => {
    const manager = managerOf({
      resources: [plain(GPU, 2)],
      checkpoint: checkpoint(entry("p", "c", ["a-0"], GPU, "Cg==")),
    });
    expect(manager.state.dropped).toEqual([
      { podUid: "p", container: "c", resource: GPU, fault: { code: "truncated", at: 1 } },
    ]);
    expect(manager.state.pods.size).toBe(0);
  });
});

/**
 * The calls before a start, and the messages of failed calls, are tested in
 * test/actuator/pods/devices/start-of.test.ts.
 */
describe("a container that is being started", () => {
  const pod = devicePod("p", { containers: { c: { [GPU]: 1, [NIC]: 0 } } });

  it("gets the options that its plugins answered", () => {
    const held1 = checkpoint(entry("p", "c", ["a-0"]));
    const manager = managerOf({ resources: [plain(GPU, 1, { preStartRequired: true })], checkpoint: held1 });
    expect(containerDevices(manager, "p", "c")).toMatchObject({ pending: [], options: { envs: [], conflicts: [] } });
  });
  it("that was skipped at the restart gets devices once its pod is admitted again", () => {
    const manager = managerOf({ resources: [plain(GPU, 1)] });
    expect(containerDevices(manager, "p", "c")).toEqual({ options: undefined, pending: [] });
    expect(admit(manager, pod)).toBeUndefined();
    expect(containerDevices(manager, "p", "c")).toMatchObject({ options: { envs: [] }, pending: [GPU] });
  });
  it("gets no devices when that admission fails", () => {
    const manager = managerOf({ resources: [resource(GPU, { "-a": null })] });
    expect(admit(manager, pod)).toBe("no healthy devices present; cannot allocate unhealthy devices example.com/gpu");
    expect(containerDevices(manager, "p", "c")).toEqual({ options: undefined, pending: [] });
  });
});

describe("the device manager's topology hints", () => {
  const scene = { resources: [resource(GPU, { a: [0], b: [1], c: [1] }), plain(NIC, 2)] };
  const pod = devicePod("p", { containers: { c: { [GPU]: 2, [NIC]: 1, cpu: 1 } } });
  const hints = (provider: HintProvider, of = pod) => Object.fromEntries(provider.containerHints(of, app(of)));

  it("name the sets of NUMA nodes that can give the devices, the smallest preferred", () => {
    expect(hints(managerOf(scene))).toEqual({
      [GPU]: [
        { nodes: 2, preferred: true },
        { nodes: 3, preferred: false },
      ],
      [NIC]: null,
    });
  });
  it("compute the smallest size over all devices, also allocated and unhealthy ones", () => {
    const sick = { resources: [resource(GPU, { a: [0], b: [1], "-c": [1] })] };
    expect(hints(managerOf(sick))).toEqual({ [GPU]: [{ nodes: 3, preferred: false }] });
  });
  it("are empty when too few devices are free, and unchanged for a container that holds its devices", () => {
    const taken = { ...scene, activePods: new Set(["q"]), checkpoint: checkpoint(entry("q", "c", ["a", "b"])) };
    expect(hints(managerOf(taken))[GPU]).toEqual([]);
    const manager = managerOf(scene);
    expect(admit(manager, pod, { nodes: 2, preferred: true })).toBeUndefined();
    expect(hints(manager)[GPU]).toEqual([
      { nodes: 2, preferred: true },
      { nodes: 3, preferred: false },
    ]);
    expect(hints(manager, devicePod("p", { containers: { c: { [GPU]: 1 } } }))[GPU]).toEqual([]);
  });
  it("for a pod ask for what its containers need together", () => {
    const big = devicePod("p", { init: { i: { [GPU]: 3 } }, containers: { c: { [GPU]: 1 }, d: { [GPU]: 1 } } });
    expect(Object.fromEntries(managerOf(scene).podHints(big))).toEqual({ [GPU]: [{ nodes: 3, preferred: true }] });
  });
  it("leave out NUMA nodes without such devices and nodes that the machine lacks", () => {
    const far = { resources: [resource(GPU, { a: [2], b: [9] })], numaNodes: [0, 1, 2, 3] };
    expect(hints(managerOf(far), devicePod("p", { containers: { c: { [GPU]: 1 } } }))).toEqual({
      [GPU]: [{ nodes: 4, preferred: true }],
    });
  });
});
