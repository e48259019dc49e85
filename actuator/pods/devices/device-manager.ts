import { readAllocateResponse } from "../../../api/decide/devices/allocate-response.ts";
import type { PodDevicesEntry } from "../../../api/decide/devices/checkpoint.ts";
import { containerOptions, type ResourceResponse } from "../../../api/decide/devices/container-options.ts";
import type { PreferredQuestion } from "../../../api/decide/devices/preferred.ts";
import type { DeviceConflict, DeviceOptions } from "../../../api/model/managers.ts";
import { err, ok, type Result } from "../../../api/model/result.ts";
import type { Problem } from "../../core/ports.ts";
import type { DevicePluginHost } from "../../deviceplugin/host.ts";
import type { ResourceAmount } from "../../deviceplugin/plugins.ts";
import type { PodContainer, RunnablePod } from "../../lifecycle/pod.ts";
import { type LivingPod, type Vanished, vanishedFrom } from "./booked-devices.ts";
import { DEVICES, entriesOf, idsOf, markOf, withRegistered } from "./checkpoint-entries.ts";
import type { DeviceAssignments } from "./device-assignments.ts";
import {
  type DeviceManagerParts,
  type DeviceManagerPorts,
  deviceManagerParts,
  type PluginCalls,
} from "./device-manager-parts.ts";
import { deviceRequirements, requiredResources } from "./device-requirements.ts";
import type { MissingAllocations } from "./missing-allocations.ts";
import { bookProblems } from "./plugin-faults.ts";
import { healthyOf, type PluginSnapshot } from "./plugin-snapshot.ts";
import {
  type DeviceDesk,
  type DeviceFault,
  type DeviceHands,
  type DeviceParts,
  goText,
  nothingAllocated,
  notRegistered,
  notStarted,
  waitsFor,
} from "./port.ts";

/** The node's devices: what plugins have, who holds it, and what containers get for it. */
export class DeviceManager implements DeviceDesk, DeviceHands {
  readonly host: DevicePluginHost;
  readonly #ports: DeviceManagerPorts;
  readonly #has: DeviceManagerParts;
  readonly #life = new AbortController();
  readonly #startedAt: string;
  #pluginsSeen = "";
  /** A pod that wants devices waits, as of this turn. */
  #isAwaited = false;
  readonly #unlisten: () => void;

