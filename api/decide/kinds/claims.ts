import { err, ok, type Result } from "../../base/result.ts";
import {
  type ClaimsDecision,
  type ClaimWarning,
  type DraCall,
  type PodOfClaims,
  PREPARE_FAILED,
  startFault,
} from "../../model/claims.ts";
import type { DecidedOf, ReasonCode, Refusal } from "../../model/decision.ts";
import {
  type Container,
  containersOf,
  namespacedPodName,
  type Pod,
  podNamespace,
  podRef,
  podUid,
} from "../../model/pod.ts";
import type { PodAsk } from "../../model/pod-ask.ts";
import type { Dra, ResourceClaim } from "../../model/resource-claim.ts";
import { epochMs } from "../../model/units.ts";
import { type EffectiveArguments, type EffectiveSnapshot, gateOn } from "../../profiles/effective.ts";
import { allocationFaults } from "../dra/allocation.ts";
import { readClaims } from "../dra/checkpoint.ts";
import {
  type ClaimInfo,
  type ClaimInfoCache,
  type DriverState,
  driversOf,
  type PreparedDevice,
  skipsOperation,
} from "../dra/claim-info.ts";
import { claimName, podClaims } from "../dra/claim-name.ts";
import { containerDevices, usedRequests } from "../dra/container-devices.ts";
import { givenExtended } from "../dra/extended-resources.ts";
import { claimHealth, healthAt, readHealth } from "../dra/health.ts";
import {
  type CheckedClaim,
  type ClaimSources,
  checkClaim,
  type DriverAnswer,
  type DriverCall,
  notRegistered,
  prepareResources,
} from "../dra/prepare.ts";
import { registeredService } from "../dra/registration.ts";
import { claimNames, detachClaims, removedPods } from "../dra/unprepare.ts";
import { claimsElsewhere, driverWarnings, isLeaving, nothingPrepared, requestsWithoutDevice } from "../dra/warnings.ts";
import { podNames, podOfAsk } from "../managers/node.ts";
import { podsHere, podsOfNode } from "../pods/node-pods.ts";
import { Reasons } from "../reasons.ts";

type ClaimReasons = Reasons<ReasonCode<"claims">>;

/**
 * Decides what happens to the ResourceClaims of one pod, or of all pods of the node. No driver is called: their
 * answers are posted or unknown. Refused: no such pod; a pod with claims if no claims are posted. kubelet 1.37:
 * dra.Manager.
 */
export function decideClaims({
  snapshot,
  ask,
  explain,
}: EffectiveArguments<PodAsk>): Result<DecidedOf<"claims">, Refusal> {
  const reasons: ClaimReasons = new Reasons(explain);
  const asked = podOfAsk(snapshot, ask);
  if (!asked.ok) return asked;
  const read = claimCache(snapshot);
  if (!read.ok) {
    reasons.add("kubelet_does_not_start", "node", "startErrors", { message: read.error });
    const decision = { ...NOTHING, startErrors: [read.error] };
    return ok({ decision, verdict: "kubelet-refuses", reasons: reasons.list, needs: [], next: null });
  }
  const candidates = (asked.value === null ? podsHere(snapshot) : [asked.value]).filter((pod) => !isLeaving(pod));
  const node = nodeOf(snapshot, read.value, reasons);
  const isServed = gateOn(snapshot.kubeletConfiguration, "DynamicResourceAllocation");
  const claiming = candidates.filter((pod) => podClaims(pod, node.sources.gates.extended).length > 0);
  if (!isServed && claiming.length > 0) reasons.add("dra_off", "node", "pods");
  // kubelet 1.34: SyncPod calls PrepareDynamicResources only if the gate is on
  const using = isServed ? claiming : [];
  const needs = [...missingOf(node, using), ...(lacksTime(snapshot) ? ["observedAt"] : [])];
  if (claiming.length === 0 && node.cache.list().length === 0) reasons.add("no_claims", "node", "pods");
  if (needs.includes(CLAIMS) && asked.value !== null)
    return err({ code: "needs_input", message: NO_CLAIMS, needs: [CLAIMS] });
  const prepares = asked.value === null || !isServed ? using : candidates;
  const pods = needs.includes(CLAIMS) ? [] : prepares;
  const decision = decisionOf(node, asked.value, pods);
  if (decision.extendedResources.some(({ by }) => by === null)) needs.push("node.status.allocatable");
  const verdict = decision.pods.every((pod) => startFault(pod) === null) ? "decided" : "refused";
  return ok({ decision, verdict, reasons: reasons.list, needs, next: null });
}

