import { byKey } from "../../base/order.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { type Pod, podNamespace, podUid } from "../../model/pod.ts";
import { type ClaimInfo, type ClaimInfoCache, type ClaimRef, skipsOperation } from "./claim-info.ts";
import { claimName, podClaims } from "./claim-name.ts";
import {
  type ClaimSources,
  type ClaimSteps,
  callsOf,
  type DriverAnswer,
  type DriverCall,
  faultOf,
  notRegistered,
} from "./prepare.ts";

type Registered = Pick<ClaimSources, "gates" | "isRegistered">;

/** Unprepares the claims of a pod that has ended; `names`: only these claims. kubelet 1.37: UnprepareResources. */
export function* unprepareResources(
  cache: ClaimInfoCache,
  pod: Pod,
  sources: Registered,
  names = claimNames(cache, pod, sources.gates.extended),
): ClaimSteps {
  const error = names.ok
    ? yield* unprepareClaims(cache, podUid(pod) ?? "", podNamespace(pod), names.value, sources)
    : names.error;
  return error === undefined ? undefined : `unprepare dynamic resources: ${error}`;
}

/** kubelet 1.37: unprepareResourcesForPod. */
export function claimNames(cache: ClaimInfoCache, pod: Pod, extended: boolean): Result<readonly string[], string> {
  const known = cache.behaviour.unpreparesByReference ? cache.ofPod(podUid(pod) ?? "") : [];
  if (known.length > 0) return ok(known.map(({ name }) => name));
  const names: string[] = [];
  for (const podClaim of podClaims(pod, extended)) {
    const named = claimName(pod, podClaim);
    if (!named.ok) return err(named.error);
    if (named.value.name !== null) names.push(named.value.name);
  }
  return ok(names);
}

/** The effects on the claims that a pod leaves. */
interface Detached {
  /** Claims that no other pod uses; they are forgotten once all drivers have answered. */
  readonly leaving: readonly ClaimInfo[];
  /** Claims that other pods still use. */
  readonly kept: readonly ClaimInfo[];
  readonly calls: readonly DriverCall[];
}
/**
 * Removes the pod from claims that others use, and returns the drivers to call for the rest. kubelet 1.37:
 * unprepareResources.
 */
export function detachClaims(
  cache: ClaimInfoCache,
  uid: string,
  namespace: string,
  names: readonly string[],
): Detached {
  const { unpreparesByReference } = cache.behaviour;
  const leaving: ClaimInfo[] = [];
  const kept: ClaimInfo[] = [];
  const batches = new Map<string, ClaimRef[]>();
  for (const name of names) {
    const info = cache.get(namespace, name);
    if (info === undefined || (unpreparesByReference && !info.podUids.has(uid))) continue;
    if (info.podUids.size > 1) {
      info.podUids.delete(uid);
      kept.push(info);
      continue;
    }
    if (!leaving.includes(info)) leaving.push(info);
    info.unpreparing = unpreparesByReference;
    for (const [driver, state] of info.drivers) {
      if (skipsOperation(state, "NodeUnprepareResources")) continue;
      batches.set(driver, [...(batches.get(driver) ?? []), { namespace, name, uid: info.uid }]);
    }
  }
  return { leaving, kept, calls: callsOf("NodeUnprepareResources", batches) };
}

/** kubelet 1.37: unprepareResources. */
export function* unprepareClaims(
  cache: ClaimInfoCache,
  uid: string,
  namespace: string,
  names: readonly string[],
  { isRegistered }: Registered,
): ClaimSteps {
  const { leaving, calls } = detachClaims(cache, uid, namespace, names);
  const missing = calls.map(({ driver }) => notRegistered(driver, isRegistered));
  for (const call of calls.filter((_, i) => missing[i] === undefined)) {
    const fault = faultOf(call, (yield call) as DriverAnswer);
    if (fault !== undefined) return fault;
  }
  const first = missing.find((one) => one !== undefined);
  if (first !== undefined) return first;
  for (const info of leaving) cache.delete(info);
  yield "store";
  return undefined;
}

/** Removed pods that still hold claims, with the claims' names. kubelet 1.37: reconcileLoop. */
interface RemovedPod {
  readonly uid: string;
  readonly namespace: string;
  readonly names: readonly string[];
}
export function removedPods(cache: ClaimInfoCache, active: ReadonlySet<string>): readonly RemovedPod[] {
  const gone = new Map<string, { namespace: string; names: string[] }>();
  for (const { namespace, name, podUids } of cache.list()) {
    for (const uid of podUids) {
      if (active.has(uid)) continue;
      const pod = gone.get(uid) ?? { namespace, names: [] };
      pod.names.push(name);
      gone.set(uid, pod);
    }
  }
  return [...gone].sort(byKey).map(([uid, pod]) => ({ uid, ...pod }));
}
