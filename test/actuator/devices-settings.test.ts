import { describe, expect, test } from "vitest";
import { type ActuatorConfig, checkSettings, takeOver } from "../../actuator/core/config.ts";

const DEFAULT_PLUGIN_DIR = "/var/lib/kubelet/device-plugins";
const DEFAULT_REGISTRY_DIR = "/var/lib/kubelet/plugins_registry";
const RUNS = { stateDir: "/s", nodeName: "n1", mode: "enforce", pods: "enforce", manifests: "/m" };
const SERVES = { ...RUNS, devicePlugins: "serve" };
const faults = (settings: object): readonly string[] => {
  const checked = checkSettings(settings as Readonly<Record<string, unknown>>);
  return checked.ok ? [] : checked.error.map(({ setting, message }) => `${setting}: ${message}`);
};
const configOf = (settings: object): ActuatorConfig => {
  const checked = checkSettings(settings as Readonly<Record<string, unknown>>);
  if (!checked.ok) throw new Error(JSON.stringify(checked.error));
  return checked.value;
};

test("device plugins are off by default, and their directories are the kubelet's", () => {
  expect(configOf({ stateDir: "/s" })).toMatchObject({
    devicePlugins: "off",
    devicePluginsDirectory: "/var/lib/kubelet/device-plugins",
    pluginsRegistryDirectory: "/var/lib/kubelet/plugins_registry",
    podResourcesDirectory: "/var/lib/kubelet/pod-resources",
    deviceWaitSeconds: 300,
  });
  expect(configOf(SERVES)).toMatchObject({
    devicePluginsDirectory: DEFAULT_PLUGIN_DIR,
    pluginsRegistryDirectory: DEFAULT_REGISTRY_DIR,
  });
});

test.each(["devicePlugins", "draDrivers"])("serving devices requires pods: enforce: %s", (setting) => {
  const needs = `${setting}: the devices are for pods that are run here, so serve needs \`pods: enforce\` too`;
  expect(faults({ stateDir: "/s", [setting]: "serve" })).toEqual([needs]);
  expect(faults({ stateDir: "/s", [setting]: "serve", pods: "off" })).toEqual([needs]);
  expect(faults({ stateDir: "/s", devicePlugins: "off", pods: "off" })).toEqual([]);
});

test("the three device directories must differ, but only where they are used", () => {
  const own = (first: string) => `is ${first} as well: each needs a directory of its own`;
  const all = { devicePluginsDirectory: "/d", pluginsRegistryDirectory: "/d", podResourcesDirectory: "/d" };
  expect(faults({ ...SERVES, ...all })).toEqual([
    `pluginsRegistryDirectory: ${own("devicePluginsDirectory")}`,
    `podResourcesDirectory: ${own("devicePluginsDirectory")}`,
  ]);
  const registry = { pluginsRegistryDirectory: "/r" };
  expect(faults({ ...SERVES, ...registry, devicePluginsDirectory: "/var/lib/kubelet/pod-resources" })).toEqual([
    `podResourcesDirectory: ${own("devicePluginsDirectory")}`,
  ]);
  // with these settings no socket is served in those directories
  expect(faults({ ...RUNS, ...all })).toEqual([]);
});

describe("the default plugins_registry, with a devicePluginsDirectory that is not the kubelet's,", () => {
  const other = { ...SERVES, devicePluginsDirectory: "/var/lib/nodewise/device-plugins" };
  test("is beside that directory, so that the kubelet's CSI drivers are not touched", () => {
    expect(configOf(other).pluginsRegistryDirectory).toBe("/var/lib/nodewise/plugins_registry");
    expect(configOf({ ...other, devicePlugins: "off" }).pluginsRegistryDirectory).toBe(
      "/var/lib/nodewise/plugins_registry",
    );
  });
  test("is replaced by the setting pluginsRegistryDirectory", () => {
    expect(configOf({ ...other, pluginsRegistryDirectory: "/r" }).pluginsRegistryDirectory).toBe("/r");
    const asked = { ...other, pluginsRegistryDirectory: DEFAULT_REGISTRY_DIR };
    expect(configOf(asked).pluginsRegistryDirectory).toBe(DEFAULT_REGISTRY_DIR);
    expect(configOf({ ...SERVES, devicePluginsDirectory: DEFAULT_PLUGIN_DIR })).toMatchObject({
      pluginsRegistryDirectory: DEFAULT_REGISTRY_DIR,
    });
  });
  test("must be set explicitly where it would be the kubelet's", () => {
    const beside = { ...SERVES, devicePluginsDirectory: "/var/lib/kubelet/nodewise" };
    expect(faults(beside)).toEqual([
      `pluginsRegistryDirectory: must be named: beside devicePluginsDirectory it is ${DEFAULT_REGISTRY_DIR}, which is a kubelet's`,
    ]);
    expect(faults({ ...beside, pluginsRegistryDirectory: DEFAULT_REGISTRY_DIR })).toEqual([]);
  });
});

test.each([
  ["devicePlugins", "on", /must be off or serve, not the text `on`/],
  ["devicePluginsDirectory", "device-plugins", /must be a path from `\/`/],
  ["devicePluginsDirectory", "/var/lib/../device-plugins", /without `\.` and `\.\.`/],
  ["devicePluginsDirectory", `/${"d".repeat(100)}`, /cannot hold kubelet\.sock: .* at most 107 bytes, this has 114/],
  ["podResourcesDirectory", `/${"p".repeat(95)}`, /cannot hold kubelet\.sock/],
  ["pluginsRegistryDirectory", "plugins_registry", /must be a path from `\/`/],
  ["deviceWaitSeconds", -1, /must be at least 0, not `-1`/],
  ["deviceWaitSeconds", "5m", /must be a number/],
])("the setting %s cannot be %j", (name, value, message) => {
  const messages = faults({ ...SERVES, [name]: value });
  expect(messages).toHaveLength(1);
  expect(messages[0]?.startsWith(`${name}: `)).toBe(true);
  expect(messages[0]).toMatch(message);
});

test("changed device settings wait for a restart", () => {
  const config = configOf(RUNS);
  const next = configOf({ ...SERVES, devicePluginsDirectory: "/d", deviceWaitSeconds: 9 });
  const { taken, left } = takeOver(config, next);
  expect(taken).toEqual([]);
  expect(left.map(({ setting }) => setting)).toEqual([
    "devicePlugins",
    "devicePluginsDirectory",
    // its default is beside devicePluginsDirectory
    "pluginsRegistryDirectory",
    "deviceWaitSeconds",
  ]);
  expect(config.devicePlugins).toBe("off");
});
