import { join } from "node:path";
import type { DecisionAnswer, DecisionClient, Problem } from "../../../actuator/core/interfaces.ts";
import { clientOf } from "../../../actuator/daemon/client-of.ts";
import { readConfiguration } from "../../../actuator/daemon/configuration-file.ts";
import { SOCKET_NAME } from "../../../actuator/deviceplugin/names.ts";
import type { PodContainer, RunnablePod } from "../../../actuator/lifecycle/pod.ts";
import { runnablePod } from "../../../actuator/lifecycle/spec/pod-spec.ts";
import type { MachineFacts } from "../../../actuator/machine/facts.ts";
import { observeMachine } from "../../../actuator/machine/observe.ts";
import { type PodObject, staticPodOf } from "../../../actuator/manifests/pods-of.ts";
import { driverOf, snapshotOf } from "../../../actuator/pass/snapshot.ts";
import { kubeletsDevices } from "../../../actuator/pods/admission/foreign-sandboxes.ts";
import { DEVICE_CHECKPOINT } from "../../../actuator/pods/devices/checkpoint-entries.ts";
import type { DeviceManager } from "../../../actuator/pods/devices/device-manager.ts";
import { openDeviceManager } from "../../../actuator/pods/devices/device-manager.ts";
import { deviceRequirements } from "../../../actuator/pods/devices/device-requirements.ts";
import { readDeviceCheckpoint } from "../../../actuator/pods/devices/manager-files.ts";
import { systemClock } from "../../../actuator/pods/pod-clock.ts";
import { type Fields, isObject } from "../../base/own.ts";
import { ok, type Result } from "../../base/result.ts";
import type { DevicesDecision } from "../../model/devices.ts";
import { profileOf } from "../../profiles/index.ts";
import { printable } from "../../text/style.ts";
import { table } from "../../text/table.ts";
import type { Cli } from "../cli.ts";
import { readPods } from "../inputs/pods.ts";
import { EXIT, type Fault, fault, type Outcome, printData, printText, stopSignal, type Terminal } from "../terminal.ts";
import { type AllocateFlags, type ContainerAllocation, containerAllocations } from "./container-devices.ts";
import type { KnownPod } from "./place.ts";
import { type DevicePaths, openPlace } from "./place.ts";

const FILE = "kubelet_internal_checkpoint";

/**
 * Carries out a decision: first the pod is stored, then its devices are written to the checkpoint, then plugins are asked for what
 * comes with them. After a crash, the same command continues. Errors: the decision refuses, or a plugin does, and the devices are
 * freed again.
 */
async function give(work: AllocationRun, { decision, next }: DevicesAnswer): Promise<Result<null, Fault>> {
  const { asked, place, manager, waiting } = work;
  const { pods, files } = place;
  const { pod } = asked;
  const name = `${pod.namespace}/${pod.name}`;
  if (decision.startErrors.length > 0)
    return fault(
      EXIT.negative,
      ...decision.startErrors.map((error) => `the kubelet does not start: ${printable(error)}`),
    );
  if (decision.refusal !== null) return refused(name, decision.refusal);
  if (waiting.isStopped) return waiting.stopped();
  const { namespace, uid, object } = pod;
  const known: KnownPod = { namespace, name: pod.name, uid, isReady: isReady(work), pod: { ...object } };
  const noted = pods.put(known);
  if (!noted.ok) return fault(EXIT.failed, noted.error);
  // the decision's CPUs and memory are not used: this command runs no pod
  const text = (manager.withResponses(next) as { readonly assignments?: Readonly<Record<string, string>> } | null)
    ?.assignments?.[FILE];
  const kept = files.persist({ assignments: text === undefined ? {} : { [FILE]: text } });
  if (!kept.ok) return fault(EXIT.failed, kept.error);
  manager.update(pods.uids);
  const prepared = await manager.allocate(pod, waiting.signal);
  if (!prepared.ok) {
    if (prepared.error.keeps === true)
      return fault(
        EXIT.failed,
        `${printable(prepared.error.message)}: ${name} keeps its devices: run the command again`,
      );
    const removed = pods.remove(uid);
    return removed.ok ? refused(name, prepared.error) : fault(EXIT.failed, removed.error);
  }
  return known.isReady ? ok(null) : makeReady(work, known);
}

