import { realpathSync } from "node:fs";
import { err, ok, type Result } from "../../../api/base/result.ts";
import {
  containerOptions,
  type ResourceResponse,
  readAllocateResponse,
} from "../../../api/decide/devices/allocate-response.ts";
import { idsOf, type PodDevicesEntry } from "../../../api/decide/devices/checkpoint.ts";
import type { PreferredAllocationRequest } from "../../../api/decide/devices/preferred.ts";
import type { DeviceConflict, DeviceOptions } from "../../../api/model/devices.ts";
import { epochMs } from "../../../api/model/units.ts";
import type { Problem } from "../../core/interfaces.ts";
import { claimsDirectory, type Lock, takeLock } from "../../core/lock.ts";
import type { PluginTimeouts } from "../../deviceplugin/endpoint.ts";
import { type DevicePluginHost, openDevicePluginHost } from "../../deviceplugin/host.ts";
import type { PluginState, ResourceAmount } from "../../deviceplugin/plugins.ts";
import type { PluginHandler } from "../../deviceplugin/watcher.ts";
import type { PodContainer, RunnablePod } from "../../lifecycle/pod.ts";
import type { ContainerHealth } from "../../lifecycle/status/status.ts";
import { noCounters } from "../../status/counters.ts";
import { DEVICES_ANNOTATION, devicesAnnotation, entriesOf, withRegistered } from "./checkpoint-entries.ts";
import type { PluginCalls } from "./device-allocator.ts";
import { DeviceAssignments } from "./device-assignments.ts";
import {
  type DeviceManagerComponents,
  type DeviceManagerDeps,
  deviceManagerComponents,
} from "./device-manager-components.ts";
import { deviceRequirements, requiredResources } from "./device-requirements.ts";
import { DeviceHistory } from "./history.ts";
import { assignmentProblems, pluginHealth } from "./plugin-faults.ts";
import { healthyOf, type PluginSnapshot } from "./plugin-snapshot.ts";
import {
  type ContainerDevices,
  type DeviceFault,
  type DeviceSnapshot,
  goText,
  type LivingPod,
  type NodeDevices,
  nothingAllocated,
  notRegistered,
  notStarted,
  type VanishedDevices,
  waitingForPlugins,
} from "./port.ts";
import { type MissingAllocations, vanishedDevices } from "./recorded-devices.ts";

/** The node's devices: what plugins offer, which pods hold it, and what containers get for it. */
export class DeviceManager implements NodeDevices, ContainerDevices {
  readonly host: DevicePluginHost;
  readonly #deps: DeviceManagerDeps;
  readonly #components: DeviceManagerComponents;
  readonly #life = new AbortController();
  readonly #startedAt: string;
  #pluginsSeen = "";
  /** True: in this sync, a pod that requests devices waits. */
  #isAwaited = false;
  readonly #unlisten: () => void;

