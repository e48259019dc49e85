import { byKey } from "../../base/order.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { type Pod, type PodClaim, podNamespace, podUid } from "../../model/pod.ts";
import type { AllocatedDevice, ResourceClaim } from "../../model/resource-claim.ts";
import type { Behaviour } from "../../profiles/profile.ts";
import {
  type ClaimInfo,
  type ClaimInfoCache,
  type ClaimRef,
  type DriverState,
  driversOf,
  NODE_OPERATIONS,
  type NodeOperation,
  type PreparedDevice,
  skipsOperation,
} from "./claim-info.ts";
import { claimName, isReservedFor, NIL_POINTER, notForPod, podClaims } from "./claim-name.ts";

/** The feature gates that affect claims. */
export interface ClaimGates {
  /** The gate DRAExtendedResource. */
  readonly extended: boolean;
  /** The gate DRAWorkloadResourceClaims. */
  readonly groups: boolean;
  /** The gate DRAOptionalNodeOperations. */
  readonly optionalOperations: boolean;
}
/** What the kubelet looks up outside its own cache. */
export interface ClaimSources {
  readonly gates: ClaimGates;
  /** Returns a claim; undefined: the API server has none of this name. */
  claim(namespace: string, name: string): ResourceClaim | undefined;
  isRegistered(driver: string): boolean;
}

/** A driver's answer about a claim. */
export interface ClaimAnswer {
  readonly error?: string;
  /** The prepared devices; `known`: another pod's call has already recorded them. */
  readonly devices: readonly PreparedDevice[] | "known";
}
/** A driver's answer to a call: one answer per claim uid, or why the whole call failed. */
export type DriverAnswer = { readonly claims: ReadonlyMap<string, ClaimAnswer> } | { readonly failed: string };
/** One call to a driver, with all claims that it covers. */
export interface DriverCall {
  readonly driver: string;
  readonly operation: NodeOperation;
  readonly claims: readonly ClaimRef[];
}
/**
 * The steps of the DRA manager, which the caller carries out: at `store` the kubelet writes dra_manager_state; a call
 * is answered by its driver. Nothing is awaited between two steps. The generator returns the kubelet's error, or
 * undefined.
 */
export type ClaimSteps = Generator<DriverCall | "store", string | undefined, DriverAnswer | undefined>;

/** A claim of a pod that passed the checks. */
export interface CheckedClaim {
  readonly claim: ResourceClaim;
  readonly drivers: ReadonlyMap<string, DriverState>;
}

/**
 * Checks all claims of a pod without changing anything; the first error counts. Claims that were not needed are left
 * out. kubelet 1.37: prepareResources.
 */
function checkClaims(
  pod: Pod,
  sources: ClaimSources,
  behaviour: Behaviour["claims"],
): Result<readonly CheckedClaim[], string> {
  const checked: CheckedClaim[] = [];
  for (const podClaim of podClaims(pod, sources.gates.extended)) {
    const one = checkClaim(pod, podClaim, sources, behaviour);
    if (!one.ok) return one;
    if (one.value !== null) checked.push(one.value);
  }
  return ok(checked);
}

/** Checks one claim. Null: the claim was not needed. */
export function checkClaim(
  pod: Pod,
  podClaim: PodClaim,
  { gates, claim: find, isRegistered }: ClaimSources,
  behaviour: Behaviour["claims"],
): Result<CheckedClaim | null, string> {
  const named = claimName(pod, podClaim);
  if (!named.ok) return named;
  const { name, ofTemplate } = named.value;
  if (name === null) return ok(null);
  const claim = find(podNamespace(pod), name);
  if (claim === undefined) return err(`fetch ResourceClaim ${name}: ${noSuchClaim(name)}`);
  const others = ofTemplate ? notForPod(pod, claim, gates.groups, behaviour) : undefined;
  if (others !== undefined) return err(others);
  if (!isReservedFor(pod, claim, gates.groups)) {
    const who = `pod ${pod.metadata.name} (${podUid(pod) ?? ""})`;
    return err(`${who} is not allowed to use ResourceClaim ${name} (${claim.metadata.uid ?? ""})`);
  }
  const drivers = driverStates(claim, gates, behaviour);
  if (!drivers.ok) return err(`ResourceClaim ${claim.metadata.name}: ${drivers.error}`);
  for (const driver of driversOf({ drivers: drivers.value })) {
    if (skipsOperation(drivers.value.get(driver) as DriverState, "NodePrepareResources")) continue;
    const missing = notRegistered(driver, isRegistered);
    if (missing !== undefined) return err(missing);
  }
  return ok({ claim, drivers: drivers.value });
}
/** The API server's error message. */
const noSuchClaim = (name: string): string => `resourceclaims.resource.k8s.io "${name}" not found`;

