import { setTimeout as sleep } from "node:timers/promises";
import pLimit, { type LimitFunction } from "p-limit";
import { type Fields, fieldsOf } from "../base/own.ts";
import type { Result } from "../base/result.ts";
import { type ApiResource, PAGE } from "./api-server.ts";
import type { Cluster } from "./cluster.ts";
import type { ClusterFault } from "./fault.ts";
import { type NodeDocuments, readDocuments } from "./read.ts";

export type FollowedResource = Extract<ApiResource["resource"], "nodes" | "pods" | "events" | "resourceclaims">;

/** A change of an object, with its current state, or its last state if it was deleted. */
export interface ClusterChange {
  readonly resource: FollowedResource;
  readonly change: "added" | "modified" | "deleted";
  readonly object: Fields;
  /** A modified node or pod before the change; a pod that was not bound to a node counts as added and has none. */
  readonly before?: Fields;
  /** For an event about a pod on a node: the current pod, if it exists. */
  readonly involvedPod?: () => Fields | undefined;
}
interface Follower {
  /** Called for every existing object, as added, and then for each change, in the order of each resource. */
  onChange(change: ClusterChange): void;
  /** A resource has been listed for the first time, and all its objects reported. */
  onListed?(resource: FollowedResource): void;
  /** The documents of one node, once per interval; the node's next ones wait until this settles. */
  onSnapshot(documents: NodeDocuments): void | Promise<void>;
  /** A list or a watch failed and is retried; null: it works again. */
  onFault(resource: FollowedResource, fault: ClusterFault | null): void;
}
export interface FollowOptions {
  readonly signal: AbortSignal;
  /** Each node is read once in this time; the nodes are spread over it. */
  readonly intervalMs: number;
  /** The most nodes that are read at a time. */
  readonly nodesAtATime?: number;
  /** Read a node soon after its pods changed, in addition to its interval. Default: false. */
  readonly readChangedNodes?: boolean;
  /** A watch without data for this long is restarted; a server sends a bookmark each minute. */
  readonly quietMs?: number;
}

const NODES_AT_A_TIME = 16;
const QUIET_MS = 90_000;
/** A node whose pods changed is read this long after the first change, and not earlier than this long after its last reading. */
const CHANGED_MS = 500;
const CHANGED_GAP_MS = 2000;
/** A failed list or watch is retried after the first of these, twice as long each time, at most the last. */
const RETRY_MS = [500, 30_000] as const;

/**
 * Follows nodes, pods, events and ResourceClaims of the whole cluster until the signal ends it, and reads each node once per
 * interval, the first time at once. Failures are reported to `onFault` and in each document's `missing`; rejects only if the
 * follower throws.
 */
export async function followCluster(cluster: Cluster, options: FollowOptions, follower: Follower): Promise<void> {
  const poller = new NodePoller(cluster, options, follower);
  const observer: Follower = {
    ...boundTo(follower),
    onListed: (resource) => {
      if (resource === "pods") poller.start(true);
      follower.onListed?.(resource);
    },
    onFault: (resource, fault) => {
      // nodes are then read without the watch's pods
      if (resource === "pods") poller.start(false);
      follower.onFault(resource, fault);
    },
  };
  const watched = (resource: FollowedResource, keep: ObjectCache): Promise<void> =>
    new ResourceWatch(cluster, resource, options, observer, keep).run();
  const [nodes, pods, events] = [poller.nodes, poller.pods, poller.events];
  const followed = { nodes, pods, events, resourceclaims: NOTHING } satisfies Record<FollowedResource, ObjectCache>;
  await Promise.all(Object.entries(followed).map(([of, keep]) => watched(of as FollowedResource, keep)));
  poller.stop();
}

const boundTo = (follower: Follower): Pick<Follower, "onChange" | "onSnapshot"> => ({
  onChange: (change) => follower.onChange(change),
  onSnapshot: (documents) => follower.onSnapshot(documents),
});

