import { join } from "node:path";
import type { Result } from "../../../api/base/result.ts";
import type { CgroupValues } from "../../../api/model/cgroups.ts";
import type { DeviceOptions } from "../../../api/model/devices.ts";
import type { LocalImage, RuntimePod } from "../../containerd/cri.ts";
import { kubeletText } from "../../containerd/fault.ts";
import { removeContainerLog } from "../../containerd/logs.ts";
import type { ContainerConfig, SandboxConfig } from "../../containerd/messages.ts";
import type { StartContainer } from "../../lifecycle/actions.ts";
import {
  containerConfigOf,
  sandboxConfigOf,
  withClaimedDevices,
  withDeviceEnv,
} from "../../lifecycle/config/container-config.ts";
import { containersToKill, restartGracePeriod, type StopContainer } from "../../lifecycle/container-termination.ts";
import { podAddresses, resolveEnv } from "../../lifecycle/env.ts";
import { emptyRuntimePod } from "../../lifecycle/instances.ts";
import type { PodContainer } from "../../lifecycle/pod.ts";
import type { ClaimFault, ContainerClaims } from "../devices/pod-claims.ts";
import type { ContainerDevices, DeviceFault } from "../devices/port.ts";
import { dnsOf } from "../networking/dns.ts";
import type { PodNode } from "../networking/node-addresses.ts";
import type { Mounter } from "../volumes/mounter.ts";
import { mountsOf } from "../volumes/mounts.ts";
import { makePodDirectory, makeVolumes } from "../volumes/volumes.ts";
import {
  allocateDevices,
  claimedDevices,
  containerDevices,
  prepareClaims,
  startingContainers,
} from "./container-devices.ts";
import { runHook } from "./hooks.ts";
import type { ContainerFault, Images } from "./images.ts";
import { type LogLinks, makeDirectory, makeLogDirectory, restartsByLogs } from "./log-link.ts";
import { ownPartOf } from "./owned-runtime.ts";
import { stopContainer, stopPod } from "./stop-container.ts";
import type { SyncContext, SyncPodRequest, SyncPodResult, WorkerDeps } from "./worker-deps.ts";

interface SyncPodContext extends SyncContext {
  readonly deps: WorkerDeps;
  /** The part of the pod in the runtime that this daemon owns. */
  readonly runtimePod: RuntimePod;
}

/**
 * Syncs a living pod once. kubelet 1.36: kuberuntime SyncPod, after makePodDataDirs and the volume manager, and
 * devicemanager.Allocate, which a kubelet calls at admission.
 */
export async function syncPod(
  deps: WorkerDeps,
  asked: SyncPodRequest,
  own: Pick<SyncContext, "places" | "runtime" | "events">,
): Promise<SyncPodResult> {
  const { pod, actions, signal } = asked;
  const runtimePod = ownPartOf(asked.runtimePod ?? emptyRuntimePod(pod), deps.owner);
  const { clock, profile } = deps;
  const context: SyncPodContext = { deps, pod, runtimePod, clock, profile, signal, ...own };
  const end = (error: string | null): SyncPodResult => ({
    ...NOTHING,
    sandboxId: actions.sandboxId,
    error,
    isCut: signal.aborted,
  });
  if (actions.createSandbox && actions.sandboxId !== null)
    context.events.normal("SandboxChanged", "Pod sandbox changed, it will be killed and re-created.");
  const killed = await kill(context, asked);
  if (killed !== null || signal.aborted) return end(killed);
  const kept = await removeDead(context, asked);
  const isStarting = actions.createSandbox || actions.initToStart.length + actions.toStart.length > 0;
  if (!isStarting || signal.aborted) return end(kept);
  const unready = await allocateDevices(deps.devices, pod, signal, startingContainers(pod, actions));
  // a refusal is reported even if the sync was aborted: the pod no longer has its devices
  if (unready !== null && !(unready.keeps && signal.aborted)) return withoutDevices(context, asked, unready);
  if (signal.aborted) return end(null);
  const unmade = await makeFiles(context);
  if (unmade !== null || signal.aborted) return end(unmade);
  const unprepared = actions.createSandbox ? await prepareClaims(deps.claims, pod, signal) : null;
  if (unprepared !== null && !signal.aborted) return withoutClaims(context, asked, unprepared);
  if (signal.aborted) return end(null);
  const sandbox = await sandboxOf(context, asked);
  if (typeof sandbox === "string" || signal.aborted) return end(typeof sandbox === "string" ? sandbox : null);
  return startAll(context, asked, sandbox);
}
const NOTHING = { started: [], faults: {}, undecided: [], refusal: null };

