import { expect, test } from "vitest";
import { type ActuatorConfig, actuatorConfig, takeOver } from "../../actuator/core/config.ts";
import { nearName } from "../../api/base/near-name.ts";

const configOf = (settings: Readonly<Record<string, unknown>>): ActuatorConfig => {
  const config = actuatorConfig({ stateDir: "/s", nodeName: "n1", ...settings });
  if (!config.ok) throw new Error(config.error);
  return config.value;
};
const names = (changes: readonly { readonly setting: string }[]) => changes.map(({ setting }) => setting);
const RUNS = { mode: "enforce", pods: "enforce", manifests: "/pods" };

test("live settings are copied into the running configuration, and the others are named", () => {
  const config = configOf({ ...RUNS, podsUrl: undefined, minimumContainerTTL: "1m" });
  const { taken, left } = takeOver(
    config,
    configOf({
      ...RUNS,
      manifests: "/others",
      drain: true,
      syncSeconds: 3,
      podsDirectory: "/data",
      cgroupRoot: "/mine",
    }),
  );
  expect(names(taken)).toEqual(["manifests", "syncSeconds", "drain", "minimumContainerTTL"]);
  expect(left).toEqual([
    { setting: "cgroupRoot", from: "/nodewise", to: "/mine" },
    { setting: "podsDirectory", from: "/var/lib/nodewise/pods", to: "/data" },
  ]);
  expect(config).toMatchObject({
    manifests: "/others",
    drain: true,
    syncSeconds: 3,
    podsDirectory: "/var/lib/nodewise/pods",
  });
  expect(config.minimumContainerTTL).toBeUndefined();
  expect(takeOver(config, { ...config })).toEqual({ taken: [], left: [] });
});

test("new settings that no longer run pods do not take away a running daemon's pod source", () => {
  const config = configOf(RUNS);
  const { taken, left } = takeOver(config, configOf({ mode: "observe", intervalSeconds: 5 }));
  expect(taken).toEqual([]);
  expect(names(left)).toEqual(["mode", "manifests", "intervalSeconds", "pods"]);
  expect(config).toEqual(configOf(RUNS));
});

test("a new source of pods is used from the next turn on", () => {
  const config = configOf(RUNS);
  const { taken } = takeOver(
    config,
    configOf({ ...RUNS, manifests: undefined, podsUrl: "https://127.0.0.1:10250/pods" }),
  );
  expect(names(taken)).toEqual(["manifests", "podsUrl"]);
  expect([config.manifests, config.podsUrl]).toEqual([undefined, "https://127.0.0.1:10250/pods"]);
});

test("a new API URL is used at once; adding or removing the API waits for a restart", () => {
  const config = configOf({ api: "http://a:1" });
  expect(names(takeOver(config, configOf({ api: "http://b:1", apiTimeoutSeconds: 9 })).taken)).toEqual([
    "api",
    "apiTimeoutSeconds",
  ]);
  expect(names(takeOver(config, configOf({ apiTimeoutSeconds: 9 })).left)).toEqual(["api"]);
  expect(config.api).toBe("http://b:1");
});

test("pods: enforce without a source of pods is refused", () => {
  const config = actuatorConfig({ stateDir: "/s", mode: "enforce", pods: "enforce" });
  expect(config.ok ? "" : config.error).toMatch(/^pods: enforce needs `manifests` or `podsUrl`/);
});

test.each([
  ["manifest", "manifests"],
  ["mdoe", "mode"],
  ["intervalSecond", "intervalSeconds"],
  ["kubeletconfiguration", "kubeletConfiguration"],
  ["colour", null],
  ["x", null],
])("the setting closest to %s is %s", (given, near) => {
  expect(nearName(given, ["mode", "manifests", "intervalSeconds", "kubeletConfiguration", "api", "pods"])).toBe(near);
});