const NOTHING: ClaimsDecision = {
  startErrors: [],
  refusal: null,
  pods: [],
  known: [],
  givenBack: [],
  extendedResources: [],
  allocationFaults: [],
  warnings: [],
  health: [],
};

/** The node as its DRA manager sees it. */
interface Node {
  readonly snapshot: EffectiveSnapshot;
  readonly dra: Dra;
  readonly cache: ClaimInfoCache;
  /** Uids of the claims that are prepared before any pod is processed. */
  readonly prepared: ReadonlySet<string>;
  /** `UID DRIVER` of the claims whose driver's answer is not posted. */
  readonly unanswered: Set<string>;
  readonly warnings: ClaimWarning[];
  readonly sources: ClaimSources;
  readonly reasons: ClaimReasons;
}

/**
 * The claim cache; a claim of the file counts as prepared if all its drivers have answered, unless the prepared claims
 * are posted.
 */
function claimCache({ assignments, dra, kubeletConfiguration }: EffectiveSnapshot): Result<ClaimInfoCache, string> {
  const read = readClaims(assignments?.dra_manager_state, kubeletConfiguration.profile.behaviour.claims);
  if (!read.ok) return read;
  for (const info of read.value.list()) {
    const isPrepared = dra?.preparedClaims?.includes(info.uid);
    info.prepared =
      isPrepared ?? [...info.drivers.values()].every(({ devices, skips }) => devices !== null || skips.length > 0);
  }
  return read;
}

const CLAIMS = "dra.resourceClaims";
const NO_CLAIMS = "the pod has ResourceClaims, and none are posted: post those of its namespace";
/** Lists the inputs that are not posted; a pod whose claims are unknown is skipped. */
function missingOf({ dra, cache, reasons }: Node, using: readonly Pod[]): readonly string[] {
  if (using.length > 0 && dra.resourceClaims === undefined) return [CLAIMS];
  const isOpen = dra.drivers === undefined && (using.length > 0 || cache.list().length > 0);
  if (isOpen) reasons.add("drivers_not_known", "node", "drivers");
  return [
    ...(isOpen ? ["dra.drivers"] : []),
    ...(using.length > 0 && dra.resourceSlices === undefined ? ["dra.resourceSlices"] : []),
  ];
}

function nodeOf(snapshot: EffectiveSnapshot, cache: ClaimInfoCache, reasons: ClaimReasons): Node {
  const { dra = {}, kubeletConfiguration: config } = snapshot;
  const isKnown = dra.drivers !== undefined;
  const registered = new Set(
    (dra.drivers ?? []).filter((one) => (one.registered ?? true) && registeredService(one).ok).map(({ name }) => name),
  );
  const sources = {
    gates: {
      extended: gateOn(config, "DRAExtendedResource"),
      groups: gateOn(config, "DRAWorkloadResourceClaims"),
      optionalOperations: gateOn(config, "DRAOptionalNodeOperations"),
    },
    claim: (namespace: string, name: string) => findClaim(dra, namespace, name),
    isRegistered: (driver: string) => !isKnown || registered.has(driver),
  };
  const prepared = new Set(cache.list().flatMap(({ prepared, uid }) => (prepared ? [uid] : [])));
  const found = { unanswered: new Set<string>(), warnings: [] };
  return { snapshot, dra, cache, prepared, ...found, sources, reasons };
}
const findClaim = ({ resourceClaims = [] }: Dra, namespace: string, name: string): ResourceClaim | undefined =>
  resourceClaims.find(({ metadata }) => (metadata.namespace ?? "default") === namespace && metadata.name === name);

