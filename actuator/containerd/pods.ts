import { err, map, ok, type Result } from "../../api/base/result.ts";
import { type Connection, type ConnectionOptions, openConnection } from "./connection.ts";
import type {
  Exec,
  LocalImage,
  PodRuntime,
  RuntimeContainer,
  RuntimeFault,
  RuntimePods,
  RuntimeResult,
} from "./cri.ts";
import { askEach, faultText, isUnanswered, nullIfGone } from "./fault.ts";
import type { Container, ContainerConfig, CriMethod, CriRequest, Sandbox, TextMap } from "./messages.ts";
import {
  containerOf,
  type PodSandbox,
  podSandboxOf,
  podsOf,
  READY,
  timeMs,
  unreadableContainerOf,
} from "./pod-parts.ts";

/** Name and version of the runtime. */
interface RuntimeVersion {
  readonly name: string;
  readonly version: string;
}
type RuntimeCaller = Pick<Connection, "call">;

export async function runtimeVersion(connection: RuntimeCaller): RuntimeResult<RuntimeVersion> {
  const answer = await connection.call("Version", {});
  if (!answer.ok) return answer;
  return ok({ name: answer.value.runtimeName, version: answer.value.runtimeVersion });
}

/** The runtime's version, read once while the runtime answers: after an outage it may be another runtime. */
export class KnownVersion {
  readonly #connection: RuntimeCaller;
  /** The runtime's version; null: it does not answer. */
  current: RuntimeVersion | null = null;

  constructor(connection: RuntimeCaller) {
    this.#connection = connection;
  }

  /** Reads the version. `isAnswering`: the runtime has just answered other calls. */
  async refresh(isAnswering: boolean): Promise<void> {
    if (isAnswering && this.current !== null) return;
    const asked = isAnswering ? await runtimeVersion(this.#connection) : null;
    this.current = asked?.ok ? { name: asked.value.name, version: asked.value.version } : null;
  }
}

/** Interval between checks of readiness, as in the kubelet. */
const READINESS_MS = 5000;
/** The kubelet's message for each runtime condition, and its effect. kubelet 1.36: updateRuntimeUp. */
const NOT_READY = {
  RuntimeReady: ["container runtime not ready", "see the runtime's own log"],
  NetworkReady: [
    "container runtime network not ready",
    "pods with a network of their own do not start until CNI plugins and a configuration for them are installed, in the conf_dir of the runtime's configuration (usually /etc/cni/net.d); those on the machine's network do",
  ],
} as const;

/** The runtime's reasons for not running pods, as of the last check. */
export class KnownReadiness {
  readonly #connection: RuntimeCaller;
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  faults: readonly string[] = [];

  constructor(connection: RuntimeCaller) {
    this.#connection = connection;
  }