/** Why a driver cannot be called; undefined: it can. kubelet 1.37: GetPlugin. */
export function notRegistered(driver: string, isRegistered: ClaimSources["isRegistered"]): string | undefined {
  if (driver === "") return "DRA driver name is empty";
  return isRegistered(driver) ? undefined : `DRA driver ${driver} is not registered`;
}

/** kubelet 1.37: newClaimInfoFromClaim, computeDriverStates. */
function driverStates(
  { status }: ResourceClaim,
  { optionalOperations }: ClaimGates,
  { nodeOperationsSkipped }: Behaviour["claims"],
): Result<Map<string, DriverState>, string> {
  if (status?.allocation === undefined) return err("not allocated");
  const states = new Map<string, DriverState>();
  for (const [driver, results] of Map.groupBy(status.allocation.devices?.results ?? [], (result) => result.driver)) {
    const skips = nodeOperationsSkipped ? skippedOf(results) : [];
    if (skips.length > 0 && !optionalOperations) {
      return err("DRAOptionalNodeOperations feature gate is disabled on kubelet");
    }
    states.set(driver, { devices: null, skips });
  }
  return ok(states);
}
/** The node operations that every device of a driver skips. */
function skippedOf(results: readonly AllocatedDevice[]): readonly string[] {
  const skips = ({ skipNodeOperations = [] }: AllocatedDevice, operation: string): boolean =>
    skipNodeOperations.includes(operation);
  if (results.every((result) => skips(result, "*"))) return ["*"];
  return NODE_OPERATIONS.filter((operation) => results.every((r) => skips(r, "*") || skips(r, operation)));
}

/** A pod's claims in the kubelet's cache, once they passed the checks. */
interface AttachedClaims {
  /** Claims that are not prepared yet. */
  readonly staged: readonly ClaimInfo[];
  readonly calls: readonly DriverCall[];
  /** The number of claims in which the pod was entered; without an error, all. */
  readonly entered: number;
  readonly error: string | undefined;
  /** True: a driver of the claim's entry has no device in the current allocation; a kubelet that calls it crashes. */
  readonly lost: boolean;
}
const isCalled = (state: DriverState | undefined): boolean =>
  state !== undefined && !skipsOperation(state, "NodePrepareResources");
/** Adds the pod to its claims, and returns the drivers to call. kubelet 1.37: prepareResources. */
function attachClaims(cache: ClaimInfoCache, pod: Pod, checked: readonly CheckedClaim[]): AttachedClaims {
  const staged: ClaimInfo[] = [];
  const batches = new Map<string, ClaimRef[]>();
  let lost = false;
  for (const [i, { claim, drivers }] of checked.entries()) {
    const info = entered(cache, claim, drivers);
    if (typeof info === "string") return { staged, calls: [], entered: i, error: info, lost };
    info.podUids.add(podUid(pod) ?? "");
    if (info.prepared) continue;
    if (!staged.includes(info)) staged.push(info);
    const { namespace, name, uid } = info;
    for (const [driver, state] of info.drivers) {
      if (skipsOperation(state, "NodePrepareResources")) continue;
      if (!isCalled(drivers.get(driver))) lost = true;
      else batches.set(driver, [...(batches.get(driver) ?? []), { namespace, name, uid }]);
    }
  }
  return { staged, calls: callsOf("NodePrepareResources", batches), entered: checked.length, error: undefined, lost };
}
function entered(
  cache: ClaimInfoCache,
  { metadata }: ResourceClaim,
  drivers: ReadonlyMap<string, DriverState>,
): ClaimInfo | string {
  const { namespace = "default", name, uid = "" } = metadata;
  const known = cache.get(namespace, name);
  if (known === undefined) {
    const info = { namespace, name, uid, podUids: new Set<string>(), drivers: new Map(drivers) };
    const added: ClaimInfo = { ...info, prepared: false, unpreparing: false };
    cache.add(added);
    return added;
  }
  if (known.uid !== uid) {
    return `old ResourceClaim with same name ${name} and different UID ${known.uid} still exists (previous pod force-deleted?!)`;
  }
  return known.unpreparing ? `ResourceClaim ${name} is being unprepared` : known;
}
/** The calls sorted by driver, where Go follows a map. */
export const callsOf = (
  operation: NodeOperation,
  batches: ReadonlyMap<string, readonly ClaimRef[]>,
): readonly DriverCall[] => [...batches].sort(byKey).map(([driver, claims]) => ({ driver, operation, claims }));