/** The parts of objects that are stored in addition to their versions, and what a change reports from them. */
interface ObjectCache {
  set(key: string, object: Fields): Pick<ClusterChange, "before" | "involvedPod">;
  delete(key: string): Fields | undefined;
}

const NOTHING: ObjectCache = { set: () => ({}), delete: () => undefined };

/** One resource, listed and then watched for as long as that works. */
class ResourceWatch {
  readonly #cluster: Cluster;
  readonly #of: ApiResource & { readonly resource: FollowedResource };
  readonly #options: FollowOptions;
  readonly #follower: Follower;
  readonly #keep: ObjectCache;
  /** Key -> `UID VERSION` of all existing objects. */
  readonly #versions = new Map<string, string>();
  #isListed = false;
  #isFaulty = false;
  #failures = 0;

  constructor(
    cluster: Cluster,
    resource: FollowedResource,
    options: FollowOptions,
    follower: Follower,
    keep: ObjectCache,
  ) {
    this.#cluster = cluster;
    this.#of = { resource };
    this.#options = options;
    this.#follower = follower;
    this.#keep = keep;
  }

  async run(): Promise<void> {
    const { signal } = this.#options;
    let isPaged = true;
    while (!signal.aborted) {
      const listed = await this.#list(isPaged);
      isPaged = listed.ok || listed.error.code !== "gone";
      if (listed.ok) await this.#watch(listed.value);
      else await this.#failed(listed.error);
    }
  }

  async #list(isPaged: boolean): Promise<Result<string, ClusterFault>> {
    const seen = new Set<string>();
    const query: Record<string, string> = isPaged ? { limit: `${PAGE}` } : {};
    const onPage = (items: readonly Fields[]): void => {
      for (const object of items) {
        seen.add(keyOf(object));
        this.#set(object);
      }
    };
    const listed = await this.#cluster.api.pages(this.#of, query, onPage, this.#options.signal);
    if (!listed.ok) return listed;
    for (const key of this.#versions.keys()) if (!seen.has(key)) this.#delete(key, undefined);
    this.#works();
    if (!this.#isListed) this.#follower.onListed?.(this.#of.resource);
    this.#isListed = true;
    return listed;
  }

  /** Watches; returns when the list must be read again. */
  async #watch(from: string): Promise<void> {
    const { signal, quietMs = QUIET_MS } = this.#options;
    let version = from;
    const onEvent = (type: string, object: Fields): void => {
      version = versionOf(object) || version;
      this.#works();
      if (type === "DELETED") this.#delete(keyOf(object), object);
      else if (type !== "BOOKMARK") this.#set(object);
    };
    while (!signal.aborted) {
      const began = performance.now();
      // without changes, the first line is a bookmark after a minute
      const onBegin = () => this.#recovered();
      const watched = await this.#cluster.api.watch(this.#of, version, { signal, quietMs }, onBegin, onEvent);
      if (!watched.ok) {
        const { code } = watched.error;
        if (code === "gone" || code === "stopped") return;
        if (code !== "timed-out") await this.#failed(watched.error);
      } else {
        this.#works();
        // a pause, for a server that ends each watch at once
        await pause(RETRY_MS[0] - (performance.now() - began), signal);
      }
    }
  }