  /** Reads the conditions. `isAnswering`: the runtime has just answered other calls; if not, the callers report that. */
  async refresh(isAnswering: boolean): Promise<void> {
    if (isAnswering && performance.now() - this.#checkedAtMs < READINESS_MS) return;
    const asked = isAnswering ? await this.#connection.call("Status", { verbose: false }) : null;
    this.#checkedAtMs = asked === null ? Number.NEGATIVE_INFINITY : performance.now();
    const conditions = asked?.ok ? (asked.value.status?.conditions ?? []) : [];
    this.faults = conditions.flatMap(({ type, status, reason, message }) => {
      if (status || (type !== "RuntimeReady" && type !== "NetworkReady")) return [];
      const [words, advice] = NOT_READY[type];
      return [`${words}: ${type}=false reason:${reason} message:${message}; ${advice}`];
    });
  }
}

/** For large images over slow networks: the kubelet waits without a limit, and the runtime gives up if no data arrives. */
const LONGEST_PULL_MS = 60 * 60 * 1000;

/** The pods of a runtime over CRI v1. Connects at the first call. Error: what is wrong with the endpoint. */
export const openPodRuntime = (options: ConnectionOptions): Result<PodRuntime, string> =>
  map(openConnection(options), podRuntimeOver);

/**
 * A PodRuntime over a connection that is shared; `close` closes it. Deadlines as in the kubelet: the connection's, twice
 * that for a sandbox, plus the grace period or the command's own timeout. A runtime that is too old for a call answers
 * UNIMPLEMENTED.
 */
export function podRuntimeOver(connection: Connection): PodRuntime {
  const run = async <M extends CriMethod>(method: M, request: CriRequest<M>): RuntimeResult<null> => {
    const done = await connection.call(method, request);
    return done.ok ? ok(null) : done;
  };
  /** An object that is not there need not be stopped. */
  const end = async <M extends CriMethod>(method: M, request: CriRequest<M>, extraMs?: number): RuntimeResult<null> => {
    const done = await nullIfGone(connection.call(method, request, extraMs));
    return done.ok ? ok(null) : done;
  };
  return {
    pods: podLister(connection),
    runSandbox: async (config) =>
      map(await connection.call("RunPodSandbox", { config }, connection.timeoutMs), ({ podSandboxId }) => podSandboxId),
    stopSandbox: (podSandboxId) => end("StopPodSandbox", { podSandboxId }),
    removeSandbox: (podSandboxId) => end("RemovePodSandbox", { podSandboxId }),
    createContainer: async (podSandboxId, config, sandboxConfig) => {
      const served = await cdiServed(connection, config);
      if (!served.ok) return served;
      const created = await connection.call("CreateContainer", { podSandboxId, config, sandboxConfig });
      return map(created, ({ containerId }) => containerId);
    },
    startContainer: (containerId) => run("StartContainer", { containerId }),
    stopContainer: (containerId, timeout) => end("StopContainer", { containerId, timeout }, timeout * 1000),
    removeContainer: (containerId) => end("RemoveContainer", { containerId }),
    updateContainer: (containerId, linux) => run("UpdateContainerResources", { containerId, linux }),
    reopenLog: (containerId) => run("ReopenContainerLog", { containerId }),
    exec: (id, command, timeoutSeconds) => exec(connection, id, command, timeoutSeconds),
    image: (name) => imageOf(connection, name),
    pull: async (image) =>
      map(await connection.call("PullImage", { image: { image } }, LONGEST_PULL_MS), ({ imageRef }) => imageRef),
    close: connection.close,
  };
}

/** Runs a command. A process that takes too long is killed by the runtime, which reports DEADLINE_EXCEEDED. */
async function exec(
  connection: Connection,
  containerId: string,
  cmd: readonly string[],
  timeout: number,
): RuntimeResult<Exec> {
  const answer = await connection.call("ExecSync", { containerId, cmd, timeout }, timeout * 1000);
  return map(answer, ({ exitCode, stdout, stderr }) => ({ exitCode, stdout: textOf(stdout), stderr: textOf(stderr) }));
}
const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8");

async function imageOf(connection: Connection, name: string): RuntimeResult<LocalImage | null> {
  const answer = await nullIfGone(connection.call("ImageStatus", { image: { image: name } }));
  if (!answer.ok) return answer;
  const image = answer.value?.image ?? null;
  if (image === null) return ok(null);
  const { id, uid, username, size } = image;
  return ok({ id, user: uid?.value ?? (username || null), ...(size === "0" ? {} : { sizeBytes: Number(size) }) });
}

/**
 * Checks that a container may be created with its CDI devices. containerd before 1.7, and a later one whose
 * configuration disables them (as 1.7's default does), silently ignore them; here that is a fault of CreateContainer
 * that names the devices. Other runtimes are trusted. Without CDI devices nothing is checked.
 */
export async function cdiServed(
  connection: Pick<Connection, "call">,
  { CDIDevices = [] }: Pick<ContainerConfig, "CDIDevices">,
): RuntimeResult<null> {
  if (CDIDevices.length === 0) return ok(null);
  const [version, status] = await Promise.all([
    runtimeVersion(connection),
    connection.call("Status", { verbose: true }),
  ]);
  if (!version.ok) return version;
  if (!status.ok) return status;
  if (version.value.name !== "containerd") return ok(null);
  const why = whyNot(version.value.version, status.value.info);
  if (why === null) return ok(null);
  const message = `CDI devices (${CDIDevices.map(({ name }) => name).join(", ")}): containerd ${version.value.version} ${why}`;
  return err({ call: "CreateContainer", code: "FAILED_PRECONDITION", message });
}

function whyNot(version: string, info: TextMap): string | null {
  const isOn = enableCdi(info);
  // 2.3 reports null for its default, later versions have no such option; both mean on
  if (isOn ?? isSinceCdi(version)) return null;
  return isOn === false
    ? "has them off: set `enable_cdi = true` in its config.toml"
    : "does not know them, and would start the container without: 1.7 does";
}

/** The configured value; undefined: not reported. */
function enableCdi({ config = "null" }: TextMap): boolean | undefined {
  try {
    const enableCDI = (JSON.parse(config) as { readonly enableCDI?: unknown } | null)?.enableCDI;
    return typeof enableCDI === "boolean" ? enableCDI : undefined;
  } catch {
    return undefined;
  }
}

/** `1.7.27`, `v2.1.4`, `1.6.20~ds1`; one that cannot be read is not. */
function isSinceCdi(version: string): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)\b/.exec(version) ?? [];
  return Number(major) > 1 || (Number(major) === 1 && Number(minor) >= 7);
}

/** An object's last status and its state at that time; without a state, the status must be read again. */
interface KnownStatus<T> {
  readonly state: string | null;
  readonly status: T;
}
type KnownItems<T> = Map<string, KnownStatus<T>>;

/**
 * Lists everything that a runtime has, by pod. Only lists are read each time. Details that they lack (times, exit
 * codes, logs, addresses) are read once per object and state, so an idle node costs two calls; while nothing changes,
 * the same objects are returned.
 *
 * A failed list, or a status call without an answer, fails the whole. Objects that have disappeared are left out. If
 * the runtime refuses to report one object, its last known details stay, and are read again later.
 */