/** Makes the calls that plugins require before containers start. They may reset devices, so they are made once. */
async function makeReady({ asked, place, manager }: AllocationRun, known: KnownPod): Promise<Result<null, Fault>> {
  for (const container of asked.containers) {
    const started = await manager.runContainerOptions(asked.pod, container);
    if (started.ok) continue;
    const why = `container ${container.name}: ${started.error.message}`;
    return fault(EXIT.failed, `${printable(why)}: the pod keeps its devices: run the command again, or free them`);
  }
  const noted = place.pods.put({ ...known, isReady: true });
  return noted.ok ? ok(null) : fault(EXIT.failed, noted.error);
}

/** Whether the pod already has its devices, with responses that are still valid after a reboot. */
function isReady({ asked, place }: AllocationRun): boolean {
  const { uid } = asked.pod;
  const read = readDeviceCheckpoint(place.files);
  const own = (read.ok ? (read.value?.entries ?? []) : []).filter(({ podUid }) => podUid === uid);
  return place.pods.byHand.get(uid)?.isReady === true && own.length > 0 && own.every((e) => e.allocResp !== null);
}

const refused = (name: string, { reason, message }: { readonly reason: string; readonly message: string }) =>
  fault(EXIT.negative, `refused: ${printable(`${name}: ${reason}: ${message}`)}`);

/** How often to check, since the end of a grace period is no event. */
const POLL_INTERVAL_MS = 500;

/** Waits for plugins, until a signal. */
class PluginWaiter {
  readonly #manager: Pick<DeviceManager, "version" | "onChange">;
  /** Aborted by a signal. */
  readonly signal: AbortSignal;

  constructor(manager: Pick<DeviceManager, "version" | "onChange">, signal: AbortSignal) {
    this.#manager = manager;
    this.signal = signal;
  }

  get isStopped(): boolean {
    return this.signal.aborted;
  }
  stopped(): Result<never, Fault> {
    return fault(EXIT.failed, "stopped: no device was allocated to the pod");
  }

