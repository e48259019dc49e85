import { statSync } from "node:fs";
import { type Connection, openConnection } from "../../../actuator/containerd/connection.ts";
import type { RuntimeContainer, RuntimePod, RuntimePods } from "../../../actuator/containerd/cri.ts";
import { faultText } from "../../../actuator/containerd/fault.ts";
import type { CriAnswer, CriMethod, CriRequest } from "../../../actuator/containerd/messages.ts";
import { podSandboxOf, podsOf, unreadableContainerOf } from "../../../actuator/containerd/pod-parts.ts";
import { DEFAULT_ENDPOINT, socketPathOf } from "../../../actuator/core/addresses.ts";
import { nearNames } from "../../base/near-name.ts";
import { ok, type Result } from "../../base/result.ts";
import { printable } from "../../text/style.ts";
import { configOf } from "../actuator/settings.ts";
import { type Cli, DEFAULT_STATUS_URL } from "../cli.ts";
import { type SourceFlags, statusSource } from "../inputs/daemon-status.ts";
import { EXIT, type Fault, fault, type Outcome } from "../terminal.ts";

/** Runs work with a connection to the runtime of the options. Errors: a fault of the endpoint, or of the option that names it. */
export async function withRuntime<G extends ContainerFlags>(
  given: G,
  cli: Cli,
  work: (connection: Connection, given: WithEndpoint<G>) => Promise<Outcome>,
): Promise<Outcome> {
  const endpoint = await endpointOf(given, cli);
  if (!endpoint.ok) return endpoint;
  const connection = openConnection({ endpoint: endpoint.value });
  if (!connection.ok) return fault(EXIT.badInput, `--runtime-endpoint: ${connection.error}`);
  try {
    return await work(connection.value, { ...given, runtimeEndpoint: endpoint.value });
  } finally {
    connection.value.close();
  }
}

/**
 * The endpoint of the option, or else of the settings file, of the daemon, or the default, which is printed. An explicitly named
 * daemon that does not respond is an error: another runtime may have another pod of the same name.
 */
async function endpointOf(given: ContainerFlags, cli: Cli): Promise<Result<string, Fault>> {
  const { runtimeEndpoint, settings, stateDir, statusUrl } = given;
  if (runtimeEndpoint !== undefined) return ok(runtimeEndpoint);
  if (settings !== undefined) {
    const config = await configOf({ settings, removeOrphans: true }, cli.env);
    return config.ok ? ok(config.value.runtimeEndpoint) : fault(EXIT.badInput, ...config.error);
  }
  const source = statusSource(given, cli);
  if (!source.ok) return source;
  const seen = await source.value();
  if (!seen.ok && (stateDir !== undefined || statusUrl !== DEFAULT_STATUS_URL)) return seen;
  const reported = seen.ok ? seen.value.status.runtimeEndpoint : undefined;
  if (reported !== undefined) return ofRoot(reported);
  const why = seen.ok ? "the daemon is an older one, which does not report its runtime" : "no daemon answers";
  cli.terminal.warn(
    `nodewise: ${why}: asking the runtime at ${DEFAULT_ENDPOINT} (name another with --runtime-endpoint, or with the daemon's --settings)`,
  );
  return ok(DEFAULT_ENDPOINT);
}

/** If the daemon is not running, anybody may listen at its status address, so a socket of another user is rejected. */
function ofRoot(endpoint: string): Result<string, Fault> {
  const path = socketPathOf(endpoint);
  if (!path.ok) return fault(EXIT.failed, `the daemon's status: ${printable(path.error)}`);
  const owner = ownerOf(path.value);
  if (owner === undefined || owner === 0 || owner === process.geteuid?.()) return ok(endpoint);
  return fault(
    EXIT.failed,
    `the daemon's status names the runtime at ${printable(endpoint)}, whose socket belongs to user ${owner}: if that is right, name it with --runtime-endpoint`,
  );
}

/** The owner of a file; undefined if it is missing or unreadable, which a later call reports. */
function ownerOf(path: string): number | undefined {
  try {
    return statSync(path).uid;
  } catch {
    return undefined;
  }
}

/** A call's response, or its fault as a readable line. */
export async function ask<M extends CriMethod>(
  connection: Connection,
  method: M,
  request: CriRequest<M>,
): Promise<Result<CriAnswer<M>, Fault>> {
  const answer = await connection.call(method, request);
  return answer.ok ? answer : fault(EXIT.failed, faultText(answer.error));
}

/** Lists the runtime's pods. Containers have their states, but nothing from their statuses. */
export async function runtimePods(connection: Connection): Promise<Result<RuntimePods, Fault>> {
  const [sandboxes, containers] = await Promise.all([
    ask(connection, "ListPodSandbox", {}),
    ask(connection, "ListContainers", {}),
  ]);
  if (!sandboxes.ok) return sandboxes;
  if (!containers.ok) return containers;
  const all = podsOf(
    sandboxes.value.items.map((sandbox) => podSandboxOf(sandbox, null)),
    containers.value.containers.map((container) => unreadableContainerOf(container, "")),
  );
  return ok(all);
}

/**
 * The runtime's pod of a name (NAMESPACE/NAME, or NAME); the newest if there are several. Errors: there is none, or there are
 * several in different namespaces.
 */