function podLister(connection: Connection): () => RuntimeResult<RuntimePods> {
  let sandboxes: KnownItems<PodSandbox> = new Map();
  let containers: KnownItems<RuntimeContainer> = new Map();
  /** INVARIANT: equal to the content of the two maps, or undefined. */
  let last: RuntimePods | undefined;

  return async () => {
    const [sandboxList, containerList] = await Promise.all([
      connection.call("ListPodSandbox", {}),
      connection.call("ListContainers", {}),
    ]);
    if (!sandboxList.ok) return sandboxList;
    if (!containerList.ok) return containerList;
    const ofSandboxes = compare(sandboxList.value.items, sandboxes);
    const ofContainers = compare(containerList.value.containers, containers);
    if (last !== undefined && ofSandboxes.isSame && ofContainers.isSame) return ok(last);

    const fault =
      (await askEach(ofSandboxes.changed, (sandbox) => askSandbox(connection, sandbox, ofSandboxes.seen))) ??
      (await askEach(ofContainers.changed, (container) =>
        askContainer(connection, container, ofContainers.seen, containers.get(container.id)),
      ));
    if (fault !== undefined) {
      // after a failure, statuses that were read are kept
      for (const [id, known] of ofSandboxes.seen) sandboxes.set(id, known);
      for (const [id, known] of ofContainers.seen) containers.set(id, known);
      last = undefined;
      return { ok: false, error: fault };
    }
    sandboxes = ofSandboxes.seen;
    containers = ofContainers.seen;
    last = podsOf(statusOf(sandboxes), statusOf(containers));
    return ok(last);
  };
}

/** Splits a list into objects whose status is known for their state, and objects whose status must be read. */
function compare<L extends { readonly id: string; readonly state: string }, T>(
  listed: readonly L[],
  known: KnownItems<T>,
) {
  const seen: KnownItems<T> = new Map();
  const changed: L[] = [];
  for (const one of listed) {
    const before = known.get(one.id);
    if (before?.state === one.state) seen.set(one.id, before);
    else changed.push(one);
  }
  return { seen, changed, isSame: changed.length === 0 && seen.size === known.size };
}

function* statusOf<T>(seen: KnownItems<T>): Generator<T> {
  for (const { status } of seen.values()) yield status;
}

/** Reads a sandbox; only a ready one has addresses. */
async function askSandbox(
  connection: Connection,
  listed: Sandbox,
  seen: KnownItems<PodSandbox>,
): Promise<RuntimeFault | undefined> {
  const observed = (state: string | null, status: PodSandbox): undefined => {
    seen.set(listed.id, { state, status });
  };
  if (listed.state !== READY) return observed(listed.state, podSandboxOf(listed, null));
  const answer = await nullIfGone(connection.call("PodSandboxStatus", { podSandboxId: listed.id }));
  if (!answer.ok) {
    if (isUnanswered(answer.error)) return answer.error;
    return observed(null, podSandboxOf(listed, null));
  }
  const status = answer.value?.status ?? null;
  if (status === null) return undefined;
  const { state, network } = status;
  return observed(state, podSandboxOf(listed, state === READY ? network : null, state));
}

async function askContainer(
  connection: Connection,
  listed: Container,
  seen: KnownItems<RuntimeContainer>,
  before: KnownStatus<RuntimeContainer> | undefined,
): Promise<RuntimeFault | undefined> {
  const observed = (state: string | null, status: RuntimeContainer): undefined => {
    seen.set(listed.id, { state, status });
  };
  const answer = await nullIfGone(connection.call("ContainerStatus", { containerId: listed.id }));
  if (!answer.ok) {
    if (isUnanswered(answer.error)) return answer.error;
    return observed(null, before?.status ?? unreadableContainerOf(listed, faultText(answer.error)));
  }
  const status = answer.value?.status ?? null;
  return status === null ? undefined : observed(status.state, containerOf(listed, status));
}

/** Bytes that a container wrote on top of its image, as the runtime measured them last. */
interface LayerUsage {
  readonly usedBytes: number;
  readonly inodesUsed: number;
  readonly measuredAtMs: number;
}

/**
 * Container id -> its writable layer, including ended containers. A new one appears after the runtime's next
 * measurement: 10 s in containerd.
 */
export async function containerLayers(connection: Connection): RuntimeResult<ReadonlyMap<string, LayerUsage>> {
  const answer = await connection.call("ListContainerStats", {});
  if (!answer.ok) return answer;
  const layers = new Map<string, LayerUsage>();
  for (const { attributes, writableLayer } of answer.value.stats) {
    const measuredAtMs = timeMs(writableLayer?.timestamp ?? "");
    if (attributes === null || writableLayer === null || measuredAtMs === null) continue;
    layers.set(attributes.id, {
      usedBytes: Number(writableLayer.usedBytes?.value ?? 0),
      inodesUsed: Number(writableLayer.inodesUsed?.value ?? 0),
      measuredAtMs,
    });
  }
  return ok(layers);
}
