import { claimsOf } from "../cluster/claims.ts";
import type { ClusterChange } from "../cluster/follow.ts";
import type { Outcome } from "../model/outcome.ts";
import { type Fields, fieldsOf } from "../model/own.ts";
import { type ResourceClaim, resourceClaim, usesClaims } from "../model/resource-claim.ts";

interface Seen<T> {
  readonly is: T;
  /** By this machine's clock, when it came to be so; what was there in the beginning: when that was listed. */
  readonly sinceMs: number;
}
interface PodSeen {
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
export class ClaimsRead {
  /** `NAMESPACE/NAME` of a claim -> its text, of which decisions read all; null: it is gone. */
  readonly #claims = new Map<string, Seen<string | null>>();
  readonly #goneClaims = new Set<string>();
  /** By uid. */
  readonly #pods = new Map<string, PodSeen>();
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
    // of one that cannot be read nothing is known
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