export async function findPod(
  connection: Connection,
  wanted: string,
  { namespace, runtimeEndpoint }: Pick<WithEndpoint<ContainerFlags>, "namespace" | "runtimeEndpoint">,
): Promise<Result<RuntimePod, Fault>> {
  const held = await runtimePods(connection);
  if (!held.ok) return held;
  const pods = [...held.value.values()].filter((pod) => namespace === undefined || pod.namespace === namespace);
  const found = pods.filter((pod) => wanted === nameOf(pod) || wanted === pod.name).sort(newestFirst);
  const names = [...new Set(found.map(nameOf))].sort();
  const [newest] = found;
  if (names.length > 1)
    return fault(EXIT.badInput, `\`${printable(wanted)}\` is the name of ${names.join(" and of ")}: name one of them`);
  if (newest !== undefined) return ok(newest);
  const where = namespace === undefined ? "" : ` of namespace \`${printable(namespace)}\``;
  return fault(
    EXIT.badInput,
    `the runtime at ${printable(runtimeEndpoint)} holds no pod \`${printable(wanted)}\`${where}:${suggestionText(wanted, pods)} \`nodewise pods\` lists those of this node, and why one does not run`,
  );
}
export const nameOf = ({ namespace, name }: RuntimePod): string => printable(`${namespace}/${name}`);
const newestFirst = (a: RuntimePod, b: RuntimePod): number =>
  (b.sandboxes[0]?.createdAtMs ?? 0) - (a.sandboxes[0]?.createdAtMs ?? 0);

/** A suggestion; a static pod's name ends with the node's name. */
function suggestionText(wanted: string, pods: readonly RuntimePod[]): string {
  const names = [
    ...new Set(pods.map((pod) => (wanted.includes("/") ? `${pod.namespace}/${pod.name}` : pod.name))),
  ].sort();
  const begin = wanted === "" ? [] : names.filter((name) => name.startsWith(`${wanted}-`)).slice(0, 3);
  const near = begin.length > 0 ? begin : nearNames(wanted, names);
  return near.length === 0 ? "" : ` is it ${near.map((name) => `\`${printable(name)}\``).join(" or ")}?`;
}

/** The pod's containers by name, newest instance first; names in order of creation. */
export function instancesOf({ containers }: RuntimePod): ReadonlyMap<string, readonly RuntimeContainer[]> {
  const byName = new Map<string, RuntimeContainer[]>();
  for (const container of containers.toReversed()) {
    const same = byName.get(container.name);
    if (same === undefined) byName.set(container.name, [container]);
    else same.unshift(container);
  }
  return byName;
}

/**
 * The name of the container: the given one, or the only one. Only a daemon knows which are init containers; if it responds, the
 * only other one is meant. Errors in the API server's words, with all names.
 */
export async function containerOf(pod: RuntimePod, given: ContainerFlags, cli: Cli): Promise<Result<string, Fault>> {
  const names = [...instancesOf(pod).keys()];
  const { container } = given;
  if (container !== undefined) {
    if (names.includes(container)) return ok(container);
    const has = names.length === 0 ? "no container in the runtime" : names.map(printable).join(", ");
    return fault(EXIT.badInput, `container ${printable(container)} is not valid for pod ${nameOf(pod)}: it has ${has}`);
  }
  const [only] = names;
  if (only === undefined)
    return fault(
      EXIT.failed,
      `pod ${nameOf(pod)} has no container in the runtime: \`nodewise pods ${nameOf(pod)}\` says why`,
    );
  if (names.length === 1) return ok(only);
  const init = await initContainers(pod, given, cli);
  const others = names.filter((name) => !init.has(name));
  if (others.length === 1) return ok(others[0] as string);
  const ofInit = names.filter((name) => init.has(name));
  const more = ofInit.length === 0 ? "" : ` or one of the init containers: [${ofInit.map(printable).join(" ")}]`;
  return fault(
    EXIT.badInput,
    `a container name must be specified for pod ${nameOf(pod)}, choose one of: [${others.map(printable).join(" ")}]${more}, with -c`,
  );
}

async function initContainers(pod: RuntimePod, given: ContainerFlags, cli: Cli): Promise<ReadonlySet<string>> {
  const source = statusSource(given, cli);
  const seen = source.ok ? await source.value() : source;
  const row = seen.ok ? seen.value.status.pods.find(({ uid }) => uid === pod.uid) : undefined;
  return new Set(row?.containers.filter(({ kind }) => kind === "init").map(({ name }) => name));
}

/** The options that select a container of a pod. */
interface ContainerFlags extends SourceFlags {
  readonly namespace?: string;
  readonly container?: string;
  readonly runtimeEndpoint?: string;
  /** The daemon's settings file. */
  readonly settings?: string;
}
/** The flags with a runtime endpoint. */
export type WithEndpoint<G extends ContainerFlags> = G & { readonly runtimeEndpoint: string };
export interface LogsFlags extends ContainerFlags {
  readonly allContainers?: boolean;
  readonly follow?: boolean;
  readonly previous?: boolean;
  readonly prefix?: boolean;
  /** -1 for all lines. */
  readonly tail: number;
  /** Milliseconds. */
  readonly since?: number;
  /** Nanoseconds since 1970. */
  readonly sinceTime?: bigint;
  readonly timestamps?: boolean;
  readonly limitBytes?: number;
}
export interface ExecFlags extends ContainerFlags {
  readonly stdin?: boolean;
  readonly tty?: boolean;
  /** Seconds; 0 for none. */
  readonly timeout: number;
}
