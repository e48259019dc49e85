import { type Fields, fieldsOf } from "../base/own.ts";
import { claimsOf } from "../cluster/claims.ts";
import type { ClusterChange, FollowedResource } from "../cluster/follow.ts";
import { endsPod, type Outcome } from "../model/outcome.ts";
import { type ResourceClaim, resourceClaim, usesClaims } from "../model/resource-claim.ts";
import {
  eventOutcomes,
  nodeOutcomes,
  podOutcomes,
  probeFailures,
  type Unhealthy,
} from "../service/agreement/outcomes.ts";

/** An outcome and its node. */
interface NodeOutcome {
  readonly node: string;
  readonly outcome: Outcome;
}
/** The resources in which outcomes are found. */
const FOUND_IN: readonly FollowedResource[] = ["nodes", "pods", "events"];
/** The most states of `Unhealthy` events kept per pod: a container is killed after far fewer failures. */
const MAX_UNHEALTHY = 200;

/** An outcome when first observed, by the local clock. */
export interface SeenOutcome extends NodeOutcome {
  readonly seenMs: number;
}
const LATE_MS = 1000;
/** Enough to find one that left before an outcome, not after. */
const MAX_LEFT = 16;
interface DepartedPod {
  readonly uid: string;
  readonly atMs: number;
}
const isTerminal = (pod: Fields): boolean => /^(?:Succeeded|Failed)$/.test(text(fieldsOf(pod["status"])["phase"]));

/** Finds kubelets' outcomes in the changes of a cluster. What existed at the start is not among them: it was not observed. */
export class OutcomeFinder {
  /** uid of a pod -> its `Unhealthy` events since events are followed, newest last. */
  readonly #unhealthy = new Map<string, Unhealthy[]>();
  /** Node -> the pods that ended or were removed last without an outcome, newest first, each once. */
  readonly #left = new Map<string, readonly DepartedPod[]>();
  /** uids of pods that were refused, evicted or preempted and still exist. */
  readonly #ended = new Set<string>();
  readonly #listed = new Set<FollowedResource>();
  #podsListedMs = 0;
  readonly #claims = new ClaimsRead();

