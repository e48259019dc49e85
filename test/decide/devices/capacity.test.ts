import { describe, expect, it } from "vitest";
import {
  type DevicePlugin,
  type DeviceResource,
  deviceCapacity,
  inventoriesOf,
  STOP_GRACE_MS,
  sanitizeNodeAllocatable,
} from "../../../api/decide/devices/inventory.ts";
import { naturalOrder } from "../../../api/decide/devices/natural-order.ts";
import { epochMs } from "../../../api/model/units.ts";
import { admit, devicePod, GPU, managerOf, NIC, NOW, plain, resource } from "./devices-kit.ts";

const counts = (resources: readonly DeviceResource[], later = 0) => {
  const now = epochMs(NOW + later);
  const { capacity, allocatable, removed } = deviceCapacity(
    inventoriesOf({ resources, checkpointed: [], now, kubeletStartedAt: undefined }),
  );
  return { capacity: Object.fromEntries(capacity), allocatable: Object.fromEntries(allocatable), removed };
};
const withPlugin = (plugin: DevicePlugin): DeviceResource => ({ ...plain(GPU, 3), plugin });

describe("device capacity", () => {
  it("counts all devices into capacity and the healthy ones into allocatable", () => {
    const devices = [
      { id: "a" },
      { id: "b", health: "Healthy" },
      { id: "c", health: "Unhealthy" },
      { id: "d", health: "healthy" },
    ];
    expect(counts([{ resource: GPU, devices }])).toEqual({
      capacity: { [GPU]: 4 },
      allocatable: { [GPU]: 2 },
      removed: [],
    });
  });
  it("keeps the capacity of a stopped plugin for 5 minutes, with nothing allocatable", () => {
    const stopped = [withPlugin({ registered: false, stoppedAt: NOW })];
    const kept = { capacity: { [GPU]: 3 }, allocatable: { [GPU]: 0 }, removed: [] };
    expect(counts(stopped)).toEqual(kept);
    expect(counts(stopped, STOP_GRACE_MS)).toEqual(kept);
    expect(counts(stopped, STOP_GRACE_MS + 1)).toEqual({ capacity: {}, allocatable: {}, removed: [GPU] });
  });
  it("is allocatable again when the plugin re-registers, within or after that time", () => {
    expect(counts([withPlugin({ registered: true, stoppedAt: NOW })], STOP_GRACE_MS + 1).allocatable).toEqual({
      [GPU]: 3,
    });
  });
  it("is 0 for a resource without devices and for a plugin that never registered", () => {
    const none = { capacity: { [GPU]: 0 }, allocatable: { [GPU]: 0 }, removed: [] };
    expect(counts([{ resource: GPU, devices: [] }])).toEqual(none);
    expect(counts([withPlugin({ registered: false })], STOP_GRACE_MS + 1)).toEqual(none);
  });
  it("lists resources by name", () => {
    expect(Object.keys(counts([plain(NIC, 1), plain(GPU, 1)]).capacity)).toEqual([GPU, NIC]);
  });
});

describe("the sanitized node allocatable", () => {
  it("is raised to the number of allocated devices, and never lowered", () => {
    const before = new Map([
      [GPU, 1],
      [NIC, 5],
    ]);
    const allocated = new Map([
      [GPU, 3],
      [NIC, 2],
      ["example.com/gone", 1],
    ]);
    const { allocatable, raised } = sanitizeNodeAllocatable(before, allocated);
    expect([...allocatable]).toEqual([
      [GPU, 3],
      [NIC, 5],
      ["example.com/gone", 1],
    ]);
    expect(raised).toEqual([GPU, "example.com/gone"]);
    expect(before.get(GPU)).toBe(1);
  });
  it("counts a device once, even if several containers of a pod hold it", () => {
    const manager = managerOf({ resources: [resource(GPU, { a: [0, 1], b: null })] });
    expect(
      admit(manager, devicePod("p", { init: { i: { [GPU]: 2 } }, containers: { c: { [GPU]: 1 } } })),
    ).toBeUndefined();
    expect([...manager.state.allocated()]).toEqual([[GPU, 2]]);
  });
});

describe("the natural order of device ids", () => {
  const sorted = ["gpu-10", "gpu-2", "gpu-02", "gpu", "GPU-1", "gpu-2a", "gpu-1b2", "gpu-1b10", "10", "9", "", "é"];
  it("compares numbers by value and is a total order", () => {
    expect([...sorted].sort(naturalOrder)).toEqual([
      "",
      "9",
      "10",
      "GPU-1",
      "gpu",
      "gpu-1b2",
      "gpu-1b10",
      "gpu-02",
      "gpu-2",
      "gpu-2a",
      "gpu-10",
      "é",
    ]);
    for (const a of sorted)
      for (const b of sorted) expect(Math.sign(naturalOrder(a, b))).toBe(-Math.sign(naturalOrder(b, a)) + 0);
    for (const a of sorted) for (const b of sorted) expect(naturalOrder(a, b) === 0).toBe(a === b);
  });
  it("compares numbers exactly beyond the range of floats", () => {
    expect(naturalOrder("x90071992547409931", "x90071992547409930")).toBeGreaterThan(0);
    expect(naturalOrder("x100000000000000000000", "x99999999999999999999")).toBeGreaterThan(0);
  });
});
