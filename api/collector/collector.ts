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

/** The collector's own log, a line when work begins and one when it ends. */
interface CollectorLog {
  /** `fault` null: it is over. */
  onFault(about: FaultPlace, fault: string | null): void;
  /** Rights that are missing and were not told yet, each with who lacks it where that is known. */
  onMissingRights?(missing: readonly LackedRight[]): void;
}
type LackedRight = Pick<ClusterFault, "rule" | "user">;
/** `api`: the API that gets everything; a node: one that is read or taken in part or not at all. */
export type FaultPlace = FollowedResource | "api" | { readonly node: string };

interface CollectorOptions {
  readonly signal: AbortSignal;
  /** Each node is read, and its snapshot sent, once in this time, and soon after its pods changed. */
  readonly intervalMs: number;
}

/** Counts since the start. */
export interface CollectorCounts {
  readonly nodes: number;
  /** Those of them of which something could not be read, or whose snapshot the API did not take. */
  readonly faultyNodes: number;
  readonly snapshots: number;
  readonly decisions: number;
  readonly outcomes: number;
  /** Outcomes that were given up, since too many waited for an API that was away. */
  readonly lostOutcomes: number;
  /** Outcomes that wait to be sent. */
  readonly waitingOutcomes: number;
}

/** Two sightings of an outcome, its event and the pod's status, are one where they come within this time. */
const GATHER_MS = 2000;
/** What happened before an outcome may be seen after it, by another watch: it is sent so long after it was seen. */
const SETTLE_MS = 1000;
const MAX_WAITING = 10_000;
/** One request takes at most so many; the API's own limit is 500. */
const MAX_POSTED = 200;

/** The fleet's history: follows a cluster, and sends snapshots of its nodes and what its kubelets did to an API. */
export class Collector {
  readonly #api: ApiClient;
  readonly #sender: SnapshotSender;
  readonly #log: CollectorLog;
  readonly #found = new OutcomeFinder();
  /** Node -> outcomes that wait. */
  #waiting = new Map<string, SeenOutcome[]>();
  #waitingCount = 0;
  readonly #faults = new Map<string, string>();
  readonly #nodeFaults = new NodeFaults();
  readonly #nodes = new Set<string>();
  /** Deleted nodes of which the API does not know that yet. */
  readonly #deleted = new Set<string>();
  /** Resources whose missing right was told. */
  readonly #lacked = new Set<string>();
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
  /** True: everything that is followed was listed and the API takes what it gets. */
  get isReady(): boolean {
    return this.#found.isListed && !["nodes", "pods", "events", "api"].some((place) => this.#faults.has(place));
  }

  /** Follows until the signal ends it. Never rejects: faults are told to the log, and tried again. */
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
    if (resource === "nodes" && change.change === "deleted") this.#tell({ node: nameOf(object) }, null);
  }
  onListed(resource: FollowedResource): void {
    this.#found.listed(resource);
  }
  onFault(resource: FollowedResource, fault: ClusterFault | null): void {
    this.#found.follows(resource, fault === null);
    this.#tell(resource, fault === null ? null : clusterFaultText(fault));
    if (fault !== null) this.#lack([fault]);
  }

  async onSnapshot(documents: NodeDocuments): Promise<void> {
    const { name, missing } = documents;
    const kinds = KINDS.filter((kind) => traitsOf(kind).collected?.every((part) => documents[part] !== undefined));
    const taken = await this.#sender.send(name, snapshotOf(documents), kinds);
    if (!taken.ok && taken.error.code === "away") return;
    const faults = missing.map(
      ({ part, code, why, how }): NodeFault => ({ part, code, text: clusterFaultText({ message: why, next: how }) }),
    );
    this.#lack(missing);
    if (taken.ok) {
      const { decisions, refused } = taken.value;
      this.#counts.snapshots++;
      this.#counts.decisions += decisions;
      this.#unlessThere(name);
      if (refused !== undefined) faults.push({ part: "decisions", code: "refused", text: refused.message });
    } else faults.push({ part: "snapshot", code: "refused", text: taken.error.message });
    this.#tellNode(name, ["pods", "configz", "stats", ...CLAIM_PARTS, "snapshot", "decisions"], faults);
    // it may have gone meanwhile
    if (!this.#nodes.has(name)) this.#sender.forget(name);
  }

  /** Whether the API is away is told. */
  readonly #send: ApiClient["send"] = async (...request) => {
    const sent = await this.#api.send(...request);
    this.#tell("api", !sent.ok && sent.error.code === "away" ? sent.error.message : null);
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
  /** The API takes a node for one that is there whenever it gets something of it. */
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

  /** Sends what was seen until then. Outcomes of an API that is away wait on; posting one twice changes nothing. */
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
    if (isAny) this.#tell("api", away?.message ?? null);
  }

  async #postDeletion(node: string): Promise<ApiFault | null> {
    const sent = await this.#api.send("POST", `v1/nodes/${encodeURIComponent(node)}/deletion`, "");
    if (!sent.ok && sent.error.code === "away") return sent.error;
    // one that the API refuses it has never heard of
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
    this.#tellNode(node, ["outcomes"], faults);
    if (sent.ok) this.#unlessThere(node);
    return null;
  }

  #tellNode(node: string, parts: readonly NodeFault["part"][], faults: readonly NodeFault[]): void {
    // it may have gone meanwhile
    if (!this.#nodes.has(node)) return;
    const line = this.#nodeFaults.looked(node, parts, faults);
    if (line !== undefined) this.#tell({ node }, line);
  }

  #lack(all: readonly LackedRight[]): void {
    const fresh = all.filter(({ rule }) => rule !== undefined && !this.#lacked.has(rule.resource));
    for (const { rule } of fresh) if (rule !== undefined) this.#lacked.add(rule.resource);
    if (fresh.length > 0) this.#log.onMissingRights?.(fresh);
  }

  #tell(place: FaultPlace, fault: string | null): void {
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