function decisionOf(node: Node, asked: Pod | null, pods: readonly Pod[]): ClaimsDecision {
  const { snapshot, cache, reasons, dra } = node;
  const names = podNames(asked === null ? podsOfNode(snapshot) : [...podsOfNode(snapshot), asked]);
  const known = cache.list().map((info) => knownClaim(info, names));
  const health = healthOf(node, asked === null ? podsHere(snapshot) : [asked]);
  const { extended } = node.sources.gates;
  const extendedResources = givenExtended(snapshot, asked === null ? podsHere(snapshot) : pods, extended, reasons);
  const claims = [...new Set(pods.flatMap((pod) => claimsOf(node, pod)))];
  const faults = allocationFaults(claims, dra, snapshot.node);
  for (const { claim, device, fault, message } of faults) {
    reasons.add("allocation_fault", claim, "allocation", { device, fault, message });
  }
  node.warnings.push(...warningsOf(node, asked, pods, claims));
  // last, since this adds the pods to their claims
  const prepared = pods.map((pod) => preparedPod(node, pod));
  // after that, since a pod that joins a claim prevents its unpreparing
  const givenBack = unpreparedClaims(node, names, asked);
  const [of] = asked === null ? [] : prepared;
  const message = of?.message ?? null;
  return {
    startErrors: [],
    refusal: message === null ? null : { reason: PREPARE_FAILED, message },
    pods: prepared,
    known,
    givenBack,
    extendedResources,
    allocationFaults: faults,
    warnings: node.warnings,
    health,
  };
}
function warningsOf(
  { snapshot, dra, cache, prepared, sources }: Node,
  asked: Pod | null,
  pods: readonly Pod[],
  claims: readonly ResourceClaim[],
): readonly ClaimWarning[] {
  const { extended } = sources.gates;
  const served = gateOn(snapshot.kubeletConfiguration, "DynamicResourceAllocation");
  const holds =
    snapshot.assignments?.dra_manager_state === undefined
      ? null
      : cache.ofPod((asked && podUid(asked)) ?? "").length > 0;
  const nothing = asked === null ? undefined : nothingPrepared(asked, { served, extended, holds });
  const open = claims.filter(({ metadata }) => !prepared.has(metadata.uid ?? ""));
  return [
    ...(nothing === undefined ? [] : [nothing]),
    ...pods.flatMap((pod) => claimsElsewhere(pod, dra, extended)),
    ...driverWarnings(dra, open, cache),
  ];
}

const claimsOf = ({ sources }: Node, pod: Pod): readonly ResourceClaim[] =>
  podClaims(pod, sources.gates.extended).flatMap((podClaim) => {
    const named = claimName(pod, podClaim);
    const found =
      named.ok && named.value.name !== null ? sources.claim(podNamespace(pod), named.value.name) : undefined;
    return found === undefined ? [] : [found];
  });

function knownClaim(info: ClaimInfo, names: ReturnType<typeof podNames>): ClaimsDecision["known"][number] {
  const { namespace, name, uid, podUids, prepared, drivers } = info;
  return {
    namespace,
    name,
    uid,
    pods: [...podUids].sort().map(names),
    prepared,
    drivers: driversOf(info).map((driver) => {
      const devices = drivers.get(driver)?.devices ?? [];
      return {
        driver,
        devices: devices.map(({ poolName, deviceName }) => `${poolName}/${deviceName}`),
        cdiDevices: devices.flatMap(({ cdiDeviceIds }) => cdiDeviceIds ?? []),
      };
    }),
  };
}

/** The calls per driver for the pod's claims, and what its containers get. */
function preparedPod(node: Node, pod: Pod): PodOfClaims {
  const { cache, dra, sources, unanswered, reasons } = node;
  const claims = podClaimsOf(node, pod);
  const calls: DraCall[] = [];
  const steps = prepareResources(cache, pod, sources);
  let step = steps.next();
  while (step.done !== true) {
    if (step.value === "store") {
      step = steps.next();
      continue;
    }
    calls.push(callOf(dra, step.value));
    step = steps.next(answerOf(dra, step.value, unanswered));
  }
  const error = step.value;
  const containers = error === undefined ? containersOf(pod).map((one) => containerOf(node, pod, one)) : [];
  const at = namespacedPodName(pod);
  if (error !== undefined) reasons.add("claim_refused", at, "message", { message: error });
  for (const { container, cdiDevices, pending } of containers) {
    if (cdiDevices.length > 0)
      reasons.add("cdi_devices_given", at, "containers", { container, devices: cdiDevices.join(",") });
    if (pending.length > 0)
      reasons.add("devices_not_known", at, "containers", { container, drivers: pending.join(",") });
  }
  return {
    pod: podRef(pod),
    message: error === undefined ? null : `Failed to prepare dynamic resources: ${error}`,
    claims,
    calls,
    containers,
  };
}

