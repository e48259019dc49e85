import { kubeletText } from "../containerd/fault.ts";
import { removeContainerLog } from "../gc/container-log.ts";
import type { StartContainer } from "../lifecycle/actions.ts";
import { restartGrace, type StopContainer, stopsOf } from "../lifecycle/ending.ts";
import { podAddresses } from "../lifecycle/env.ts";
import { nothingSeen } from "../lifecycle/instances.ts";
import type { PodContainer } from "../lifecycle/pod.ts";
import type { RuntimePod } from "../lifecycle/runtime-pod.ts";
import { prepareDevices, startingOf } from "./container-devices.ts";
import type { DeviceFault } from "./devices/port.ts";
import type { ContainerFault } from "./images.ts";
import { ownPartOf } from "./owned-runtime.ts";
import { makeSandbox, type Sandbox, sandboxConfig } from "./sandbox.ts";
import { startContainer } from "./start.ts";
import { stopContainer, stopPod } from "./stop.ts";
import type { Turn } from "./turn.ts";
import { makePodDirectory, makeVolumes } from "./volumes.ts";
import type { SyncAsked, Synced, WorkerPorts } from "./worker.ts";

export interface SyncTurn extends Turn {
  readonly ports: WorkerPorts;
  /** What the runtime holds of it that is this daemon's own. */
  readonly seen: RuntimePod;
}

/**
 * One turn of a pod that lives. kubelet 1.36: kuberuntime SyncPod, behind makePodDataDirs and the volume manager, and
 * devicemanager.Allocate, which a kubelet does while it lets the pod in.
 */
export async function syncPod(
  ports: WorkerPorts,
  asked: SyncAsked,
  own: Pick<Turn, "places" | "runtime" | "events">,
): Promise<Synced> {
  const { pod, actions, signal } = asked;
  const seen = ownPartOf(asked.seen ?? nothingSeen(pod), ports.owner);
  const turn: SyncTurn = { ports, pod, seen, clock: ports.clock, signal, ...own };
  const end = (error: string | null): Synced => ({
    ...NOTHING,
    sandboxId: actions.sandboxId,
    error,
    isCut: signal.aborted,
  });
  if (actions.createSandbox && actions.sandboxId !== null)
    turn.events.normal("SandboxChanged", "Pod sandbox changed, it will be killed and re-created.");
  const killed = await kill(turn, asked);
  if (killed !== null || signal.aborted) return end(killed);
  const kept = await removeDead(turn, asked);
  const isStarting = actions.createSandbox || actions.initToStart.length + actions.toStart.length > 0;
  if (!isStarting || signal.aborted) return end(kept);
  const unready = await prepareDevices(ports.devices, pod, signal, startingOf(pod, actions));
  // a refusal is told even of a turn that was cut short: the pod holds its devices no more
  if (unready !== null && !(unready.keeps && signal.aborted)) return withoutDevices(turn, asked, unready);
  if (signal.aborted) return end(null);
  const unmade = await makeFiles(turn);
  if (unmade !== null || signal.aborted) return end(unmade);
  const sandbox = await sandboxOf(turn, asked);
  if (typeof sandbox === "string" || signal.aborted) return end(typeof sandbox === "string" ? sandbox : null);
  return startAll(turn, asked, sandbox);
}
const NOTHING = { started: [], faults: {}, undecided: [], refusal: null };

