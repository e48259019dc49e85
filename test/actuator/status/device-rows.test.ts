import { expect, test } from "vitest";
import type { PluginState } from "../../../actuator/deviceplugin/plugins.ts";
import { deviceRows } from "../../../actuator/status/device-rows.ts";
import type { DeviceCheckpoint, PodDevicesEntry } from "../../../api/decide/devices/checkpoint.ts";
import type { Device } from "../../../api/model/machine.ts";
import { epochMs } from "../../../api/model/units.ts";

const device = (id: string, numaNodes?: readonly number[], health = "Healthy"): Device => ({
  resource: "vendor.com/gpu",
  id,
  health,
  ...(numaNodes === undefined ? {} : { numaNodes: [...numaNodes] }),
});
const plugin = (changes: Partial<PluginState> = {}): PluginState => ({
  resource: "vendor.com/gpu",
  generation: 1,
  endpoint: "/p/gpu.sock",
  options: { preStartRequired: false, getPreferredAllocationAvailable: false },
  state: "registered",
  listed: true,
  devices: [device("g10", [0]), device("g2", [0]), device("g1", [1], "Unhealthy"), device("g3", [0, 1]), device("g4")],
  flips: 7,
  history: [],
  ...changes,
});
const entry = (podUid: string, ids: readonly (readonly [number, readonly string[]])[], more = {}): PodDevicesEntry => ({
  podUid,
  containerName: "app",
  resourceName: "vendor.com/gpu",
  deviceIds: new Map(ids),
  allocResp: "",
  ...more,
});
const checkpoint = (...entries: readonly PodDevicesEntry[]): DeviceCheckpoint => ({ entries, registered: new Map() });
const nameOf = (uid: string): string => (uid === "u1" ? "shop/web" : uid);

test("a device row counts healthy and held devices by NUMA node and holder", () => {
  const held = checkpoint(
    entry("u2", [[-1, ["g4"]]], { containerName: "b", allocResp: null }),
    // a device with two NUMA nodes is listed below both
    entry("u1", [
      [1, ["g3"]],
      [0, ["g10", "g2", "g3"]],
    ]),
  );
  expect(deviceRows({ states: [plugin()], checkpoint: held, nameOf })).toEqual([
    {
      resource: "vendor.com/gpu",
      plugin: "registered",
      endpoint: "/p/gpu.sock",
      capacity: 5,
      allocatable: 4,
      allocated: 4,
      flips: 7,
      numa: [
        { node: -1, devices: 1, allocated: 1 },
        { node: 0, devices: 3, allocated: 3 },
        { node: 1, devices: 2, allocated: 1 },
      ],
      holders: [
        { pod: "shop/web", uid: "u1", container: "app", ids: ["g2", "g3", "g10"], numa: [0, 1], isPending: false },
        { pod: "u2", uid: "u2", container: "b", ids: ["g4"], numa: [], isPending: true },
      ],
      pending: 1,
    },
  ]);
});

test("device rows are sorted by resource and show stopped, removed and unregistered plugins", () => {
  const states = [
    plugin({ resource: "z.com/x", state: "stopped", stoppedAt: epochMs(5) }),
    plugin({ resource: "a.com/x", state: "removed", stoppedAt: epochMs(5), devices: [] }),
  ];
  const held: DeviceCheckpoint = {
    entries: [entry("u1", [[0, ["f1"]]], { resourceName: "m.com/fpga" })],
    registered: new Map([
      ["n.com/x", ["1"]],
      ["z.com/x", null],
    ]),
  };
  const rows = deviceRows({ states, checkpoint: held, nameOf });
  const reported = rows.map((r) => [r.resource, r.plugin, r.endpoint, r.capacity, r.allocatable, r.allocated]);
  expect(reported).toEqual([
    ["a.com/x", "removed", "/p/gpu.sock", 0, 0, 0],
    ["m.com/fpga", "unregistered", null, 0, 0, 1],
    ["n.com/x", "unregistered", null, 0, 0, 0],
    ["z.com/x", "stopped", "/p/gpu.sock", 5, 0, 0],
  ]);
});

test("a device held by two containers counts once, and null lists count as empty", () => {
  const held = checkpoint(
    entry("u1", [[0, ["g2"]]]),
    entry("u2", [[0, ["g2"]]]),
    entry("u3", [], { deviceIds: null }),
    { ...entry("u4", []), deviceIds: new Map([[0, null]]) },
  );
  const [row] = deviceRows({ states: [plugin()], checkpoint: held, nameOf });
  expect([row?.allocated, row?.holders.map(({ uid, ids }) => [uid, ids])]).toEqual([
    1,
    [
      ["u1", ["g2"]],
      ["u2", ["g2"]],
      ["u3", []],
      ["u4", []],
    ],
  ]);
  const nothing = { entries: null, registered: null };
  expect(deviceRows({ states: [], checkpoint: undefined, nameOf })).toEqual([]);
  expect(deviceRows({ states: [], checkpoint: nothing, nameOf })).toEqual([]);
});