  #set(object: Fields): void {
    const [key, uid] = [keyOf(object), uidOf(object)];
    const version = `${uid} ${versionOf(object)}`;
    const before = this.#versions.get(key);
    if (before === version) return;
    const isOther = before !== undefined && !before.startsWith(`${uid} `);
    // the old object was deleted unobserved, and another one has its name
    if (isOther) this.#delete(key, undefined);
    const change = before === undefined || isOther ? "added" : "modified";
    this.#versions.set(key, version);
    const beside = this.#keep.set(key, object);
    this.#follower.onChange({ resource: this.#of.resource, change, object, ...beside });
  }

  /** `last`: the object as the server sent it; undefined if the deletion was not observed. */
  #delete(key: string, last: Fields | undefined): void {
    if (!this.#versions.delete(key)) return;
    const kept = this.#keep.delete(key);
    const object = last ?? kept ?? bareObject(key);
    this.#follower.onChange({ resource: this.#of.resource, change: "deleted", object });
  }

  #works(): void {
    this.#recovered();
    this.#failures = 0;
  }

  /** Reports that the watch works. A watch may fail right after it starts, so the retry pause is not reset. */
  #recovered(): void {
    if (this.#isFaulty) this.#follower.onFault(this.#of.resource, null);
    this.#isFaulty = false;
  }

  async #failed(fault: ClusterFault): Promise<void> {
    if (fault.code === "stopped") return;
    this.#isFaulty = true;
    this.#follower.onFault(this.#of.resource, fault);
    const [first, most] = RETRY_MS;
    await pause(Math.min(most, first * 2 ** this.#failures++), this.#options.signal);
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await sleep(ms, undefined, { signal }).catch(() => {});
}

const versionOf = (object: Fields): string => {
  const { resourceVersion } = fieldsOf(object["metadata"]);
  return typeof resourceVersion === "string" ? resourceVersion : "";
};
const uidOf = (object: Fields): string => String(fieldsOf(object["metadata"])["uid"]);
const keyOf = (object: Fields): string => {
  const { namespace, name } = fieldsOf(object["metadata"]);
  return namespace === undefined ? String(name) : `${String(namespace)}/${String(name)}`;
};
function bareObject(key: string): Fields {
  const [name, namespace] = key.split("/").reverse();
  return { metadata: namespace === undefined ? { name } : { namespace, name } };
}

interface NodePoll {
  timer: NodeJS.Timeout | undefined;
  /** When the timer fires, and when the last reading ended, by `performance.now()`. */
  dueMs: number;
  readMs: number;
  isReading: boolean;
  /** The node's pods changed during this reading. */
  isChanged: boolean;
  isGone: boolean;
}

const UNREAD = {
  dueMs: 0,
  readMs: Number.NEGATIVE_INFINITY,
  isReading: false,
  isChanged: false,
  isGone: false,
} as const;

/** Reads each node once per interval. Objects are stored as text, which takes a fifth of their memory. */
class NodePoller {
  readonly #cluster: Cluster;
  readonly #options: FollowOptions;
  readonly #follower: Follower;
  readonly #limit: LimitFunction;
  readonly #nodes = new Map<string, string>();
  readonly #polls = new Map<string, NodePoll>();
  /** Key of a pod -> its node. */
  readonly #nodeOfPod = new Map<string, string>();
  /** Node -> key of a pod -> the pod. */
  readonly #podsOfNode = new Map<string, Map<string, string>>();
  #isStarted = false;
  #hasPods = false;
  #isStopped = false;

  constructor(cluster: Cluster, options: FollowOptions, follower: Follower) {
    this.#cluster = cluster;
    this.#options = options;
    this.#follower = follower;
    this.#limit = pLimit(options.nodesAtATime ?? NODES_AT_A_TIME);
  }

  readonly nodes: ObjectCache = {
    set: (name, node) => {
      const before = this.#nodes.get(name);
      this.#nodes.set(name, JSON.stringify(node));
      if (!this.#polls.has(name)) {
        const poll: NodePoll = { ...UNREAD, timer: undefined };
        this.#polls.set(name, poll);
        if (this.#isStarted) this.#schedule(name, poll, 0);
      }
      return beforeIn(before);
    },
    delete: (name) => {
      const poll = this.#polls.get(name);
      if (poll !== undefined) {
        poll.isGone = true;
        clearTimeout(poll.timer);
      }
      this.#polls.delete(name);
      this.#cluster.kubelets.forget(name);
      return removeObject(this.#nodes, name);
    },
  };
  readonly pods: ObjectCache = {
    set: (key, pod) => {
      const { nodeName } = fieldsOf(pod["spec"]);
      if (typeof nodeName !== "string" || nodeName === "") return {};
      this.#nodeOfPod.set(key, nodeName);
      const pods = this.#podsOfNode.get(nodeName) ?? new Map<string, string>();
      const before = pods.get(key);
      this.#podsOfNode.set(nodeName, pods.set(key, JSON.stringify(pod)));
      this.#changed(nodeName);
      return beforeIn(before);
    },
    delete: (key) => {
      const node = this.#nodeOfPod.get(key);
      this.#nodeOfPod.delete(key);
      const pods = node === undefined ? undefined : this.#podsOfNode.get(node);
      const pod = pods === undefined ? undefined : removeObject(pods, key);
      if (node !== undefined && pods?.size === 0) this.#podsOfNode.delete(node);
      if (node !== undefined) this.#changed(node);
      return pod;
    },
  };
  readonly events: ObjectCache = {
    set: (_key, event) => {
      const { kind, namespace, name } = fieldsOf(event["involvedObject"]);
      if (kind !== "Pod") return {};
      const key = `${String(namespace)}/${String(name)}`;
      return { involvedPod: () => beforeIn(this.#podsOfNode.get(this.#nodeOfPod.get(key) ?? "")?.get(key)).before };
    },
    delete: () => undefined,
  };

  /** Starts reading nodes. `hasPods`: all pods are known; until then, each node's pods are read from the API server. */
  start(hasPods: boolean): void {
    this.#hasPods ||= hasPods;
    if (this.#isStarted) return;
    this.#isStarted = true;
    for (const [name, poll] of this.#polls) this.#schedule(name, poll, 0);
  }

  stop(): void {
    this.#isStopped = true;
    for (const { timer } of this.#polls.values()) clearTimeout(timer);
  }

  /** A burst of changes causes one reading, and a long one at most one per `CHANGED_GAP_MS`. */
  #changed(name: string): void {
    const poll = this.#polls.get(name);
    if (this.#options.readChangedNodes !== true || poll === undefined || !this.#isStarted) return;
    const now = performance.now();
    const wait = Math.max(CHANGED_MS, poll.readMs + CHANGED_GAP_MS - now);
    if (poll.isReading) poll.isChanged = true;
    else if (now + wait < poll.dueMs) this.#schedule(name, poll, wait);
  }

  #schedule(name: string, poll: NodePoll, waitMs: number): void {
    clearTimeout(poll.timer);
    poll.dueMs = performance.now() + waitMs;
    poll.timer = setTimeout(() => void this.#run(name, poll), waitMs);
  }

  /** Reads a node. A hash of its name sets when in the interval the next reading is, so that nodes are spread over it. */
  async #run(name: string, poll: NodePoll): Promise<void> {
    poll.isReading = true;
    await this.#limit(() => this.#readNode(name, poll));
    poll.isReading = false;
    if (poll.isGone || this.#isStopped) return;
    poll.readMs = performance.now();
    const { intervalMs } = this.#options;
    const offset = hashOf(name) % intervalMs;
    const wait = intervalMs - ((((Date.now() - offset) % intervalMs) + intervalMs) % intervalMs);
    this.#schedule(name, poll, poll.isChanged ? Math.min(wait, CHANGED_GAP_MS) : wait);
  }

  async #readNode(name: string, poll: NodePoll): Promise<void> {
    const node = this.#nodes.get(name);
    if (node === undefined || poll.isGone || this.#isStopped) return;
    poll.isChanged = false;
    const texts = this.#podsOfNode.get(name)?.values() ?? [];
    const pods = this.#hasPods ? { pods: Array.from(texts, (pod) => JSON.parse(pod) as Fields) } : {};
    const { signal } = this.#options;
    const documents = await readDocuments(this.#cluster, JSON.parse(node) as Fields, {
      ...pods,
      events: false,
      signal,
    });
    if (!poll.isGone && !signal.aborted) await this.#follower.onSnapshot(documents);
  }
}

const beforeIn = (text: string | undefined): { readonly before?: Fields } =>
  text === undefined ? {} : { before: JSON.parse(text) as Fields };

function removeObject(texts: Map<string, string>, key: string): Fields | undefined {
  const text = texts.get(key);
  texts.delete(key);
  return text === undefined ? undefined : (JSON.parse(text) as Fields);
}

/** The 32-bit FNV-1a hash. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
