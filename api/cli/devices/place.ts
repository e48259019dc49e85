import { join } from "node:path";
import { type ActuatorConfig, checkSettings } from "../../../actuator/core/config.ts";
import { claimsDirectory, takeLock } from "../../../actuator/core/lock.ts";
import { ownFolder } from "../../../actuator/core/record-file.ts";
import { observeMachine } from "../../../actuator/machine/observe.ts";
import { claimDevices } from "../../../actuator/pods/devices/device-manager.ts";
import { ManagerFiles } from "../../../actuator/pods/records/manager-files.ts";
import { ok, type Result } from "../../model/result.ts";
import { stateHome } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";
import type { AllocateGiven } from "./given.ts";
import { KnownPods } from "./known-pods.ts";

/** A state directory that nobody else works on, with who holds which devices. */
export interface DevicePlace {
  readonly config: ActuatorConfig;
  readonly bootId: string;
  readonly files: ManagerFiles;
  readonly pods: KnownPods;
  readonly release: () => void;
}

/** The actuator's settings under commander's names. Errors: every one that is wrong. */
function configOf(given: Partial<AllocateGiven>, env: Cli["env"]): Result<ActuatorConfig, Fault> {
  const { cgroupRoot, nodeName, api, apiTokenFile, kubeletConfig } = given;
  const settings = {
    stateDir: given.stateDir ?? join(stateHome(env), "actuator"),
    cgroupRoot,
    nodeName,
    api,
    apiTokenFile,
    kubeletConfiguration: kubeletConfig,
    devicePluginsDirectory: given.devicePluginsDirectory,
    pluginsRegistryDirectory: given.pluginsRegistryDirectory,
  };
  const config = checkSettings(Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined)));
  if (config.ok) return config;
  const texts = config.error.map(({ setting, message }) => `${FLAG_OF[setting] ?? setting}: ${message}`);
  return fault(EXIT.badInput, texts.join("; "));
}
const FLAG_OF: Readonly<Record<string, string>> = {
  stateDir: "--state-dir",
  cgroupRoot: "--cgroup-root",
  nodeName: "--node-name",
  api: "--api",
  apiTokenFile: "--api-token-file",
  kubeletConfiguration: "--kubelet-config",
  devicePluginsDirectory: "--device-plugins-directory",
  pluginsRegistryDirectory: "--plugins-registry-directory",
};

/**
 * Takes what a daemon that runs pods would take, so that of the two only one gives devices away. Errors: such a daemon works
 * here, or another command does; what is kept of pods cannot be read.
 */
export async function openPlace(given: Partial<AllocateGiven>, env: Cli["env"]): Promise<Result<DevicePlace, Fault>> {
  const config = configOf(given, env);
  if (!config.ok) return config;
  const { stateDir, cgroupRoot } = config.value;
  try {
    ownFolder(stateDir);
  } catch (error) {
    const why = `state directory ${stateDir}: ${(error as Error).message}`;
    return fault(EXIT.cannotRun, `${why}: name another with --state-dir`);
  }
  const bootId = observeMachine().system.bootID ?? "";
  const ofRoot = await takeLock(claimsDirectory(), cgroupRoot, bootId);
  if (!ofRoot.ok) return fault(EXIT.cannotRun, `${ofRoot.error}, ${BUSY}`);
  const ofState = await claimDevices(stateDir, bootId);
  const release = (): void => {
    ofRoot.value.release();
    if (ofState.ok) ofState.value.release();
  };
  const pods = ofState.ok ? KnownPods.open(stateDir) : ofState;
  if (pods.ok) {
    return ok({
      config: config.value,
      bootId,
      files: new ManagerFiles(join(stateDir, "managers")),
      pods: pods.value,
      release,
    });
  }
  release();
  return fault(EXIT.cannotRun, ofState.ok ? pods.error : `state directory ${stateDir}: ${pods.error}`);
}
const BUSY =
  "or let that daemon run the pod (its manifests or podsUrl): it gives devices itself; for another place there are --cgroup-root and --state-dir";
