import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { err, ok, type Result } from "../../api/base/result.ts";
import { allocationFaults } from "../../api/decide/dra/allocation.ts";
import { DRA_STATE_FILE, readClaims } from "../../api/decide/dra/checkpoint.ts";
import { HEALTH_STATE_FILE } from "../../api/decide/dra/health-cache.ts";
import { epochMs } from "../../api/model/units.ts";
import { type EffectiveConfiguration, gateOn } from "../../api/profiles/effective.ts";
import { profileOf } from "../../api/profiles/index.ts";
import type { ActuatorConfig } from "../core/config.ts";
import type { ActivePods, NodeClaims, Problem } from "../core/interfaces.ts";
import { ownFolder, replaceText } from "../core/record-file.ts";
import { SOCKET_NAME } from "../deviceplugin/names.ts";
import { openPluginWatcher, type PluginHandler } from "../deviceplugin/watcher.ts";
import { ClaimManager, type FindClaims } from "../dra/claim-manager.ts";
import { DeviceHealth } from "../dra/device-health.ts";
import { DraRegistry } from "../dra/driver-registry.ts";
import { staleSocketAt } from "../grpc/listener.ts";
import type { RunnablePod } from "../lifecycle/pod.ts";
import { machineFiles } from "../machine/files.ts";
import { claimsSource } from "../manifests/claims-source.ts";
import type { LoopDeps } from "../pass/loop.ts";
import { configurationOf } from "../pass/snapshot.ts";
import type { Counters } from "../status/counters.ts";
import { deviceRows } from "../status/device-rows.ts";
import type { DeviceRow } from "../status/node-status.ts";
import { ChangeNotifier } from "./change-notifier.ts";
import { claimDevices, type DeviceManager, openDeviceManager } from "./devices/device-manager.ts";
import { type ManagerFiles, readDeviceCheckpoint } from "./devices/manager-files.ts";
import { joinHealth, PluginFaults } from "./devices/plugin-faults.ts";
import { PodClaims } from "./devices/pod-claims.ts";
import { type PodClock, systemClock } from "./pod-clock.ts";

interface NodeDevicesOptions extends Omit<DevicesOptions, "clock" | "handlers"> {
  readonly configuration: unknown;
  readonly readPods: LoopDeps["readPods"];
}
/**
 * Opens device plugins and DRA drivers if the settings enable them; `readPods` also remembers the claims found
 * beside the pods. Error: what prevents it.
 */
export async function openNodeDevices({ configuration, readPods, ...options }: NodeDevicesOptions) {
  const { config, files, onChange } = options;
  const reader = claimsReader(readPods);
  const clock = systemClock;
  const find = claimsSource(config, () => reader.last);
  const effective = configurationOf(configuration, profileOf(config.kubeletVersion));
  const claims = openClaims({ config, effective, files, clock, claims: find, reader, onChange });
  const devices = await openDevices({ ...options, clock, ...(claims && { handlers: claims.handlers }) });
  if (!devices.ok) return err(`device plugins: ${devices.error}`);
  if (devices.value === undefined && claims !== undefined) {
    const fault = await registryFault(config.pluginsRegistryDirectory);
    if (fault !== undefined) return err(`DRA drivers: ${fault}`);
    claims.watch();
  }
  const manager = gateOn(effective, "ResourceHealthStatus") ? devices.value?.manager : undefined;
  const health = { health: (pod: RunnablePod) => joinHealth(manager?.health(pod), claims?.port.health(pod)) };
  const nodeDevices = {
    health,
    ...(devices.value === undefined ? {} : { devices: devices.value.manager }),
    ...(claims === undefined ? {} : { claims: claims.port }),
  };
  const left = claims === undefined ? leftPrepared(config, files) : [];
  const problems = (): readonly Problem[] => claims?.problems() ?? left;
  return ok({ devices: devices.value, claims, nodeDevices, readPods: reader.read, problems });
}

/** Reads the pods; `last`: the claims that were last found beside them. Undefined: their source has no claims. */
function claimsReader(readPods: LoopDeps["readPods"]) {
  const kept = {
    last: undefined as NodeClaims | undefined,
    read: async (inForce?: ActivePods) => {
      const read = await readPods(inForce);
      kept.last = read.claims ?? kept.last;
      return read;
    },
  };
  return kept;
}

/**
 * Problems for claims that an earlier daemon prepared, and that stay prepared if drivers are no longer served.
 */
