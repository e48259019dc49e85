import { claimsOf } from "../cluster/claims.ts";
import type { ClusterChange, FollowedResource } from "../cluster/follow.ts";
import { endsPod, type Outcome } from "../model/outcome.ts";
import { type Fields, fieldsOf } from "../model/own.ts";
import { type ResourceClaim, resourceClaim, usesClaims } from "../model/resource-claim.ts";
import {
  eventOutcomes,
  nodeOutcomes,
  podOutcomes,
  probeFailures,
  type Unhealthy,
} from "../service/agreement/outcomes.ts";

/** An outcome, and the node on which it was. */
interface NodeOutcome {
  readonly node: string;
  readonly outcome: Outcome;
}
/** The resources that outcomes are found in. */
const FOUND_IN: readonly FollowedResource[] = ["nodes", "pods", "events"];
/** States of `Unhealthy` events that are kept of a pod: a container is ended after far fewer failures. */
const MAX_UNHEALTHY = 200;

/** An outcome as it was first seen, by this machine's clock. */
export interface SeenOutcome extends NodeOutcome {
  readonly seenMs: number;
}
const LATE_MS = 1000;
/** Enough to know one that left before an outcome, and not after. */
const MAX_LEFT = 16;
interface LeftPod {
  readonly uid: string;
  readonly atMs: number;
}
const isTerminal = (pod: Fields): boolean => /^(?:Succeeded|Failed)$/.test(text(fieldsOf(pod["status"])["phase"]));

/** Finds what kubelets did in the changes of a cluster. What was there when it began is not among them: nobody watched it. */
export class OutcomeFinder {
  /** uid of a pod -> its `Unhealthy` events since they are followed, newest last. */
  readonly #unhealthy = new Map<string, Unhealthy[]>();
  /** Node -> the pods that ended or went last, newest first, each once; only of which no outcome tells. */
  readonly #left = new Map<string, readonly LeftPod[]>();
  /** uids of pods that were refused, evicted or preempted, and are still there. */
  readonly #ended = new Set<string>();
  readonly #listed = new Set<FollowedResource>();
  #podsListedMs = 0;
  readonly #claims = new ClaimsRead();

  /** All that was there in the beginning has been told. */
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

  /** What is known of an outcome only a while after it was seen. */
  completed(seen: SeenOutcome): Outcome {
    return this.#claims.withClaims(this.#withLeft(seen), seen.seenMs);
  }

  /**
   * The outcome with the time at which another pod of the node last ended or was removed, other than by an outcome, or at which pods
   * were listed first. A kubelet knows it before the API server does, so `LATE_MS` after the sighting count as well.
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
    // an event goes an hour after it last happened: its pod is long well again, or gone
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
    // another pod may have its name by now
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

/** How often the probe failed for which a container is ended, since that container started. */
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
  /** By this machine's clock, when it came to be so; what was there in the beginning: when that was listed. */
  readonly sinceMs: number;
}
interface ScheduledPod {
  /** `NAMESPACE/NAME` of its claims. */
  readonly claims: Seen<readonly string[]>;
  /** When it was bound to its node; 0: before anybody watched. */
  readonly boundMs: number;
}
/** Claims, and pods, that are gone: enough to know of one that was there a moment ago. */
const MAX_GONE = 10_000;

/**
 * Knows what a kubelet read of a pod's ResourceClaims: what they were from before it could read them until after it told what came
 * of that. A kubelet asks the API server for them once it has the pod, and again at each try.
 */
class ClaimsRead {
  /** `NAMESPACE/NAME` of a claim -> its text, of which decisions read all; null: it is gone. */
  readonly #claims = new Map<string, Seen<string | null>>();
  readonly #goneClaims = new Set<string>();
  /** By uid. */
  readonly #pods = new Map<string, ScheduledPod>();
  readonly #gonePods = new Set<string>();
  #followedMs = Number.POSITIVE_INFINITY;

  /** `isFollowed` false: changes of claims are missed for now. */
  follows(isFollowed: boolean): void {
    this.#followedMs = isFollowed ? Date.now() : Number.POSITIVE_INFINITY;
  }

  /** `isWatched`: pods that are bound from now on are seen when that happens. */
  see({ resource, change, object }: ClusterChange, isWatched: boolean): void {
    if (resource === "resourceclaims") this.#claim(object, change === "deleted");
    else if (resource === "pods") this.#pod(object, change === "deleted", isWatched);
  }

  /** An outcome of claims with those, where they are known and did not change about then. `seenMs`: when it was seen. */
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
    if (isGone) leave(this.#claims, this.#goneClaims, key);
    else this.#goneClaims.delete(key);
  }

  #pod(object: Fields, isGone: boolean, isWatched: boolean): void {
    const uid = String(fieldsOf(object["metadata"])["uid"]);
    const { nodeName } = fieldsOf(object["spec"]);
    if (isGone) leave(this.#pods, this.#gonePods, uid);
    else if (typeof nodeName === "string" && nodeName !== "" && usesClaims(object)) {
      const before = this.#pods.get(uid);
      const is = claimsOf(object);
      const isSame = before !== undefined && String(before.claims.is) === String(is);
      const claims = isSame ? before.claims : { is, sinceMs: Date.now() };
      this.#pods.set(uid, { claims, boundMs: before?.boundMs ?? (isWatched ? Date.now() : 0) });
    }
  }
}

/** One that is gone stays among the others until many more have gone. */
function leave(all: Map<string, unknown>, gone: Set<string>, key: string): void {
  if (!all.has(key)) return;
  const [oldest = key] = gone.add(key);
  if (gone.size > MAX_GONE && gone.delete(oldest)) all.delete(oldest);
}