/** The state of each of the pod's claims before anything is done. */
function podClaimsOf({ cache, prepared, sources, reasons }: Node, pod: Pod): PodOfClaims["claims"] {
  let isRefused = false;
  const at = namespacedPodName(pod);
  return podClaims(pod, sources.gates.extended).map((podClaim) => {
    const named = claimName(pod, podClaim);
    const head = { entry: podClaim.name ?? "", claim: named.ok ? named.value.name : null };
    if (isRefused) return { ...head, state: "not-reached", drivers: [] };
    const checked = checkClaim(pod, podClaim, sources, cache.behaviour);
    isRefused = !checked.ok || (checked.value !== null && isStale(cache, checked.value));
    if (!checked.ok || isRefused) return { ...head, state: "refused", drivers: [] };
    if (checked.value === null) {
      reasons.add("claim_not_needed", at, "claims", { entry: head.entry });
      return { ...head, state: "not-needed", drivers: [] };
    }
    const { claim } = checked.value;
    const info = cache.get(podNamespace(pod), claim.metadata.name);
    const isPrepared = info?.prepared === true;
    const state = !isPrepared ? "to-prepare" : prepared.has(info.uid) ? "prepared" : "to-join";
    const drivers = reportedDrivers(info?.drivers ?? checked.value.drivers, isPrepared);
    const numbers = { claim: claim.metadata.name, drivers: drivers.map(({ driver }) => driver).join(",") };
    reasons.add(STATE_REASON[state], at, "claims", numbers);
    for (const { driver, call } of drivers) {
      if (call === "left-out") reasons.add("driver_left_out", at, "claims", { claim: claim.metadata.name, driver });
    }
    return { ...head, state, drivers };
  });
}
const STATE_REASON = {
  prepared: "claim_prepared",
  "to-prepare": "claim_to_prepare",
  "to-join": "claim_to_join",
} as const;
const isStale = (cache: ClaimInfoCache, { claim: { metadata } }: CheckedClaim): boolean => {
  const info = cache.get(metadata.namespace ?? "default", metadata.name);
  return info !== undefined && info.uid !== (metadata.uid ?? "");
};
const reportedDrivers = (
  drivers: CheckedClaim["drivers"],
  isPrepared: boolean,
): PodOfClaims["claims"][number]["drivers"] =>
  [...drivers.keys()].sort().map((driver) => {
    const isLeftOut = skipsOperation(drivers.get(driver) as DriverState, "NodePrepareResources");
    return { driver, call: isLeftOut ? "left-out" : isPrepared ? "done" : "to-make" };
  });

const driverOf = ({ drivers = [] }: Dra, name: string) => drivers.find((one) => one.name === name);
function callOf(dra: Dra, { driver, operation, claims }: DriverCall): DraCall {
  const known = driverOf(dra, driver);
  const service = known === undefined ? undefined : registeredService(known);
  return { driver, service: service?.ok === true ? service.value : null, operation, claims };
}
/** A driver's posted answer; a claim without one counts as prepared, with unknown devices. */
function answerOf(dra: Dra, { driver, claims }: DriverCall, unanswered: Set<string>): DriverAnswer {
  const entries = claims.map(({ uid }) => {
    const answer = driverOf(dra, driver)?.answers?.find(({ claim }) => claim === uid);
    if (answer === undefined) unanswered.add(`${uid} ${driver}`);
    const devices = (answer?.devices ?? []).map(
      ({ poolName, deviceName, shareId, requestNames, cdiDeviceIds }): PreparedDevice => ({
        poolName,
        deviceName,
        shareId: shareId ?? null,
        requestNames: requestNames ?? null,
        cdiDeviceIds: cdiDeviceIds ?? null,
      }),
    );
    return [uid, { devices, ...(answer?.error === undefined ? {} : { error: answer.error }) }] as const;
  });
  return { claims: new Map(entries) };
}