  /** At once: after a reboot what plugins answered is void. */
  constructor(ports: DeviceManagerPorts) {
    const { host, clock, waitMs } = ports;
    this.#ports = ports;
    this.host = host;
    this.#startedAt = new Date(clock.nowMs()).toISOString();
    this.#has = deviceManagerParts(ports);
    const unlisten = [
      host.onChange(() => this.#has.pace.changed()),
      host.onFault((fault) => this.#has.faults.add(fault)),
    ];
    this.#unlisten = () => {
      for (const stop of unlisten) stop();
    };
    this.#has.maintenance.settleBoot();
    // who waits for a plugin waits no longer then, and says why
    void clock.sleep(waitMs, this.#life.signal).then(() => this.#has.pace.changed());
  }

  get version(): number {
    return this.#has.pace.version;
  }
  /** Told when `version` has grown, at most four times a second. Answers how to stop it. */
  onChange(listener: () => void): () => void {
    return this.#has.pace.onChange(listener);
  }

  /**
   * True: a change deserves a turn of its own, because a pod waits for devices, or plugins came or went since this was last
   * asked. Health flips can wait for the next turn.
   */
  isWorthATurn(): boolean {
    const states = this.host.states();
    const plugins = states.map((s) => `${s.resource} ${s.generation} ${s.state} ${s.listed}`).join();
    const isOther = plugins !== this.#pluginsSeen;
    this.#pluginsSeen = plugins;
    return isOther || this.#isAwaited || this.#has.missing.lacking().size > 0;
  }

  parts(podUid?: string): DeviceParts {
    if (podUid !== undefined) this.#has.book.mayHold(podUid);
    const devicePlugins = this.#has.questions.told(this.host.plugins(), podUid);
    return { devices: this.host.devices(), devicePlugins, kubelet: { startedAt: this.#startedAt } };
  }

  /** One that only the last daemon knew has none until its plugin is back. kubelet 1.36: readCheckpoint. */
  amounts(): ReadonlyMap<string, ResourceAmount> {
    const now = this.host.amounts();
    const away = [...this.#has.plugins.known()].filter((resource) => !now.has(resource));
    return new Map([...now, ...away.map((resource) => [resource, { capacity: 0, allocatable: 0 }] as const)]);
  }

  whyWaits(pod: RunnablePod): (DeviceFault & { readonly isTold: boolean }) | null {
    if (deviceRequirements(pod).size === 0) return null;
    this.#isAwaited = true;
    this.#has.events.named(pod);
    const unwritten = this.#has.maintenance.whyNot();
    if (unwritten !== null) return { ...unwritten, isTold: false };
    return whyWaits({ plugins: this.#has.plugins, losses: this.#has.missing, waitMs: this.#ports.waitMs }, pod);
  }

  isChosenByPlugin(pod: RunnablePod): boolean {
    return isChosenByPlugin(this.#has.plugins, pod);
  }
  hasFailed(podUid: string): boolean {
    return this.#has.questions.hasFailed(podUid);
  }
  registrationOf(pod: RunnablePod): string {
    return registrationOf(this.#has.plugins, pod);
  }
  recover(living: readonly LivingPod[]): void {
    for (const { pod } of living) if (deviceRequirements(pod).size > 0) this.#has.events.named(pod);
    this.#has.missing.recover(living);
  }
  lacking(): ReadonlyMap<string, ReadonlySet<string>> {
    return this.#has.missing.lacking();
  }
  decidedAnew(podUid: string, why: string | null): void {
    this.#has.missing.decidedAnew(podUid, why);
    if (why === null) this.#has.pace.changed();
  }
  slowCalls(): ReadonlyMap<string, DeviceFault> {
    return this.#has.calls.slow();
  }
  vanished(): readonly Vanished[] {
    return vanishedFrom(this.#has.book.now(), this.host.states());
  }

  ask(podUid: string, questions: readonly PreferredQuestion[]): boolean {
    return this.#has.questions.ask(podUid, questions);
  }
  forget(podUid: string): void {
    this.#has.questions.forget(podUid);
  }
  merged(next: unknown): unknown {
    return this.#has.book.merged(next);
  }

  problems(): readonly Problem[] {
    const faults = this.#has.faults.standing().map((message): Problem => ({ from: "devices", message }));
    const lost = this.#has.missing.standing().map((message): Problem => ({ from: "state-files", message }));
    const gone = this.vanished().map(({ podUid, message }): Problem => {
      return { from: "devices", message: `pod ${this.#has.events.nameOf(podUid)}: ${message}` };
    });
    return [
      ...faults,
      ...this.#has.maintenance.problems(),
      ...lost,
      ...gone,
      ...bookProblems(this.#has.book, this.#has.events.leaks),
    ];
  }

  look(living: ReadonlySet<string>): void {
    this.#isAwaited = false;
    this.#has.events.look(living);
    if (this.#has.maintenance.look()) this.#has.pace.changed();
    if (this.#has.maintenance.settleBoot() !== null) return;
    // what cannot be read stays for people to look at, until something is held again
    if (this.#has.book.fault() !== null) return;
    const healthy = (resource: string) => healthyOf(this.#has.plugins.stateOf(resource));
    this.#has.book.edit((now) => withRegistered(now, this.#has.plugins.known(), healthy));
  }

  async prepare(
    pod: RunnablePod,
    signal: AbortSignal,
    starting?: ReadonlySet<string>,
  ): Promise<Result<null, DeviceFault>> {
    if (deviceRequirements(pod).size === 0) return ok(null);
    this.#has.events.named(pod);
    this.#has.events.note();
    const prepared = this.#has.maintenance.settleBoot() ?? (await this.#has.allocator.prepare(pod, signal, starting));
    this.#has.events.note();
    return prepared;
  }

  async startOf(pod: RunnablePod, container: PodContainer): Promise<Result<DeviceOptions | null, DeviceFault>> {
    if (!deviceRequirements(pod).has(container.name)) return ok(null);
    const { host, waitMs } = this.#ports;
    const onConflict = (conflict: DeviceConflict): void => this.#has.conflicts.tell(pod, container.name, conflict);
    const ports = {
      host,
      book: this.#has.book,
      plugins: this.#has.plugins,
      calls: this.#has.calls,
      waitMs,
      onConflict,
    };
    return this.#has.maintenance.settleBoot() ?? startOf(ports, pod, container);
  }

  /** Nobody is told of anything any more; ends all calls to plugins, and removes kubelet.sock. */
  close(): void {
    this.#life.abort();
    this.#unlisten();
    this.#has.pace.close();
    this.host.close();
  }
}

interface RequirementPorts {
  readonly plugins: PluginSnapshot;
  readonly losses: MissingAllocations;
  readonly waitMs: number;
}

/** Why a pod that wants devices is not asked about; null: it may be. `isTold`: as a refusal. */
function whyWaits(
  { plugins, losses, waitMs }: RequirementPorts,
  pod: RunnablePod,
): (DeviceFault & { readonly isTold: boolean }) | null {
  const lost = losses.whyWaits(pod);
  if (lost !== null) return { ...lost, isTold: false };
  const away = requiredResources(pod).filter((resource) => !plugins.isReady(resource));
  if (away.length === 0) return null;
  if (plugins.isEarly) return { ...waitsFor(away, waitMs), isTold: false };
  // a kubelet would run the pod without them
  const unknown = away.filter((resource) => !plugins.isDeviceResource(resource));
  return unknown.length === 0 ? null : { ...notRegistered(unknown), isTold: true };
}

/** A plugin of one of its resources offers to choose. */
const isChosenByPlugin = (plugins: PluginSnapshot, pod: RunnablePod): boolean =>
  requiredResources(pod).some((resource) => {
    const state = plugins.stateOf(resource);
    return state?.state === "registered" && state.options.getPreferredAllocationAvailable;
  });

/** Another text once a plugin of one of its resources has registered anew. */
const registrationOf = (plugins: PluginSnapshot, pod: RunnablePod): string =>
  requiredResources(pod)
    .map((resource) => `${resource} ${plugins.stateOf(resource)?.generation ?? 0}`)
    .join(", ");

interface StarterPorts {
  readonly host: Pick<DevicePluginHost, "preStart">;
  readonly book: DeviceAssignments;
  readonly plugins: PluginSnapshot;
  readonly waitMs: number;
  readonly calls: PluginCalls;
  readonly onConflict: (conflict: DeviceConflict) => void;
}
type Fault = Result<never, DeviceFault>;

/**
 * The devices of a container that is about to be created, after the calls that its plugins want before; null: it wants none.
 * kubelet 1.36: GetDeviceRunContainerOptions, which allocates again what is missing: here the pod is admitted anew.
 */
async function startOf(
  ports: StarterPorts,
  pod: RunnablePod,
  { name }: Pick<PodContainer, "name">,
): Promise<Result<DeviceOptions | null, DeviceFault>> {
  const wanted = deviceRequirements(pod).get(name);
  if (wanted === undefined) return ok(null);
  const ofContainer = (): readonly PodDevicesEntry[] =>
    entriesOf(ports.book.now(), pod.uid).filter(({ containerName }) => containerName === name);
  for (const resource of wanted.keys()) {
    const fault = await preStart(ports, pod, name, resource, ofContainer());
    if (fault !== null) return fault;
  }
  // as it is now: a call may have taken half a minute
  const held = ofContainer();
  const responses: ResourceResponse[] = [];
  for (const resource of wanted.keys()) {
    const entry = held.find(({ resourceName }) => resourceName === resource);
    const response = responseOf(pod.uid, name, resource, entry);
    if (!response.ok) return err(notStarted(response.error));
    responses.push(response.value);
  }
  const options = containerOptions(responses);
  for (const conflict of options.conflicts) ports.onConflict(conflict);
  const given = held.filter(({ resourceName }) => wanted.has(resourceName));
  const annotations = [...options.annotations.filter(({ name: own }) => own !== DEVICES), markOf(given)];
  return ok({ ...options, annotations });
}

/** Null: the container may start. kubelet 1.36: callPreStartContainerIfNeeded. */
async function preStart(
  { host, plugins, waitMs, calls }: StarterPorts,
  pod: RunnablePod,
  container: string,
  resource: string,
  held: readonly PodDevicesEntry[],
): Promise<Fault | null> {
  const state = plugins.stateOf(resource);
  // whether it wants the call, nobody knows before it is here
  if (state === undefined && plugins.isEarly) return err(waitsFor([resource], waitMs));
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