/** A pod that returns to admission is reported there; a pod that tries again is reported here. */
function withoutDevices(
  context: SyncPodContext,
  { actions, signal }: SyncPodRequest,
  { keeps, ...fault }: DeviceFault,
): SyncPodResult {
  if (keeps) context.events.warning("Failed", `Error: ${fault.message}`);
  const starts = [...actions.initToStart, ...actions.toStart].map(({ name }) => [name, fault] as const);
  return {
    ...NOTHING,
    sandboxId: actions.sandboxId,
    faults: Object.fromEntries(starts),
    error: fault.message,
    refusal: keeps ? null : fault,
    isCut: signal.aborted,
  };
}

/** A pod that waits for a driver has not failed. kubelet 1.37: FailedPrepareDynamicResources. */
function withoutClaims(
  context: SyncPodContext,
  { actions, signal }: SyncPodRequest,
  { message: why, waits }: ClaimFault,
): SyncPodResult {
  const { sandboxId } = actions;
  const message = `Failed to prepare dynamic resources: ${why}`;
  if (waits === null) {
    context.events.warning("FailedPrepareDynamicResources", message);
    return { ...NOTHING, sandboxId, error: message, isCut: signal.aborted, isUnprepared: true };
  }
  const starts = [...actions.initToStart, ...actions.toStart];
  const faults = Object.fromEntries(starts.map(({ name }) => [name, { reason: waits, message: why }]));
  return { ...NOTHING, sandboxId, faults, error: null, isCut: signal.aborted };
}

/** Null: everything that was to be stopped has stopped. */
async function kill(context: SyncPodContext, { pod, actions }: SyncPodRequest): Promise<string | null> {
  const { deps, runtimePod } = context;
  const podIps = podAddresses(pod, { hostIPs: deps.node().hostIPs, podIPs: runtimePod.sandboxes[0]?.ips ?? [] });
  const stopContext = { ...context, podIps };
  if (actions.killPod) {
    const errors = await stopPod(
      stopContext,
      containersToKill(pod, runtimePod),
      runtimePod.sandboxes,
      restartGracePeriod(pod),
    );
    return errors.length === 0 ? null : errors.join(", ");
  }
  const containers = [...pod.spec.initContainers, ...pod.spec.containers];
  for (const { containerId, name, message, probe } of actions.toKill) {
    const container = containers.find((c) => c.name === name);
    const failed = probe === undefined ? null : (container?.probes[probe] ?? null);
    const stop: StopContainer = { containerId, name, message, waitsFor: [], preStop: container?.preStop ?? null };
    const fault = await stopContainer(stopContext, stop, restartGracePeriod(pod, failed));
    if (fault !== null)
      return `failed to "KillContainer" for "${name}" with KillContainerError: "${kubeletText(fault)}"`;
  }
  return null;
}

/** Removes dead containers with their logs, as the kubelet does; one that cannot be removed is tried again. Null: all are removed. */
async function removeDead(
  { deps, pod, runtimePod, runtime, signal }: SyncPodContext,
  { actions }: SyncPodRequest,
): Promise<string | null> {
  let kept: string | null = null;
  for (const id of actions.toRemove) {
    if (signal.aborted) return kept;
    const container = runtimePod.containers.find((c) => c.id === id);
    const logPath = container?.logPath ?? "";
    if (logPath !== "" && !removeContainerLog(deps.roots.podLogsDirectory, logPath).ok) continue;
    if (logPath !== "") deps.logLinks?.unlink({ pod, container: container?.name ?? "", id, log: logPath });
    const removed = await runtime.removeContainer(id);
    if (!removed.ok) kept = `failed to remove container "${id}": ${kubeletText(removed.error)}`;
  }
  return kept;
}