function containerOf(
  { cache, sources, unanswered, warnings }: Node,
  pod: Pod,
  container: Container,
): PodOfClaims["containers"][number] {
  const devices = containerDevices(cache, pod, container, sources.gates.extended);
  const used = usedRequests(pod, container, sources.gates.extended, cache.behaviour);
  const infos = (used.ok ? used.value : []).map(({ claim }) => cache.get(podNamespace(pod), claim));
  const pendingOf = (info: ClaimInfo): readonly string[] =>
    driversOf(info).filter((driver) => unanswered.has(`${info.uid} ${driver}`));
  const pending = infos.flatMap((info) => (info === undefined ? [] : pendingOf(info)));
  const isOpen = (info: ClaimInfo): boolean => pendingOf(info).length > 0;
  const request = { claim: sources.claim, extended: sources.gates.extended, isOpen };
  warnings.push(...requestsWithoutDevice(cache, pod, container, request));
  return {
    container: container.name,
    cdiDevices: devices.ok ? devices.value : [],
    pending: [...new Set(pending)].sort(),
    error: devices.ok ? null : devices.error,
  };
}

/**
 * The claims that are unprepared: those of pods that ended or are being deleted, once their containers have stopped;
 * those of unknown pods, at the next reconcile.
 */
function unpreparedClaims(
  node: Node,
  names: ReturnType<typeof podNames>,
  asked: Pod | null,
): ClaimsDecision["givenBack"] {
  const { snapshot, cache, sources } = node;
  const here = new Map([...podsOfNode(snapshot), ...(asked === null ? [] : [asked])].map((pod) => [podUid(pod), pod]));
  const leaving = [...here.values()].filter((pod) => isLeaving(pod) && cache.ofPod(podUid(pod) ?? "").length > 0);
  const known = new Set(
    [...podsHere(snapshot), ...leaving, ...(asked === null ? [] : [asked])].map((pod) => podUid(pod) ?? ""),
  );
  const stopped = leaving.map((pod) => {
    const of = claimNames(cache, pod, sources.gates.extended);
    const names = of.ok ? of.value : [];
    const back = backOf(node, podUid(pod) ?? "", podNamespace(pod), names);
    return { pod: podRef(pod), when: "containers-stopped" as const, ...back, error: of.ok ? back.error : of.error };
  });
  const reconciled = (snapshot.pods === undefined ? [] : removedPods(cache, known)).map(
    ({ uid, namespace, names: of }) => ({
      pod: names(uid),
      when: "reconcile" as const,
      ...backOf(node, uid, namespace, of),
    }),
  );
  return [...stopped, ...reconciled];
}
function backOf({ cache, dra, sources, reasons }: Node, uid: string, namespace: string, names: readonly string[]) {
  const { leaving, kept, calls } = detachClaims(cache, uid, namespace, names);
  for (const { name } of leaving) reasons.add("claim_given_back", `${namespace}/${name}`, "givenBack", { pod: uid });
  for (const { name, podUids } of kept)
    reasons.add("claim_kept", `${namespace}/${name}`, "givenBack", { pod: uid, pods: podUids.size });
  const error = calls.map(({ driver }) => notRegistered(driver, sources.isRegistered)).find((one) => one !== undefined);
  return {
    claims: leaving.map(({ name }) => name),
    kept: kept.map(({ name }) => name),
    calls: calls.map((call) => callOf(dra, call)),
    error: error ?? null,
  };
}

const lacksTime = ({ kubeletConfiguration: config, assignments, observedAt }: EffectiveSnapshot): boolean =>
  gateOn(config, "ResourceHealthStatus") && assignments?.dra_health_state !== undefined && observedAt === undefined;
function healthOf({ snapshot, cache }: Node, pods: readonly Pod[]): ClaimsDecision["health"] {
  const { kubeletConfiguration: config, assignments, observedAt } = snapshot;
  if (!gateOn(config, "ResourceHealthStatus")) return [];
  // without a time, no reported health is known to be current, and the answer needs it
  const healthState = observedAt === undefined ? undefined : assignments?.dra_health_state;
  const now = epochMs(observedAt === undefined ? 0 : Date.parse(observedAt));
  const health = healthAt(readHealth(healthState, cache.behaviour), now);
  const messages = gateOn(config, "ResourceHealthStatusMessage");
  return pods.flatMap((pod) =>
    pod.spec.containers.flatMap((container) => {
      const claims = claimHealth(cache, pod, container, health, messages);
      return claims.length === 0 ? [] : [{ pod: podRef(pod), container: container.name, claims }];
    }),
  );
}