  /** Everything that existed at the start has been reported. */
  get isListed(): boolean {
    return FOUND_IN.every((resource) => this.#listed.has(resource));
  }
  listed(resource: FollowedResource): void {
    this.#listed.add(resource);
    if (resource === "resourceclaims") this.#claims.follows(true);
    if (resource === "pods") this.#podsListedMs = Date.now();
  }

  /** See `ClaimsRead`. */
  follows(resource: FollowedResource, isFollowed: boolean): void {
    if (resource === "resourceclaims") this.#claims.follows(isFollowed && this.#listed.has(resource));
  }

  /** The outcome with what is known only some time after it was observed. */
  completed(seen: SeenOutcome): Outcome {
    return this.#claims.withClaims(this.#withLeft(seen), seen.seenMs);
  }

  /**
   * The outcome with the time at which another pod of the node last ended or was removed without an outcome, or at which pods were
   * listed first. A kubelet knows of it before the API server, so `LATE_MS` after the observation count as well.
   */
  #withLeft({ node, outcome, seenMs }: SeenOutcome): Outcome {
    const own = "pod" in outcome ? outcome.pod.uid : undefined;
    const left = this.#left.get(node) ?? [];
    const last = left.find(({ uid, atMs }) => uid !== own && atMs <= seenMs + LATE_MS);
    return { ...outcome, podLeftAt: new Date(last?.atMs ?? this.#podsListedMs).toISOString() };
  }

  in(change: ClusterChange): readonly NodeOutcome[] {
    this.#claims.see(change, this.#listed.has("pods"));
    const found = this.#found(change);
    for (const { outcome } of found) if ("pod" in outcome && endsPod(outcome)) this.#ended.add(outcome.pod.uid);
    if (change.resource === "pods") this.#leaves(change);
    if (change.resource === "nodes" && change.change === "deleted") this.#left.delete(nameOf(change.object));
    return found;
  }

  #leaves({ change, object, before }: ClusterChange): void {
    const uid = uidOf(object);
    const isGone =
      change === "deleted" ? !isTerminal(object) : isTerminal(object) && before !== undefined && !isTerminal(before);
    const node = text(fieldsOf(object["spec"])["nodeName"]);
    if (isGone && node !== "" && !this.#ended.has(uid)) {
      const others = (this.#left.get(node) ?? []).filter((one) => one.uid !== uid);
      this.#left.set(node, [{ uid, atMs: Date.now() }, ...others.slice(0, MAX_LEFT - 1)]);
    }
    if (change !== "deleted") return;
    this.#unhealthy.delete(uid);
    this.#ended.delete(uid);
  }

  #found({ resource, change, object, before, involvedPod }: ClusterChange): readonly NodeOutcome[] {
    if (resource === "events") this.#keep(change, object);
    if (change === "deleted" || resource === "resourceclaims" || !this.#listed.has(resource)) return [];
    if (resource === "nodes") {
      const node = nameOf(object);
      return before === undefined ? [] : nodeOutcomes(before, object).map((outcome) => ({ node, outcome }));
    }
    if (resource === "events") return this.#ofEvent(object, involvedPod?.());
    const node = text(fieldsOf(object["spec"])["nodeName"]);
    return node === "" ? [] : podOutcomes(before ?? null, object).map((outcome) => ({ node, outcome }));
  }

  #keep(change: ClusterChange["change"], event: Fields): void {
    if (event["reason"] !== "Unhealthy") return;
    const uid = text(fieldsOf(event["involvedObject"])["uid"]);
    // an event expires an hour after it last occurred: by then its pod is healthy again, or gone
    if (change === "deleted") return void this.#unhealthy.delete(uid);
    const { message, count, firstTimestamp, lastTimestamp } = event;
    const [firstMs, lastMs] = [Date.parse(text(firstTimestamp)), Date.parse(text(lastTimestamp))];
    if (Number.isNaN(firstMs) || Number.isNaN(lastMs)) return;
    const seen = this.#unhealthy.get(uid) ?? [];
    seen.push({ message: text(message), count: Number(count ?? 1), firstMs, lastMs });
    if (seen.length > MAX_UNHEALTHY) seen.shift();
    this.#unhealthy.set(uid, seen);
  }

  #ofEvent(event: Fields, pod: Fields | undefined): readonly NodeOutcome[] {
    const involved = fieldsOf(event["involvedObject"]);
    // another pod may have the name by now
    const known = pod !== undefined && uidOf(pod) === involved["uid"] ? pod : undefined;
    const node = text(fieldsOf(known?.["spec"])["nodeName"]) || text(fieldsOf(event["source"])["host"]);
    if (node === "") return [];
    const seen = this.#unhealthy.get(text(involved["uid"])) ?? [];
    const around = known === undefined ? {} : { pod: known, failures: failuresBefore(known, event, seen) };
    return eventOutcomes(event, around).map((outcome) => ({ node, outcome }));
  }
}

const nameOf = (object: Fields): string => text(fieldsOf(object["metadata"])["name"]);
const uidOf = (object: Fields): string => text(fieldsOf(object["metadata"])["uid"]);