function leftPrepared(config: ActuatorConfig, files: ManagerFiles): readonly Problem[] {
  const state = files.read().assignments?.[DRA_STATE_FILE];
  const read = readClaims(state, profileOf(config.kubeletVersion).behaviour.claims);
  if (!read.ok) return [{ from: "devices", message: `${files.pathOf(DRA_STATE_FILE)}: ${read.error}` }];
  return read.value.list().map(({ namespace, name, drivers }) => {
    const by = [...drivers.keys()].join(", ");
    const message = `ResourceClaim ${namespace}/${name} stays prepared by ${by}: with draDrivers off it is not given back; serve gives it back`;
    return { from: "devices", message };
  });
}

/**
 * Why a plugin registry cannot be watched; undefined: it can. If a kubelet watches it too, plugins of other types,
 * such as volume drivers, would be told that they are refused.
 */
async function registryFault(directory: string): Promise<string | undefined> {
  const socket = join(dirname(directory), "device-plugins", SOCKET_NAME);
  const found = existsSync(socket) ? await staleSocketAt(socket) : ok(null);
  return found.ok ? undefined : `${found.error} (pluginsRegistryDirectory)`;
}

interface DevicesOptions {
  readonly config: ActuatorConfig;
  readonly files: ManagerFiles;
  readonly clock: PodClock;
  readonly bootId: string;
  /** Handlers for plugins of other types in the same directory; absent: they are refused. */
  readonly handlers?: Readonly<Record<string, PluginHandler>>;
  readonly counters: Pick<Counters, "deviceAllocated" | "devicePluginRegistered">;
  /** Reports single problems, as opposed to lasting ones. */
  readonly onProblem: (problem: Problem) => void;
  /** Called when plugins come or go, or when what pods wait for has changed. */
  readonly onChange: () => void;
}
/** The node's devices while the daemon runs. */
export interface OpenDevices {
  readonly manager: DeviceManager;
  /** The rows for people. `nameOf`: a pod's name by uid, or the uid. */
  rows(nameOf: (uid: string) => string): readonly DeviceRow[];
  close(): Promise<void>;
}

/** Device plugins, if the settings enable them; undefined: they do not. Error: what prevents it. */
async function openDevices(options: DevicesOptions): Promise<Result<OpenDevices | undefined, string>> {
  const { config, files, clock, bootId, handlers, counters, onProblem, onChange } = options;
  if (config.devicePlugins === "off") return ok(undefined);
  const claim = await claimDevices(config.stateDir, bootId);
  if (!claim.ok) return claim;
  const opened = await openDeviceManager({
    pluginDir: config.devicePluginsDirectory,
    registryDir: config.pluginsRegistryDirectory,
    ...(handlers === undefined ? {} : { handlers }),
    stateDir: config.stateDir,
    files,
    clock,
    bootId,
    waitMs: config.deviceWaitSeconds * 1000,
    counters,
    onProblem,
  });
  if (!opened.ok) {
    claim.value.release();
    return opened;
  }
  const manager = opened.value;
  const unlisten = manager.onChange(() => {
    if (manager.needsSync()) onChange();
  });
  return ok({
    manager,
    rows: (nameOf) => {
      const checkpoint = readDeviceCheckpoint(files);
      return deviceRows({
        states: manager.host.states(),
        checkpoint: checkpoint.ok ? checkpoint.value : undefined,
        nameOf,
      });
    },
    close: async () => {
      unlisten();
      manager.close();
      claim.value.release();
    },
  });
}

interface ClaimsOptions {
  readonly config: ActuatorConfig;
  /** The configuration at the start, which is when a kubelet reads its gates. */
  readonly effective: EffectiveConfiguration;
  readonly files: ManagerFiles;
  readonly clock: PodClock;
  readonly claims: FindClaims;
  readonly reader: Pick<ReturnType<typeof claimsReader>, "last">;
  /** Called when drivers come or go, or have answered what pods wait for. */
  readonly onChange: () => void;
}
/** The node's ResourceClaims while the daemon runs. */
interface OpenClaims {
  readonly port: PodClaims;
  /** Handlers for DRA drivers in plugins_registry. */
  readonly handlers: Readonly<Record<string, PluginHandler>>;
  /** Watches plugins_registry itself, for daemons that serve no device plugins. */
  watch(): void;
  /** Faults of drivers that no pod reports. */
  problems(): readonly Problem[];
  close(): void;
}