  /** Waits for a change since `version`, at most half a second. */
  async change(version: number): Promise<void> {
    if (this.#manager.version !== version || this.isStopped) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const done = (): void => resolve();
    const timer = setTimeout(done, POLL_INTERVAL_MS);
    const unlisten = this.#manager.onChange(done);
    this.signal.addEventListener("abort", done, { once: true });
    await promise;
    this.signal.removeEventListener("abort", done);
    clearTimeout(timer);
    unlisten();
  }
}

/** One allocation. */
interface AllocationRun {
  readonly asked: AskedPod;
  readonly place: DevicePaths;
  readonly manager: DeviceManager;
  readonly waiting: PluginWaiter;
  readonly machine: () => MachineFacts;
}

/** `nodewise devices allocate`: allocates a pod's devices, and prints what its containers must be started with. */
export async function allocate(given: AllocateFlags, { terminal, env }: Cli): Promise<Outcome> {
  const stop = new AbortController();
  void stopSignal().then(() => stop.abort());
  const place = await openPlace(given, env);
  if (!place.ok) return place;
  try {
    const asked = await readAskedPod(given.pod, place.value.config.nodeName);
    if (!asked.ok) return asked;
    const former = formerOf(asked.value, place.value);
    if (former !== null) return fault(EXIT.badInput, former);
    const opened = await openHost(place.value, given.wait, terminal);
    if (!opened.ok) return opened;
    try {
      return await allocateWith(asked.value, place.value, opened.value, stop.signal, given, terminal);
    } finally {
      opened.value.close();
    }
  } finally {
    place.value.release();
  }
}

/** Why a pod of this name gets no devices; null if it may. */
function formerOf({ pod }: AskedPod, { pods }: DevicePaths): string | null {
  const name = `${pod.namespace}/${pod.name}`;
  if (pods.ofDaemon.has(pod.uid))
    return `${name} is run by the daemon of this state directory, which allocates its devices itself`;
  const other = [...pods.byHand.values()].find(
    (one) => one.namespace === pod.namespace && one.name === pod.name && one.uid !== pod.uid,
  );
  if (other === undefined) return null;
  return `${name} has devices as another pod (uid ${other.uid}, this is ${pod.uid}): \`nodewise devices free ${other.uid}\` first`;
}

async function openHost(
  place: DevicePaths,
  waitSeconds: number,
  terminal: Terminal,
): Promise<Result<DeviceManager, Fault>> {
  const { config, files, bootId } = place;
  const opened = await openDeviceManager({
    pluginDir: config.devicePluginsDirectory,
    registryDir: config.pluginsRegistryDirectory,
    stateDir: config.stateDir,
    files,
    clock: systemClock,
    bootId,
    waitMs: waitSeconds * 1000,
    onProblem: reportTo(terminal),
  });
  if (opened.ok) return opened;
  const advice =
    "--device-plugins-directory names another; where a kubelet or a daemon runs the pods, it allocates the devices";
  return fault(EXIT.cannotRun, opened.error, advice);
}
const reportTo =
  (terminal: Terminal) =>
  ({ from, message }: Problem): void =>
    terminal.warn(`nodewise: ${printable(`${from}: ${message}`)}`);

async function allocateWith(
  asked: AskedPod,
  place: DevicePaths,
  manager: DeviceManager,
  stop: AbortSignal,
  given: AllocateFlags,
  terminal: Terminal,
): Promise<Outcome> {
  const { config, files, pods } = place;
  const configuration = await readConfiguration(config.kubeletConfiguration, profileOf(config.kubeletVersion));
  if (!configuration.ok) return fault(EXIT.badInput, configuration.error.message);
  const client = clientOf({ config, onProblem: reportTo(terminal) }, "outbox-devices.jsonl");
  if (!client.ok) return fault(EXIT.badInput, client.error);
  const waiting = new PluginWaiter(manager, stop);
  const machine = () => observeMachine({ kubeletDirectory: config.kubeletDir });
  const work: AllocationRun = { asked, place, manager, waiting, machine };
  const came = await pluginsCome(work, join(config.devicePluginsDirectory, SOCKET_NAME), terminal);
  if (!came.ok) return came;
  const answer = await decideDevices(work, client.value, configuration.value);
  if (!answer.ok) return answer;
  warnOfKubelets(asked, config.devicePluginsDirectory, terminal);
  const done = await give(work, answer.value);
  manager.update(pods.uids);
  for (const problem of manager.problems()) reportTo(terminal)(problem);
  if (!done.ok) return done;
  const read = readDeviceCheckpoint(files);
  if (!read.ok) return fault(EXIT.failed, read.error.message);
  const names = asked.containers.map(({ name }) => name);
  const gifts = read.value === undefined ? [] : containerAllocations(read.value, asked.pod.uid, names);
  print(asked, config.nodeName, gifts, given, terminal);
  return ok(EXIT.ok);
}

/** The runtime is not queried here, so pods with devices from a kubelet may or may not still run. */
function warnOfKubelets({ resources }: AskedPod, pluginsDirectory: string, terminal: Terminal): void {
  const given = kubeletsDevices(pluginsDirectory);
  if (!given.ok) terminal.warn(`nodewise: the devices of a kubelet's pods are not known: ${given.error}`);
  const held = given.ok ? given.value.filter(({ resourceName }) => resources.includes(resourceName)) : [];
  if (held.length === 0) return;
  const pods = [...new Set(held.map(({ podUid }) => podUid))];
  const named = [...new Set(held.map(({ resourceName }) => resourceName))].join(", ");
  terminal.warn(
    `nodewise: a kubelet gave devices of ${named} to pods ${pods.join(", ")} (${join(pluginsDirectory, DEVICE_CHECKPOINT)}): where these still run, the same device may be allocated twice; end them first`,
  );
}

/** Waits until the plugins of all its resources have listed their devices. Errors: a timeout; a signal. */
async function pluginsCome(
  { asked, manager, waiting }: AllocationRun,
  socketPath: string,
  terminal: Terminal,
): Promise<Result<null, Fault>> {
  let lastMessage = "";
  for (;;) {
    const version = manager.version;
    const why = manager.whyPending(asked.pod);
    if (why === null) return ok(null);
    if (why.isReported) {
      const advice = `is it running, and does it register at ${socketPath}? --wait gives it longer`;
      return fault(EXIT.negative, `${printable(why.message)}: ${advice}`);
    }
    if (why.message !== lastMessage) terminal.warn(`nodewise: ${printable(why.message)} (at ${socketPath})`);
    lastMessage = why.message;
    await waiting.change(version);
    if (waiting.isStopped) return waiting.stopped();
  }
}

function print(
  { pod }: AskedPod,
  node: string,
  containers: readonly ContainerAllocation[],
  { output }: AllocateFlags,
  terminal: Terminal,
): void {
  const { namespace, name, uid } = pod;
  if (output !== "table") {
    printData(terminal, { node, pod: { namespace, name, uid }, containers }, output);
    return;
  }
  printText(terminal, terminal.paint("green", `allocated: ${printable(`${namespace}/${name}`)}\n\n`));
  printText(terminal, allocationsTable(containers, terminal));
}

/** Each container's devices, followed by what the runtime has to be given with them. */
function allocationsTable(gifts: readonly ContainerAllocation[], { columns: width, paint }: Terminal): string {
  const columns = [
    { title: "CONTAINER", shrinkTo: 10 },
    { title: "GETS" },
    { title: "", shrinkTo: 14 },
    { title: "", shrinkTo: 14 },
    { title: "" },
  ] as const;
  const rows = gifts.flatMap((gift) =>
    linesOf(gift).map((line, i) => ({
      cells: [i === 0 ? printable(gift.container) : "", ...line.map(printable)],
      notes: [],
    })),
  );
  const conflicts = gifts.flatMap(({ container, conflicts: found }) =>
    found.map(({ kind, name, kept, dropped }) =>
      paint(
        "yellow",
        `${printable(`container ${container}: ${kind} ${name} of ${kept.resource} stays, that of ${dropped.resource} (${dropped.value}) is dropped`)}\n`,
      ),
    ),
  );
  return table(columns, rows, width, paint) + conflicts.join("");
}

type Line = readonly [what: string, name: string, value: string, more: string];
const linesOf = ({
  resources,
  devices,
  mounts,
  envs,
  annotations,
  cdiDevices,
}: ContainerAllocation): readonly Line[] => [
  ...resources.map(({ resource, ids, numa }): Line => {
    return ["devices", resource, ids.join(" "), numa.length === 0 ? "" : `NUMA ${numa.join("+")}`];
  }),
  ...devices.map(({ pathInContainer, pathOnHost, permissions }): Line => {
    return ["device node", pathInContainer, `from ${pathOnHost}`, permissions];
  }),
  ...mounts.map(({ containerPath, hostPath, readOnly }): Line => {
    return ["mount", containerPath, `from ${hostPath}`, readOnly ? "read-only" : ""];
  }),
  ...envs.map(({ name, value }): Line => ["env", name, value, ""]),
  ...annotations.map(({ name, value }): Line => ["annotation", name, value, ""]),
  ...cdiDevices.map((name): Line => ["CDI device", name, "", ""]),
];

interface AskedPod {
  readonly pod: RunnablePod;
  /** Init containers first, in order of start. */
  readonly containers: readonly PodContainer[];
  /** Names of the extended resources that the pod requests. */
  readonly resources: readonly string[];
}

/**
 * The one pod of a file. Features that nodewise does not support for pods that it runs (probes, secrets) are accepted, as
 * something else starts the containers. Errors: no pod, several, or one that requests no device.
 */
async function readAskedPod(file: string, nodeName: string): Promise<Result<AskedPod, Fault>> {
  const read = await readPods(file, nodeName, { mayBePage: true });
  if (!read.ok) return read;
  const [written, second] = read.value.written;
  if (written === undefined || second !== undefined)
    return fault(EXIT.badInput, `--pod: ${file} holds ${read.value.pods.length} pods: give a file with one`);
  const object = named(written as PodObject, nodeName);
  const checked = runnablePod(withDevicesOnly(object));
  if (!checked.ok)
    return fault(EXIT.badInput, ...checked.error.map(({ path, message }) => `${file}: ${path}: ${message}`));
  const pod = { ...checked.value, object };
  const resources = new Set([...deviceRequirements(pod).values()].flatMap((amounts) => [...amounts.keys()]));
  if (resources.size === 0) {
    const advice = "give a container `resources: {limits: {vendor.com/gpu: 1}}`";
    return fault(EXIT.badInput, `${file}: ${pod.namespace}/${pod.name} asks for no device: ${advice}`);
  }
  const { initContainers, containers } = pod.spec;
  return ok({ pod, containers: [...initContainers, ...containers], resources: [...resources].sort() });
}

/** A manifest as a static pod, with a uid that does not depend on the file's place. */
function named(written: PodObject, nodeName: string): Fields {
  const { namespace, uid } = staticPodOf(written, nodeName, "").metadata;
  return { apiVersion: "v1", kind: "Pod", ...written, metadata: { ...written.metadata, namespace, uid } };
}

/** Keeps the parts of a v1.Pod that concern devices; parts of the wrong form stay, so that they are reported. */
function withDevicesOnly(object: Fields): unknown {
  const { apiVersion, kind, metadata, spec } = object;
  const of = (value: unknown, ...names: readonly string[]): unknown =>
    isObject(value) ? Object.fromEntries(names.flatMap((name) => (name in value ? [[name, value[name]]] : []))) : value;
  const each = (list: unknown, ...names: readonly string[]): unknown =>
    Array.isArray(list) ? list.map((container) => of(container, "name", "image", "resources", ...names)) : list;
  if (!isObject(spec)) return { apiVersion, kind, metadata, spec };
  const containers = each(spec["containers"]);
  const initContainers = each(spec["initContainers"], "restartPolicy");
  return { apiVersion, kind, metadata: of(metadata, "name", "namespace", "uid"), spec: { containers, initContainers } };
}

interface DevicesAnswer extends DecisionAnswer {
  readonly decision: DevicesDecision;
}

/**
 * Decides `devices` for the pod, repeatedly until plugins have answered all GetPreferredAllocation calls. Errors: no answer at
 * all; a signal. kubelet 1.36: devicesToAllocate.
 */
async function decideDevices(
  work: AllocationRun,
  client: DecisionClient,
  configuration: unknown,
): Promise<Result<DevicesAnswer, Fault>> {
  const { asked, manager, waiting } = work;
  const { pod } = asked;
  for (;;) {
    const version = manager.version;
    const asks = await client.decide("devices", snapshotFor(work, configuration), { pod: pod.object });
    if (!asks.ok) return fault(EXIT.failed, asks.error.message);
    const answer = asks.value as DevicesAnswer;
    const { unanswered } = answer.decision;
    const asksPreferred =
      unanswered.length > 0 && manager.isChosenByPlugin(pod) && manager.askPreferred(pod.uid, unanswered);
    if (!asksPreferred) {
      manager.forget(pod.uid);
      await client.commit(answer);
      return ok(answer);
    }
    await waiting.change(version);
    if (waiting.isStopped) return waiting.stopped();
  }
}

function snapshotFor({ asked, manager, place, machine }: AllocationRun, kubeletConfiguration: unknown) {
  const { config, files, pods } = place;
  const { uid } = asked.pod;
  const { assignments } = files.read();
  const profile = profileOf(config.kubeletVersion);
  return snapshotOf({
    machine: machine(),
    profile,
    kubeletConfiguration,
    pods: pods.objectsBut(uid),
    nodeName: config.nodeName,
    cgroup: { driver: driverOf(kubeletConfiguration, profile), root: config.cgroupMount },
    ...manager.snapshot(uid),
    ...(assignments === undefined ? {} : { assignments }),
  });
}