/**
 * Prepares the claims of a pod. A driver's error ends it; what was prepared so far stays, and the next attempt asks
 * for it again. kubelet 1.37: PrepareResources.
 */
export function* prepareResources(cache: ClaimInfoCache, pod: Pod, sources: ClaimSources): ClaimSteps {
  const failed = (why: string): string => (why === NIL_POINTER ? why : `prepare dynamic resources: ${why}`);
  const checked = checkClaims(pod, sources, cache.behaviour);
  if (!checked.ok) return failed(checked.error);
  const { staged, calls, entered, error, lost } = attachClaims(cache, pod, checked.value);
  if (entered > 0) yield "store";
  if (error !== undefined) return failed(error);
  for (const call of calls) {
    const answer = (yield call) as DriverAnswer;
    if ("claims" in answer) takeDevices(cache, call, answer.claims);
    const fault = faultOf(call, answer);
    if (fault !== undefined) return failed(fault);
  }
  if (lost) return NIL_POINTER;
  for (const info of staged) info.prepared = true;
  yield "store";
  return undefined;
}

/**
 * Why an answer is not acceptable; if there are several faults, Go's map order picks one. kubelet 1.37:
 * prepareResources, unprepareResources.
 */
export function faultOf({ operation, claims }: DriverCall, answer: DriverAnswer): string | undefined {
  if ("failed" in answer) return `${operation}: ${answer.failed}`;
  const uids = [...answer.claims.keys()].sort();
  const asked = (uid: string): ClaimRef | undefined => claims.find((claim) => claim.uid === uid);
  const wrong = uids.find((uid) => asked(uid) !== undefined && (answer.claims.get(uid)?.error ?? "") !== "");
  if (wrong !== undefined) {
    return `${operation} failed for ResourceClaim ${asked(wrong)?.name}: ${answer.claims.get(wrong)?.error}`;
  }
  const unknown = uids.find((uid) => asked(uid) === undefined);
  if (unknown !== undefined) return `${operation} returned result for unknown claim UID ${unknown}`;
  const unfinished = claims.length - uids.length;
  return unfinished === 0 ? undefined : `${operation} skipped ${unfinished} ResourceClaims`;
}

/** Records the devices of the claims that succeeded, even if another claim failed. */
function takeDevices(cache: ClaimInfoCache, { driver, claims }: DriverCall, answers: ReadonlyMap<string, ClaimAnswer>) {
  for (const [uid, answer] of answers) {
    const claim = claims.find((one) => one.uid === uid);
    const info = claim && cache.get(claim.namespace, claim.name);
    if (info === undefined || (answer.error ?? "") !== "" || answer.devices === "known") continue;
    const state = info.drivers.get(driver) ?? { devices: null, skips: [] };
    const before = cache.behaviour.answersReplace ? null : state.devices;
    const devices = answer.devices.length === 0 ? before : [...(before ?? []), ...answer.devices];
    info.drivers.set(driver, { ...state, devices });
  }
}
