import { setTimeout as sleep } from "node:timers/promises";
import type { Cluster } from "../cluster/cluster.ts";
import { type ClusterFault, clusterFaultText } from "../cluster/fault.ts";
import { type ClusterChange, type FollowedResource, followCluster } from "../cluster/follow.ts";
import { type NodeDocuments, snapshotOf } from "../cluster/read.ts";
import { KINDS } from "../model/decision.ts";
import { traitsOf } from "../model/kinds.ts";
import { CLAIM_PARTS } from "../model/resource-claim.ts";
import type { ApiClient, ApiFault } from "./api-client.ts";
import { type NodeFault, NodeFaults } from "./node-faults.ts";
import { OutcomeFinder, type SeenOutcome } from "./outcomes.ts";
import { SnapshotSender } from "./snapshot-sender.ts";

/** The collector's log: called when a fault begins and when it ends. */
interface CollectorLog {
  /** `fault`: null when it is over. */
  onFault(about: FaultPlace, fault: string | null): void;
  /** Missing permissions that were not reported yet, each with its user if known. */
  onMissingRights?(missing: readonly MissingRbacRule[]): void;
}
type MissingRbacRule = Pick<ClusterFault, "rule" | "user">;
/** `api`: the API that receives everything; a node: one that was read or accepted only in part or not at all. */
export type FaultPlace = FollowedResource | "api" | { readonly node: string };

interface CollectorOptions {
  readonly signal: AbortSignal;
  /** How often each node is read and its snapshot sent, in addition to soon after its pods changed. */
  readonly intervalMs: number;
}

/** Counts since the start. */
export interface CollectorCounts {
  readonly nodes: number;
  /** How many of them could not be read completely, or have a snapshot that the API did not accept. */
  readonly faultyNodes: number;
  readonly snapshots: number;
  readonly decisions: number;
  readonly outcomes: number;
  /** Outcomes that were dropped because too many waited for an unreachable API. */
  readonly lostOutcomes: number;
  /** Outcomes that are not sent yet. */
  readonly waitingOutcomes: number;
}

/** Two observations of an outcome, its event and the pod's status, count as one within this time. */
const GATHER_MS = 2000;
/** Earlier changes may arrive later, from another watch: an outcome is sent this long after it was observed. */
const SETTLE_MS = 1000;
const MAX_WAITING = 10_000;
/** The most outcomes per request; the API's own limit is 500. */
const MAX_POSTED = 200;

/** Follows a cluster, and sends snapshots of its nodes and their kubelets' outcomes to an API. */
export class Collector {
  readonly #api: ApiClient;
  readonly #sender: SnapshotSender;
  readonly #log: CollectorLog;
  readonly #found = new OutcomeFinder();
  /** Node -> outcomes that are not sent yet. */
  #waiting = new Map<string, SeenOutcome[]>();
  #waitingCount = 0;
  readonly #faults = new Map<string, string>();
  readonly #nodeFaults = new NodeFaults();
  readonly #nodes = new Set<string>();
  /** Deleted nodes that were not reported to the API yet. */
  readonly #deleted = new Set<string>();
  /** Resources whose missing permission was reported. */
  readonly #missingRights = new Set<string>();
  #counts = { snapshots: 0, decisions: 0, outcomes: 0, lostOutcomes: 0 };

  constructor(api: ApiClient, log: CollectorLog) {
    this.#api = api;
    this.#sender = new SnapshotSender(this.#send);
    this.#log = log;
  }

  get counts(): CollectorCounts {
    const faultyNodes = Array.from(this.#nodes).filter((name) => this.#faults.has(placeKey({ node: name }))).length;
    return { ...this.#counts, nodes: this.#nodes.size, faultyNodes, waitingOutcomes: this.#waitingCount };
  }
  /** True: everything that is followed was listed, and the API accepts what it is sent. */
  get isReady(): boolean {
    return this.#found.isListed && !["nodes", "pods", "events", "api"].some((place) => this.#faults.has(place));
  }

  /** Follows until the signal ends it. Never rejects: faults are logged and retried. */
  async run(cluster: Cluster, { signal, intervalMs }: CollectorOptions): Promise<void> {
    const sending = this.#sendOutcomes(signal);
    await followCluster(cluster, { signal, intervalMs, readChangedNodes: true }, this);
    await sending;
    await this.#flush();
  }

  onChange(change: ClusterChange): void {
    const { resource, object } = change;
    if (resource === "nodes") this.#node(change);
    for (const found of this.#found.in(change)) this.#wait({ ...found, seenMs: Date.now() });
    if (resource === "nodes" && change.change === "deleted") this.#report({ node: nameOf(object) }, null);
  }
  onListed(resource: FollowedResource): void {
    this.#found.listed(resource);
  }
  onFault(resource: FollowedResource, fault: ClusterFault | null): void {
    this.#found.follows(resource, fault === null);
    this.#report(resource, fault === null ? null : clusterFaultText(fault));
    if (fault !== null) this.#reportMissingRights([fault]);
  }

  async onSnapshot(documents: NodeDocuments): Promise<void> {
    const { name, missing } = documents;
    const kinds = KINDS.filter((kind) => traitsOf(kind).collected?.every((part) => documents[part] !== undefined));
    const taken = await this.#sender.send(name, snapshotOf(documents), kinds);
    if (!taken.ok && taken.error.code === "away") return;
    const faults = missing.map(
      ({ part, code, why, how }): NodeFault => ({ part, code, text: clusterFaultText({ message: why, next: how }) }),
    );
    this.#reportMissingRights(missing);
    if (taken.ok) {
      const { decisions, refused } = taken.value;
      this.#counts.snapshots++;
      this.#counts.decisions += decisions;
      this.#unlessThere(name);
      if (refused !== undefined) faults.push({ part: "decisions", code: "refused", text: refused.message });
    } else faults.push({ part: "snapshot", code: "refused", text: taken.error.message });
    this.#reportNode(name, ["pods", "configz", "stats", ...CLAIM_PARTS, "snapshot", "decisions"], faults);
    // the node may have been deleted meanwhile
    if (!this.#nodes.has(name)) this.#sender.forget(name);
  }

  /** Sends, and reports whether the API is reachable. */
  readonly #send: ApiClient["send"] = async (...request) => {
    const sent = await this.#api.send(...request);
    this.#report("api", !sent.ok && sent.error.code === "away" ? sent.error.message : null);
    return sent;
  };

  #node({ change, object }: ClusterChange): void {
    const name = nameOf(object);
    if (change !== "deleted") this.#nodes.add(name);
    else {
      if (this.#nodes.delete(name)) this.#deleted.add(name);
      this.#nodeFaults.forget(name);
      this.#sender.forget(name);
    }
  }
  /** Marks the node as deleted unless it exists: the API considers a node existing whenever it receives something about it. */
  #unlessThere(node: string): void {
    if (this.#found.isListed && !this.#nodes.has(node)) this.#deleted.add(node);
  }

  #wait(seen: SeenOutcome): void {
    if (this.#waitingCount >= MAX_WAITING) {
      this.#counts.lostOutcomes++;
      return;
    }
    const waiting = this.#waiting.get(seen.node);
    if (waiting === undefined) this.#waiting.set(seen.node, [seen]);
    else waiting.push(seen);
    this.#waitingCount++;
  }

  async #sendOutcomes(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(GATHER_MS, undefined, { signal }).catch(() => {});
      if (!signal.aborted) await this.#flush(Date.now() - SETTLE_MS);
    }
  }