/** ResourceClaims, if the settings enable DRA drivers; undefined: they do not. */
function openClaims(options: ClaimsOptions): OpenClaims | undefined {
  const { config, effective, clock, reader, onChange } = options;
  if (config.draDrivers === "off") return undefined;
  const changes = new ChangeNotifier(clock);
  changes.onChange(onChange);
  let drivers = 0;
  const health = openHealth(options, effective, (driver, devices) => {
    // no driver reports before the registry has found it, and the manager exists by then
    if (manager.ok && manager.value.hasAny(driver, devices)) onChange();
  });
  const registry = new DraRegistry({
    ...(health && { health }),
    onChange: () => {
      drivers++;
      changes.changed();
    },
  });
  const { manager, extended } = managerOf(options, effective, registry);
  const messages = gateOn(effective, "ResourceHealthStatusMessage");
  const healthDeps = health && { health: { info: () => health.info(), messages } };
  const port = new PodClaims({ manager, clock, changes, extended, drivers: () => drivers, ...healthDeps });
  const faults = new PluginFaults(clock, { states: () => [], standing: () => [] }, () => {});
  const handlers = { DRAPlugin: registry.handler };
  let watcher: { readonly close: () => void } | undefined;
  return {
    port,
    handlers,
    watch: () => {
      const onFault = (fault: Parameters<PluginFaults["add"]>[0]): void => faults.add(fault);
      watcher = openPluginWatcher({ dir: config.pluginsRegistryDirectory, handlers, onFault });
    },
    problems: () => {
      const wrong = reader.last === undefined ? [] : allocationProblems(reader.last, config.nodeName);
      return [...faults.standing(), ...wrong, ...(health?.problems() ?? [])].map((message) => ({
        from: "devices",
        message,
      }));
    },
    close: () => {
      changes.close();
      watcher?.close();
      health?.close();
      registry.close();
    },
  };
}

/** The health of drivers' devices, stored beside the other managers' state, but not part of a decision's input; undefined: the gate is off. */
function openHealth(
  { config, files, clock }: ClaimsOptions,
  effective: EffectiveConfiguration,
  onChange: ConstructorParameters<typeof DeviceHealth>[0]["onChange"],
): DeviceHealth | undefined {
  if (!gateOn(effective, "ResourceHealthStatus")) return undefined;
  const file = join(files.directory, HEALTH_STATE_FILE);
  return new DeviceHealth({
    behaviour: profileOf(config.kubeletVersion).behaviour.claims,
    state: machineFiles("/").optionalText(file),
    store: (text) => {
      try {
        ownFolder(files.directory);
        return ok(replaceText(file, text));
      } catch (error) {
        return err((error as Error).message);
      }
    },
    now: () => epochMs(clock.nowMs()),
    onChange,
  });
}

/** Faults in the allocations of claims, found with the slices and classes beside them. They prevent no start. */
function allocationProblems({ resourceClaims, resourceSlices, deviceClasses }: NodeClaims, nodeName: string) {
  const dra = {
    resourceClaims: [...resourceClaims],
    // empty lists mean that the source does not contain them
    ...(resourceSlices.length > 0 && { resourceSlices: [...resourceSlices] }),
    ...(deviceClasses.length > 0 && { deviceClasses: [...deviceClasses] }),
  };
  return allocationFaults(resourceClaims, dra, { metadata: { name: nodeName } }).map(
    ({ claim, driver, pool, device, message }) =>
      `ResourceClaim ${claim}: ${device === "" ? "" : `device ${device} of driver ${driver} and pool ${pool}: `}${message}`,
  );
}

/** Error: why a kubelet would not start; here pods without claims run. */
function managerOf(
  { config, files, claims }: ClaimsOptions,
  effective: EffectiveConfiguration,
  registry: DraRegistry,
): { readonly manager: Result<ClaimManager, string>; readonly extended: boolean } {
  const gates = {
    extended: gateOn(effective, "DRAExtendedResource"),
    groups: gateOn(effective, "DRAWorkloadResourceClaims"),
    optionalOperations: gateOn(effective, "DRAOptionalNodeOperations"),
  };
  const file = files.pathOf(DRA_STATE_FILE);
  const { assignments, missing } = files.read();
  const unread = missing.find(({ path }) => path === file);
  const opened =
    unread === undefined
      ? ClaimManager.open({
          behaviour: profileOf(config.kubeletVersion).behaviour.claims,
          gates,
          registry,
          claims,
          state: assignments?.[DRA_STATE_FILE],
          store: (text) => files.persist({ assignments: { [DRA_STATE_FILE]: text } }),
        })
      : err(unread.why);
  const manager = opened.ok
    ? opened
    : err(
        `no pod with ResourceClaims starts: ${opened.error}: ${file} has to be repaired or deleted while the daemon does not run`,
      );
  return { manager, extended: gates.extended };
}
