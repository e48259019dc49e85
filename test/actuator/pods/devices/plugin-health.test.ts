import { expect, test } from "vitest";
import { joinHealth, pluginHealth } from "../../../../actuator/pods/devices/plugin-faults.ts";
import type { PodDevicesEntry } from "../../../../api/decide/devices/checkpoint.ts";
import type { Device } from "../../../../api/model/machine.ts";

const entry = (containerName: string, resourceName: string, ...ids: readonly string[]): PodDevicesEntry => ({
  podUid: "u",
  containerName,
  resourceName,
  deviceIds: new Map([[-1, ids]]),
  allocResp: "",
});
const device = (id: string, health?: string) =>
  ({ resource: "a.com/gpu", id, ...(health && { health }) }) as unknown as Device;
const STATES = [{ resource: "a.com/gpu", devices: [device("g0"), device("g1", "Unhealthy")] }];

test("device health is listed by container and resource; a device that no plugin lists is healthy", () => {
  const entries = [entry("app", "b.com/nic", "n0"), entry("app", "a.com/gpu", "g10", "g1", "g0")];
  expect(pluginHealth(entries, STATES)).toEqual({
    app: [
      {
        name: "a.com/gpu",
        resources: [
          { resourceID: "g0", health: "Healthy" },
          { resourceID: "g1", health: "Unhealthy" },
          { resourceID: "g10", health: "Healthy" },
        ],
      },
      { name: "b.com/nic", resources: [{ resourceID: "n0", health: "Healthy" }] },
    ],
  });
  expect(pluginHealth([], STATES)).toBeUndefined();
});
test("devices of a stopped plugin whose list was dropped are unhealthy", () => {
  const reported = pluginHealth(
    [entry("app", "a.com/gpu", "g0")],
    [{ resource: "a.com/gpu", devices: [], gaveWay: 2 }],
  );
  expect(reported?.["app"]?.[0]?.resources).toEqual([{ resourceID: "g0", health: "Unhealthy" }]);
});
test("health from plugins and from claims is listed together, plugins first", () => {
  const [a, b] = [{ app: [{ name: "a.com/gpu", resources: [] }] }, { app: [{ name: "claim:x", resources: [] }] }];
  expect(joinHealth(a, b)).toEqual({ app: [...a.app, ...b.app] });
  expect(joinHealth(undefined, b)).toBe(b);
  expect(joinHealth(undefined, undefined)).toBeUndefined();
});