  /** Sends what was observed until then. If the API is unreachable, outcomes keep waiting; posting one twice changes nothing. */
  async #flush(untilMs = Number.POSITIVE_INFINITY): Promise<void> {
    const waiting = this.#waiting;
    const all = new Map<string, SeenOutcome[]>();
    this.#waiting = new Map();
    this.#waitingCount = 0;
    for (const [node, outcomes] of waiting) {
      const due = outcomes.filter(({ seenMs }) => seenMs <= untilMs);
      if (due.length > 0) all.set(node, due);
      for (const seen of outcomes) if (seen.seenMs > untilMs) this.#wait(seen);
    }
    const isAny = all.size > 0 || this.#deleted.size > 0;
    let away: ApiFault | null = null;
    for (const [node, outcomes] of all) {
      for (let from = 0; from < outcomes.length; from += MAX_POSTED) {
        const part = outcomes.slice(from, from + MAX_POSTED);
        away ??= await this.#post(node, part);
        if (away !== null) for (const seen of part) this.#wait(seen);
      }
    }
    for (const node of this.#deleted) {
      if (this.#nodes.has(node)) this.#deleted.delete(node);
      else away ??= await this.#postDeletion(node);
    }
    if (isAny) this.#report("api", away?.message ?? null);
  }

  async #postDeletion(node: string): Promise<ApiFault | null> {
    const sent = await this.#api.send("POST", `v1/nodes/${encodeURIComponent(node)}/deletion`, "");
    if (!sent.ok && sent.error.code === "away") return sent.error;
    // the API does not know a node that it refuses
    this.#deleted.delete(node);
    return null;
  }

  async #post(node: string, seen: readonly SeenOutcome[]): Promise<ApiFault | null> {
    const path = `v1/nodes/${encodeURIComponent(node)}/outcomes`;
    const outcomes = seen.map((one) => this.#found.completed(one));
    const sent = await this.#api.send("POST", path, JSON.stringify({ outcomes }));
    if (!sent.ok && sent.error.code === "away") return sent.error;
    this.#counts[sent.ok ? "outcomes" : "lostOutcomes"] += outcomes.length;
    const faults: NodeFault[] = sent.ok ? [] : [{ part: "outcomes", code: "refused", text: sent.error.message }];
    this.#reportNode(node, ["outcomes"], faults);
    if (sent.ok) this.#unlessThere(node);
    return null;
  }

  #reportNode(node: string, parts: readonly NodeFault["part"][], faults: readonly NodeFault[]): void {
    // the node may have been deleted meanwhile
    if (!this.#nodes.has(node)) return;
    const line = this.#nodeFaults.looked(node, parts, faults);
    if (line !== undefined) this.#report({ node }, line);
  }

  #reportMissingRights(all: readonly MissingRbacRule[]): void {
    const fresh = all.filter(({ rule }) => rule !== undefined && !this.#missingRights.has(rule.resource));
    for (const { rule } of fresh) if (rule !== undefined) this.#missingRights.add(rule.resource);
    if (fresh.length > 0) this.#log.onMissingRights?.(fresh);
  }

  #report(place: FaultPlace, fault: string | null): void {
    const key = placeKey(place);
    if ((this.#faults.get(key) ?? null) === fault) return;
    if (fault === null) this.#faults.delete(key);
    else this.#faults.set(key, fault);
    this.#log.onFault(place, fault);
  }
}

const placeKey = (place: FaultPlace): string => (typeof place === "string" ? place : `node ${place.node}`);
const nameOf = (object: ClusterChange["object"]): string =>
  String((object["metadata"] as Readonly<Record<string, unknown>> | undefined)?.["name"]);