/** Makes the pod's directories and volumes. Null: they are made. */
async function makeFiles({ deps, pod, places, events }: SyncPodContext): Promise<string | null> {
  const made = makePodDirectory(places, deps.owner);
  if (!made.ok) {
    const message = `error making pod data directories: ${made.error}`;
    events.warning("Failed", message);
    return message;
  }
  const faults = await makeVolumes(pod, places, deps.memoryBytes(pod), deps.mounter);
  const messages = faults.map(({ volume, message }) => `MountVolume.SetUp failed for volume "${volume}" : ${message}`);
  for (const message of messages) events.warning("FailedMount", message);
  return messages.length === 0 ? null : messages.join(", ");
}

/** The existing sandbox or a new one; a text: why there is none. */
async function sandboxOf(context: SyncPodContext, { actions }: SyncPodRequest): Promise<Sandbox | string> {
  if (actions.createSandbox) return makeSandbox(context, actions.attempt);
  const sandbox = context.runtimePod.sandboxes.find(({ id }) => id === actions.sandboxId);
  if (sandbox === undefined) return `sandbox \`${actions.sandboxId}\` is not this daemon's own`;
  const config = sandboxConfig(context, sandbox.attempt);
  return config.ok ? { id: sandbox.id, ips: sandbox.ips, config: config.value } : config.error;
}

/** Starts the containers. An init container that does not start, unless it is a sidecar, delays all that follow it. */
async function startAll(
  context: SyncPodContext,
  { pod, actions, valuesOf, signal }: SyncPodRequest,
  sandbox: Sandbox,
): Promise<SyncPodResult> {
  const { images, mounter, devices, claims, logLinks, owner, node } = context.deps;
  const of = {
    images,
    mounter,
    devices,
    claims,
    logLinks,
    owner,
    node: node(),
    sandboxId: sandbox.id,
    sandboxConfig: sandbox.config,
  };
  const startContext = { ...context, ...of, podIps: sandbox.ips };
  const started: string[] = [];
  const undecided: string[] = [];
  const faults: Record<string, ContainerFault> = {};
  const start = async (container: PodContainer, attempt: number): Promise<boolean> => {
    const end = await startContainer(startContext, { container, attempt, values: () => valuesOf(container.name) });
    if (end === "started") started.push(container.name);
    else if (end === "undecided") undecided.push(container.name);
    else if (end !== "cut") faults[container.name] = end;
    return end === "started";
  };
  const synced = (): SyncPodResult => ({
    sandboxId: sandbox.id,
    started,
    faults,
    undecided,
    error: null,
    refusal: null,
    isCut: signal.aborted,
  });
  for (const [container, attempt] of named(pod.spec.initContainers, actions.initToStart)) {
    if (signal.aborted) return synced();
    if (!(await start(container, attempt)) && !container.isSidecar) return synced();
  }
  for (const [container, attempt] of named(pod.spec.containers, actions.toStart)) {
    if (signal.aborted) return synced();
    await start(container, attempt);
  }
  return synced();
}

const named = (
  containers: readonly PodContainer[],
  starts: readonly StartContainer[],
): readonly (readonly [PodContainer, number])[] =>
  starts.flatMap(({ name, attempt }) => {
    const container = containers.find((c) => c.name === name);
    return container === undefined ? [] : [[container, attempt] as const];
  });

interface Sandbox {
  readonly id: string;
  /** Empty on the host network. */
  readonly ips: readonly string[];
  readonly config: SandboxConfig;
}

/**
 * Builds the sandbox configuration, which the runtime gets when the sandbox and each of its containers are created. Error:
 * the kubelet's words.
 */
