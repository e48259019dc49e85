import { dirname, join } from "node:path";
import type { SettingFault } from "./setting-fault.ts";

/** The kubelet's own. */
export const DEVICE_DIRECTORIES = {
  devicePluginsDirectory: "/var/lib/kubelet/device-plugins",
  pluginsRegistryDirectory: "/var/lib/kubelet/plugins_registry",
  podResourcesDirectory: "/var/lib/kubelet/pod-resources",
} as const;
const REGISTRY = "plugins_registry";

type Settings = Readonly<Record<string, unknown>>;

/**
 * With the directory of plugins that wait to be found beside the one of the others, where only that is another than the
 * kubelet's: in the kubelet's, drivers of its volumes would be told that they are not registered.
 */
export function withRegistry(settings: Settings): Settings {
  const { devicePluginsDirectory: directory, pluginsRegistryDirectory } = settings;
  const isOther = typeof directory === "string" && directory !== DEVICE_DIRECTORIES.devicePluginsDirectory;
  if (!isOther || !directory.startsWith("/") || pluginsRegistryDirectory !== undefined) return settings;
  return { ...settings, pluginsRegistryDirectory: join(dirname(directory), REGISTRY) };
}

/** Two sockets of one name, or plugins of both forms, in one directory; a kubelet's that nobody named. */
export function directoryFaults(given: Settings): readonly SettingFault[] {
  if (given["devicePlugins"] !== "serve") return [];
  const settings = withRegistry(given);
  const faults: SettingFault[] = [];
  const firsts = new Map<unknown, string>();
  for (const [setting, usual] of Object.entries(DEVICE_DIRECTORIES)) {
    const directory = settings[setting] ?? usual;
    const first = firsts.get(directory);
    if (first === undefined) firsts.set(directory, setting);
    else faults.push({ setting, message: `is ${first} as well: each needs a directory of its own` });
  }
  const { pluginsRegistryDirectory: usual } = DEVICE_DIRECTORIES;
  if (settings !== given && settings["pluginsRegistryDirectory"] === usual) {
    const message = `must be named: beside devicePluginsDirectory it is ${usual}, which is a kubelet's`;
    faults.push({ setting: "pluginsRegistryDirectory", message });
  }
  return faults;
}