/** How often the probe that killed a container failed since that container started. */
function failuresBefore(pod: Fields, event: Fields, seen: readonly Unhealthy[]): number | null {
  const [, container, probe] =
    /^(?:Init container|Container) (\S+) failed (liveness|startup) probe/.exec(text(event["message"])) ?? [];
  if (event["reason"] !== "Killing" || container === undefined) return null;
  const { containerStatuses = [], initContainerStatuses = [] } = fieldsOf(pod["status"]);
  const statuses = [containerStatuses, initContainerStatuses].flatMap((list) => (Array.isArray(list) ? list : []));
  const status = statuses.find((one) => fieldsOf(one)["name"] === container);
  const { running } = fieldsOf(fieldsOf(status)["state"]);
  const startedMs = Date.parse(text(fieldsOf(running)["startedAt"]));
  return Number.isNaN(startedMs) ? null : probeFailures(seen, probe as "liveness" | "startup", startedMs);
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

interface Seen<T> {
  readonly is: T;
  /** When this became so, by the local clock; for what existed at the start, when that was listed. */
  readonly sinceMs: number;
}
interface ScheduledPod {
  /** `NAMESPACE/NAME` of the pod's claims. */
  readonly claims: Seen<readonly string[]>;
  /** When the pod was bound to its node; 0 if before the watch. */
  readonly boundMs: number;
}
/** The most claims, and pods, that are kept after their deletion, for outcomes of a moment ago. */
const MAX_GONE = 10_000;

/**
 * Determines the ResourceClaims that a kubelet read for a pod: those that did not change from before it could read them until it
 * reported the result. A kubelet requests them from the API server once it has the pod, and again at each attempt.
 */
class ClaimsRead {
  /** `NAMESPACE/NAME` of a claim -> the text of the fields that decisions read; null if it is gone. */
  readonly #claims = new Map<string, Seen<string | null>>();
  readonly #goneClaims = new Set<string>();
  /** The scheduled pods by uid. */
  readonly #pods = new Map<string, ScheduledPod>();
  readonly #gonePods = new Set<string>();
  #followedMs = Number.POSITIVE_INFINITY;

  /** `isFollowed` false: changes of claims are currently missed. */
  follows(isFollowed: boolean): void {
    this.#followedMs = isFollowed ? Date.now() : Number.POSITIVE_INFINITY;
  }

  /** `isWatched`: from now on, pods are observed when they are bound. */
  see({ resource, change, object }: ClusterChange, isWatched: boolean): void {
    if (resource === "resourceclaims") this.#claim(object, change === "deleted");
    else if (resource === "pods") this.#pod(object, change === "deleted", isWatched);
  }

  /** An outcome about claims with the claims, if they are known and did not change at that time. `seenMs`: when it was observed. */
  withClaims(outcome: Outcome, seenMs: number): Outcome {
    if (outcome.kind !== "claims" || seenMs < this.#followedMs) return outcome;
    const pod = this.#pods.get(outcome.pod.uid);
    const untilMs = Math.max(pod?.boundMs ?? 0, Math.min(Date.parse(outcome.at), seenMs));
    const read = (pod?.claims.is ?? []).map((key) => this.#claims.get(key));
    const isSettled = [pod?.claims, ...read].every((one) => (one?.sinceMs ?? 0) <= untilMs);
    if (pod === undefined || !isSettled) return outcome;
    const texts = read.flatMap((one) => one?.is ?? []);
    return { ...outcome, claims: texts.map((text) => JSON.parse(text) as ResourceClaim) };
  }

  #claim(object: Fields, isGone: boolean): void {
    const { namespace, name } = fieldsOf(object["metadata"]);
    const key = `${namespace}/${name}`;
    const claim = isGone ? null : resourceClaim.safeParse(object);
    const is = claim?.success === true ? JSON.stringify(claim.data) : null;
    // an unreadable claim says nothing about when it changed
    const sinceMs = claim?.success === false ? Number.POSITIVE_INFINITY : Date.now();
    if (this.#claims.get(key)?.is !== is || is === null) this.#claims.set(key, { is, sinceMs });
    if (isGone) markDeleted(this.#claims, this.#goneClaims, key);
    else this.#goneClaims.delete(key);
  }

  #pod(object: Fields, isGone: boolean, isWatched: boolean): void {
    const uid = String(fieldsOf(object["metadata"])["uid"]);
    const { nodeName } = fieldsOf(object["spec"]);
    if (isGone) markDeleted(this.#pods, this.#gonePods, uid);
    else if (typeof nodeName === "string" && nodeName !== "" && usesClaims(object)) {
      const before = this.#pods.get(uid);
      const is = claimsOf(object);
      const isSame = before !== undefined && String(before.claims.is) === String(is);
      const claims = isSame ? before.claims : { is, sinceMs: Date.now() };
      this.#pods.set(uid, { claims, boundMs: before?.boundMs ?? (isWatched ? Date.now() : 0) });
    }
  }
}

/** Keeps a deleted one until many more are deleted. */
function markDeleted(all: Map<string, unknown>, gone: Set<string>, key: string): void {
  if (!all.has(key)) return;
  const [oldest = key] = gone.add(key);
  if (gone.size > MAX_GONE && gone.delete(oldest)) all.delete(oldest);
}