function sandboxConfig(context: SyncPodContext, attempt: number): Result<SandboxConfig, string> {
  return configWithDns(context, attempt, false);
}

function configWithDns(context: SyncPodContext, attempt: number, isReported: boolean): Result<SandboxConfig, string> {
  const { deps, pod, places, events } = context;
  const { hostIPs, clusterDNS, clusterDomain, resolvConf, cgroupVersion } = deps.node();
  const dns = dnsOf(pod, { clusterDNS, clusterDomain, host: resolvConf, nodeIps: hostIPs });
  if (isReported) for (const { reason, message } of dns.events) events.warning(reason, message);
  return sandboxConfigOf(pod, {
    owner: deps.owner,
    attempt,
    logDirectory: places.logDirectory,
    cgroupParent: deps.cgroupParentOf(pod),
    dns: dns.conf,
    clusterDomain,
    values: deps.sandboxValuesOf(pod),
    version: cgroupVersion,
  });
}

/**
 * Creates the pod's sandbox and reads its addresses from the runtime. A text: why there is none; an event reports it too.
 * kubelet 1.36: createPodSandbox.
 */
async function makeSandbox(context: SyncPodContext, attempt: number): Promise<Sandbox | string> {
  const { deps, pod, places, runtime, events } = context;
  const failed = (why: string): string => {
    const message = `Failed to create pod sandbox: ${why}`;
    events.warning("FailedCreatePodSandBox", message);
    return message;
  };
  const config = configWithDns(context, attempt, true);
  if (!config.ok) return failed(config.error);
  const logs = makeDirectory(places.logDirectory);
  if (!logs.ok) return failed(logs.error);
  const made = await runtime.runSandbox(config.value);
  if (!made.ok) return failed(kubeletText(made.error));
  const sandbox = { id: made.value, ips: [], config: config.value };
  if (pod.spec.hostNetwork) return sandbox;
  const pods = await deps.runtime.pods();
  const found = pods.ok ? pods.value.get(pod.uid)?.sandboxes.find(({ id }) => id === made.value) : undefined;
  if (found !== undefined) return { ...sandbox, ips: found.ips };
  const message = `Unable to get pod sandbox status: ${pods.ok ? "it is not there" : kubeletText(pods.error)}`;
  events.warning("FailedPodSandBoxStatus", message);
  return message;
}

interface StartContext extends SyncContext {
  readonly images: Images;
  readonly mounter: Mounter;
  /** Undefined: this daemon serves no device plugins. */
  readonly devices: ContainerDevices | undefined;
  /** Undefined: this daemon serves no DRA drivers. */
  readonly claims: ContainerClaims | undefined;
  readonly logLinks: LogLinks | undefined;
  readonly owner: string;
  readonly node: PodNode;
  /** The sandbox in which the container starts. */
  readonly sandboxId: string;
  readonly sandboxConfig: SandboxConfig;
  /** The sandbox's addresses; none on the host network. */
  readonly podIps: readonly string[];
}
export interface StartContainerRequest {
  readonly container: PodContainer;
  /** The restart count; 0 if the runtime knows no earlier instance: then the container's logs give it. */
  readonly attempt: number;
  /** Called right before the container is created, since pulling its image may take long; null: not decided. */
  readonly values: () => CgroupValues | null;
}

/** `cut`: the sync was aborted between two steps. */
type Started = ContainerFault | "started" | "cut" | "undecided";

/**
 * Starts a container: image, devices, configuration, create, start, postStart hook. Emits the kubelet's events. A returned
 * fault says why the container does not run, for its status. kubelet 1.36: startContainer.
 */