  /** Created at once, since plugins' answers become invalid by a reboot. */
  constructor(deps: DeviceManagerDeps) {
    const { host, clock, waitMs } = deps;
    this.#deps = deps;
    this.host = host;
    this.#startedAt = new Date(clock.nowMs()).toISOString();
    this.#components = deviceManagerComponents(deps);
    const unlisten = [
      host.onChange(() => this.#components.changes.changed()),
      host.onFault((fault) => this.#components.faults.add(fault)),
    ];
    this.#unlisten = () => {
      for (const stop of unlisten) stop();
    };
    this.#components.maintenance.voidAfterReboot();
    // pods that wait for a plugin are refused from then on
    void clock.sleep(waitMs, this.#life.signal).then(() => this.#components.changes.changed());
  }

  get version(): number {
    return this.#components.changes.version;
  }
  /** Calls the listener when `version` has increased, at most four times a second. Returns a function that removes it. */
  onChange(listener: () => void): () => void {
    return this.#components.changes.onChange(listener);
  }

  /**
   * Whether a change needs a sync at once: a pod waits for devices, plugins came or went since the last call, or
   * devices of a resource that pods hold changed their health. Other changes can wait for the next sync.
   */
  needsSync(): boolean {
    const held = new Set(this.#components.assignments.now().entries?.map(({ resourceName }) => resourceName));
    const flipsText = (s: PluginState): string => (held.has(s.resource) ? ` ${s.flips}` : "");
    const states = this.host.states();
    const plugins = states.map((s) => `${s.resource} ${s.generation} ${s.state} ${s.listed}${flipsText(s)}`).join();
    const isOther = plugins !== this.#pluginsSeen;
    this.#pluginsSeen = plugins;
    return isOther || this.#isAwaited || this.#components.missing.toReallocate().size > 0;
  }

  snapshot(podUid?: string): DeviceSnapshot {
    if (podUid !== undefined) this.#components.assignments.restorePod(podUid);
    const devicePlugins = this.#components.preferredRequests.withPreferred(this.host.plugins(), podUid);
    return { devices: this.host.devices(), devicePlugins, kubelet: { startedAt: this.#startedAt } };
  }

  /**
   * The amounts by resource; a resource that only the previous daemon knew counts 0 until its plugin is back. kubelet 1.36:
   * readCheckpoint.
   */
  amounts(): ReadonlyMap<string, ResourceAmount> {
    const now = this.host.amounts();
    const away = [...this.#components.plugins.known()].filter((resource) => !now.has(resource));
    return new Map([...now, ...away.map((resource) => [resource, { capacity: 0, allocatable: 0 }] as const)]);
  }

  /** `allocatedResourcesStatus` by container; undefined: the pod has no devices. */
  health(pod: RunnablePod): ContainerHealth | undefined {
    if (deviceRequirements(pod).size === 0) return undefined;
    return pluginHealth(entriesOf(this.#components.assignments.now(), pod.uid), this.host.states());
  }

  whyPending(pod: RunnablePod): (DeviceFault & { readonly isReported: boolean }) | null {
    if (deviceRequirements(pod).size === 0) return null;
    this.#isAwaited = true;
    this.#components.events.named(pod);
    const unwritten = this.#components.maintenance.whyUnwritten();
    if (unwritten !== null) return { ...unwritten, isReported: false };
    return whyPending(
      { plugins: this.#components.plugins, missing: this.#components.missing, waitMs: this.#deps.waitMs },
      pod,
    );
  }

  isChosenByPlugin(pod: RunnablePod): boolean {
    return isChosenByPlugin(this.#components.plugins, pod);
  }
  hasFailed(podUid: string): boolean {
    return this.#components.preferredRequests.hasFailed(podUid);
  }
  registrationOf(pod: RunnablePod): string {
    return registrationOf(this.#components.plugins, pod);
  }
  recover(living: readonly LivingPod[]): void {
    for (const { pod } of living) if (deviceRequirements(pod).size > 0) this.#components.events.named(pod);
    this.#components.missing.recover(living);
  }
  toReallocate(): ReadonlyMap<string, ReadonlySet<string>> {
    return this.#components.missing.toReallocate();
  }
  reallocated(podUid: string, why: string | null): void {
    this.#components.missing.reallocated(podUid, why);
    if (why === null) this.#components.changes.changed();
  }
  slowCalls(): ReadonlyMap<string, DeviceFault> {
    return this.#components.calls.slow();
  }
  vanished(): readonly VanishedDevices[] {
    return vanishedDevices(this.#components.assignments.now(), this.host.states());
  }

  askPreferred(podUid: string, questions: readonly PreferredAllocationRequest[]): boolean {
    return this.#components.preferredRequests.ask(podUid, questions);
  }
  forget(podUid: string): void {
    this.#components.preferredRequests.forget(podUid);
  }
  withResponses(next: unknown): unknown {
    return this.#components.assignments.withResponses(next);
  }

  problems(): readonly Problem[] {
    const faults = this.#components.faults.standing().map((message): Problem => ({ from: "devices", message }));
    const lost = this.#components.missing.standing().map((message): Problem => ({ from: "state-files", message }));
    const gone = this.vanished().map(({ podUid, message }): Problem => {
      return { from: "devices", message: `pod ${this.#components.events.nameOf(podUid)}: ${message}` };
    });
    return [
      ...faults,
      ...this.#components.maintenance.problems(),
      ...lost,
      ...gone,
      ...assignmentProblems(this.#components.assignments, this.#components.events.leaks),
    ];
  }

  update(living: ReadonlySet<string>): void {
    this.#isAwaited = false;
    this.#components.events.record(living);
    if (this.#components.maintenance.run()) this.#components.changes.changed();
    if (this.#components.maintenance.voidAfterReboot() !== null) return;
    // an unreadable file is left for people to inspect, until a device is assigned again
    if (this.#components.assignments.fault() !== null) return;
    const healthy = (resource: string) => healthyOf(this.#components.plugins.stateOf(resource));
    this.#components.assignments.edit((now) => withRegistered(now, this.#components.plugins.known(), healthy));
  }

  async allocate(
    pod: RunnablePod,
    signal: AbortSignal,
    starting?: ReadonlySet<string>,
  ): Promise<Result<null, DeviceFault>> {
    if (deviceRequirements(pod).size === 0) return ok(null);
    this.#components.events.named(pod);
    this.#components.events.recordAllocations();
    const prepared =
      this.#components.maintenance.voidAfterReboot() ??
      (await this.#components.allocator.prepare(pod, signal, starting));
    this.#components.events.recordAllocations();
    return prepared;
  }

  async runContainerOptions(
    pod: RunnablePod,
    container: PodContainer,
  ): Promise<Result<DeviceOptions | null, DeviceFault>> {
    if (!deviceRequirements(pod).has(container.name)) return ok(null);
    const { host, waitMs } = this.#deps;
    const onConflict = (conflict: DeviceConflict): void =>
      this.#components.conflicts.report(pod, container.name, conflict);
    const deps = {
      host,
      assignments: this.#components.assignments,
      plugins: this.#components.plugins,
      calls: this.#components.calls,
      waitMs,
      onConflict,
    };
    return this.#components.maintenance.voidAfterReboot() ?? runContainerOptions(deps, pod, container);
  }

  /** Stops notifications, ends all calls to plugins, and removes kubelet.sock. */
  close(): void {
    this.#life.abort();
    this.#unlisten();
    this.#components.changes.close();
    this.host.close();
  }
}

interface RequirementDeps {
  readonly plugins: PluginSnapshot;
  readonly missing: MissingAllocations;
  readonly waitMs: number;
}

/** Why a pod that requests devices is not tried; null: it may be tried. `isReported`: it is reported as a refusal. */
function whyPending(
  { plugins, missing: losses, waitMs }: RequirementDeps,
  pod: RunnablePod,
): (DeviceFault & { readonly isReported: boolean }) | null {
  const lost = losses.whyPending(pod);
  if (lost !== null) return { ...lost, isReported: false };
  const away = requiredResources(pod).filter((resource) => !plugins.isReady(resource));
  if (away.length === 0) return null;
  if (plugins.isEarly) return { ...waitingForPlugins(away, waitMs), isReported: false };
  // a kubelet would run the pod without these devices
  const unknown = away.filter((resource) => !plugins.isDeviceResource(resource));
  return unknown.length === 0 ? null : { ...notRegistered(unknown), isReported: true };
}

/** True if a plugin of the pod's resources offers GetPreferredAllocation. */
const isChosenByPlugin = (plugins: PluginSnapshot, pod: RunnablePod): boolean =>
  requiredResources(pod).some((resource) => {
    const state = plugins.stateOf(resource);
    return state?.state === "registered" && state.options.getPreferredAllocationAvailable;
  });

/** A text that changes when a plugin of the pod's resources registers again. */
const registrationOf = (plugins: PluginSnapshot, pod: RunnablePod): string =>
  requiredResources(pod)
    .map((resource) => `${resource} ${plugins.stateOf(resource)?.generation ?? 0}`)
    .join(", ");

interface RunContainerDeps {
  readonly host: Pick<DevicePluginHost, "preStart">;
  readonly assignments: DeviceAssignments;
  readonly plugins: PluginSnapshot;
  readonly waitMs: number;
  readonly calls: PluginCalls;
  readonly onConflict: (conflict: DeviceConflict) => void;
}
type Fault = Result<never, DeviceFault>;

/**
 * The device options of a container that is about to be created, after the plugins' required calls; null: it requests none.
 * kubelet 1.36: GetDeviceRunContainerOptions, which allocates missing devices again: here the pod is admitted anew.
 */
async function runContainerOptions(
  deps: RunContainerDeps,
  pod: RunnablePod,
  { name }: Pick<PodContainer, "name">,
): Promise<Result<DeviceOptions | null, DeviceFault>> {
  const requirements = deviceRequirements(pod).get(name);
  if (requirements === undefined) return ok(null);
  const ofContainer = (): readonly PodDevicesEntry[] =>
    entriesOf(deps.assignments.now(), pod.uid).filter(({ containerName }) => containerName === name);
  for (const resource of requirements.keys()) {
    const fault = await preStart(deps, pod, name, resource, ofContainer());
    if (fault !== null) return fault;
  }
  // read now, since a call may have taken half a minute
  const held = ofContainer();
  const responses: ResourceResponse[] = [];
  for (const resource of requirements.keys()) {
    const entry = held.find(({ resourceName }) => resourceName === resource);
    const response = responseOf(pod.uid, name, resource, entry);
    if (!response.ok) return err(notStarted(response.error));
    responses.push(response.value);
  }
  const options = containerOptions(responses);
  for (const conflict of options.conflicts) deps.onConflict(conflict);
  const given = held.filter(({ resourceName }) => requirements.has(resourceName));
  const annotations = [
    ...options.annotations.filter(({ name: own }) => own !== DEVICES_ANNOTATION),
    devicesAnnotation(given),
  ];
  return ok({ ...options, annotations });
}

/** Calls PreStartContainer where needed; null: the container may start. kubelet 1.36: callPreStartContainerIfNeeded. */
async function preStart(
  { host, plugins, waitMs, calls }: RunContainerDeps,
  pod: RunnablePod,
  container: string,
  resource: string,
  held: readonly PodDevicesEntry[],
): Promise<Fault | null> {
  const state = plugins.stateOf(resource);
  // whether the plugin requires the call is not known before it has registered
  if (state === undefined && plugins.isEarly) return err(waitingForPlugins([resource], waitMs));
  if (!plugins.isKnown(resource)) {
    return err(notStarted(`endpoint not found in cache for a registered resource: ${resource}`));
  }
  const entry = held.find(({ resourceName }) => resourceName === resource);
  if (entry === undefined) return err(notStarted(nothingAllocated(pod.uid, container, resource)));
  if (state?.options.preStartRequired !== true) return null;
  const called = await calls.during(pod.uid, resource, "PreStartContainer", host.preStart(resource, idsOf(entry)));
  if (called.ok) return null;
  return err(notStarted(`device plugin PreStartContainer rpc failed with err: ${goText(called.error)}`));
}

function responseOf(
  podUid: string,
  container: string,
  resource: string,
  entry: PodDevicesEntry | undefined,
): Result<ResourceResponse, string> {
  if (entry === undefined) return err(nothingAllocated(podUid, container, resource));
  const its = `the devices of ${resource} of container ${container}`;
  if (entry.allocResp === null) return err(`the device plugin has not been asked for ${its} yet`);
  const response = readAllocateResponse(entry.allocResp);
  return response.ok
    ? ok({ resource, response: response.value })
    : err(`what the checkpoint has for ${its} is no ContainerAllocateResponse: ${response.error.code}`);
}

export interface DeviceManagerOptions
  extends Pick<DeviceManagerDeps, "files" | "clock" | "bootId" | "waitMs" | "onProblem"> {
  /** The directory of kubelet.sock. */
  readonly pluginDir: string;
  /** The directory of plugin-watcher sockets; null: not watched. */
  readonly registryDir: string | null;
  /** Handlers for other types of plugins found there; absent: none are accepted. */
  readonly handlers?: Readonly<Record<string, PluginHandler>>;
  /** Absent: nothing is counted. */
  readonly counters?: DeviceManagerDeps["counters"];
  /** The directory of the device history. */
  readonly stateDir: string;
  readonly timeouts?: Partial<PluginTimeouts>;
  readonly graceMs?: number;
}

/** Serves kubelet.sock, and records allocations. Error: what prevents it; nothing was changed then. */
export async function openDeviceManager(options: DeviceManagerOptions): Promise<Result<DeviceManager, string>> {
  const { pluginDir, registryDir, stateDir, files, clock, bootId, waitMs, timeouts, graceMs, onProblem } = options;
  const { counters = noCounters, handlers } = options;
  const assignments = new DeviceAssignments(files);
  const opened = await openDevicePluginHost({
    dir: pluginDir,
    ...(registryDir === null ? {} : { registryDir }),
    ...(handlers === undefined ? {} : { handlers }),
    ...(timeouts === undefined ? {} : { timeouts }),
    ...(graceMs === undefined ? {} : { graceMs }),
    isInUse: (resource) => (assignments.now().entries ?? []).some(({ resourceName }) => resourceName === resource),
    now: () => epochMs(clock.nowMs()),
  });
  if (!opened.ok) return opened;
  const host = opened.value;
  const onFault = (message: string): void => onProblem({ from: "devices", message });
  const history = new DeviceHistory({ stateDir, clock, onFault });
  return ok(new DeviceManager({ host, files, assignments, clock, bootId, waitMs, history, counters, onProblem }));
}

/** Claims the devices of a state directory: one process allocates them. Error: who holds the claim. */
export const claimDevices = (stateDir: string, bootId: string): Promise<Result<Lock, string>> =>
  takeLock(claimsDirectory(), `/device-state${encodeURI(realpathSync(stateDir))}`, bootId);