/** Whoever sends a refused pod back tells of it; of one that tries again it is told here. */
function withoutDevices(turn: SyncTurn, { actions, signal }: SyncAsked, { keeps, ...fault }: DeviceFault): Synced {
  if (keeps) turn.events.warning("Failed", `Error: ${fault.message}`);
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

/** Null: all is stopped that was to be. */
async function kill(turn: SyncTurn, { pod, actions }: SyncAsked): Promise<string | null> {
  const { ports, seen } = turn;
  const podIps = podAddresses(pod, { hostIPs: ports.node().hostIPs, podIPs: seen.sandboxes[0]?.ips ?? [] });
  const stopTurn = { ...turn, podIps };
  if (actions.killPod) {
    const errors = await stopPod(stopTurn, stopsOf(pod, seen), seen.sandboxes, restartGrace(pod));
    return errors.length === 0 ? null : errors.join(", ");
  }
  const containers = [...pod.spec.initContainers, ...pod.spec.containers];
  for (const { containerId, name, message, probe } of actions.toKill) {
    const container = containers.find((c) => c.name === name);
    const failed = probe === undefined ? null : (container?.probes[probe] ?? null);
    const stop: StopContainer = { containerId, name, message, waitsFor: [], preStop: container?.preStop ?? null };
    const fault = await stopContainer(stopTurn, stop, restartGrace(pod, failed));
    if (fault !== null)
      return `failed to "KillContainer" for "${name}" with KillContainerError: "${kubeletText(fault)}"`;
  }
  return null;
}

/** With their logs, as the kubelet does; one that cannot be removed is there the next time again. Null: all are removed. */
async function removeDead(
  { ports, pod, seen, runtime, signal }: SyncTurn,
  { actions }: SyncAsked,
): Promise<string | null> {
  let kept: string | null = null;
  for (const id of actions.toRemove) {
    if (signal.aborted) return kept;
    const container = seen.containers.find((c) => c.id === id);
    const logPath = container?.logPath ?? "";
    if (logPath !== "" && !removeContainerLog(ports.roots.podLogsDirectory, logPath).ok) continue;
    if (logPath !== "") ports.logLinks?.unlink({ pod, container: container?.name ?? "", id, log: logPath });
    const removed = await runtime.removeContainer(id);
    if (!removed.ok) kept = `failed to remove container "${id}": ${kubeletText(removed.error)}`;
  }
  return kept;
}

/** Null: they are made. */
async function makeFiles({ ports, pod, places, events }: SyncTurn): Promise<string | null> {
  const made = makePodDirectory(places, ports.owner);
  if (!made.ok) {
    const message = `error making pod data directories: ${made.error}`;
    events.warning("Failed", message);
    return message;
  }
  const faults = await makeVolumes(pod, places, ports.memoryBytes(pod), ports.mounter);
  const messages = faults.map(({ volume, message }) => `MountVolume.SetUp failed for volume "${volume}" : ${message}`);
  for (const message of messages) events.warning("FailedMount", message);
  return messages.length === 0 ? null : messages.join(", ");
}

/** The one that is there, or a new one; a text: why there is none. */
async function sandboxOf(turn: SyncTurn, { actions }: SyncAsked): Promise<Sandbox | string> {
  if (actions.createSandbox) return makeSandbox(turn, actions.attempt);
  const sandbox = turn.seen.sandboxes.find(({ id }) => id === actions.sandboxId);
  if (sandbox === undefined) return `sandbox \`${actions.sandboxId}\` is not this daemon's own`;
  const config = sandboxConfig(turn, sandbox.attempt);
  return config.ok ? { id: sandbox.id, ips: sandbox.ips, config: config.value } : config.error;
}

/** An init container that does not start holds all back that follow it, unless it is a sidecar. */
async function startAll(
  turn: SyncTurn,
  { pod, actions, valuesOf, signal }: SyncAsked,
  sandbox: Sandbox,
): Promise<Synced> {
  const { images, mounter, devices, logLinks, owner, node } = turn.ports;
  const of = {
    images,
    mounter,
    devices,
    logLinks,
    owner,
    node: node(),
    sandboxId: sandbox.id,
    sandboxConfig: sandbox.config,
  };
  const startTurn = { ...turn, ...of, podIps: sandbox.ips };
  const started: string[] = [];
  const undecided: string[] = [];
  const faults: Record<string, ContainerFault> = {};
  const start = async (container: PodContainer, attempt: number): Promise<boolean> => {
    const end = await startContainer(startTurn, { container, attempt, values: () => valuesOf(container.name) });
    if (end === "started") started.push(container.name);
    else if (end === "undecided") undecided.push(container.name);
    else if (end !== "cut") faults[container.name] = end;
    return end === "started";
  };
  const synced = (): Synced => ({
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
  wanted: readonly StartContainer[],
): readonly (readonly [PodContainer, number])[] =>
  wanted.flatMap(({ name, attempt }) => {
    const container = containers.find((c) => c.name === name);
    return container === undefined ? [] : [[container, attempt] as const];
  });