export async function startContainer(context: StartContext, asked: StartContainerRequest): Promise<Started> {
  const { pod, runtime, events, images, profile, signal, sandboxId, sandboxConfig } = context;
  const { words } = profile;
  const { name } = asked.container;
  const failed = (reason: string, message: string, id = ""): ContainerFault => {
    // a container's id in the message would make each event a different one
    const said = id === "" ? message : message.replaceAll(id, name);
    events.warning("Failed", `Error: ${said}`, name);
    return { reason, message };
  };
  const image = await images.ensure(pod.uid, asked.container, events);
  if (!image.ok) {
    events.warning("Failed", `Error: ${image.error.reason}`, name);
    return image.error;
  }
  if (signal.aborted) return "cut";
  const values = asked.values();
  if (values === null) return "undecided";
  const devices = await containerDevices(context.devices, pod, asked.container);
  if (!devices.ok) return failed(devices.error.reason, devices.error.message);
  if (signal.aborted) return "cut";
  const claimed = claimedDevices(context.claims, pod, asked.container);
  if (!claimed.ok) return failed("CreateContainerConfigError", claimed.error);
  const attempt = asked.attempt === 0 ? restartsByLogs(context.places, name) : asked.attempt;
  const given = withClaimedDevices(devices.value, claimed.value);
  const config = await configOf(context, { ...asked, attempt, values, devices: given }, image.value);
  if (!config.ok) return failed("CreateContainerConfigError", config.error);
  if (signal.aborted) return "cut";
  const created = await runtime.createContainer(sandboxId, config.value, sandboxConfig);
  if (!created.ok) return failed("CreateContainerError", created.error.message);
  const id = created.value;
  events.normal("Created", words.containerCreated(name), name);
  if (signal.aborted) return "cut";
  const started = await runtime.startContainer(id);
  if (!started.ok) return failed("RunContainerError", started.error.message, id);
  events.normal("Started", words.containerStarted(name), name);
  context.logLinks?.link({
    pod,
    container: name,
    id,
    log: join(sandboxConfig.logDirectory ?? "", config.value.logPath ?? ""),
  });
  return runPostStart(context, asked.container, id);
}

async function configOf(
  context: StartContext,
  asked: Pick<StartContainerRequest, "container" | "attempt"> & {
    readonly values: CgroupValues;
    readonly devices: DeviceOptions | null;
  },
  image: LocalImage,
): Promise<Result<ContainerConfig, string>> {
  const { pod, places, podIps, mounter, owner, node } = context;
  const { container, attempt, values, devices } = asked;
  const { hostIPs, allocatable, clusterDomain, cgroupVersion, security } = node;
  const own = resolveEnv(container, pod, { hostIPs, podIPs: podIps, allocatable });
  if (!own.ok) return own;
  const env = withDeviceEnv(devices, own.value);
  const ips = podAddresses(pod, { hostIPs, podIPs: podIps });
  const mounts = await mountsOf({ pod, container, attempt, places, podIps: ips, env, clusterDomain }, mounter);
  if (!mounts.ok) return mounts;
  const logs = makeLogDirectory(places, container.name);
  if (!logs.ok) return logs;
  return containerConfigOf(pod, container, {
    owner,
    attempt,
    image: image.id,
    imageUser: image.user,
    env,
    mounts: mounts.value,
    devices,
    resources: values,
    version: cgroupVersion,
    security,
  });
}

/** Kills a container whose hook fails; the event omits the hook's output, which may contain secrets. */
async function runPostStart(
  context: StartContext,
  { name, postStart, preStop }: PodContainer,
  id: string,
): Promise<Started> {
  if (postStart === null) return "started";
  const { pod, runtime, events, clock, profile, signal } = context;
  const container = { id, name };
  const podIps = podAddresses(pod, { hostIPs: context.node.hostIPs, podIPs: context.podIps });
  const asked = { handler: postStart, pod, container, podIps, timeoutSeconds: 0, profile };
  const ran = await runHook(asked, runtime, clock, signal);
  if (ran.ok) return "started";
  if (signal.aborted) return "cut";
  events.warning("FailedPostStartHook", "PostStartHook failed", name);
  const stop = { containerId: id, name, message: "FailedPostStartHook", waitsFor: [], preStop };
  await stopContainer({ ...context, podIps }, stop, restartGracePeriod(pod));
  return { reason: "PostStartHookError", message: ran.error };
}
