import { withoutNulls } from "../../api/base/nulls.ts";
import { noClaims, readClaims, writeClaims } from "../../api/decide/dra/checkpoint.ts";
import type { ClaimInfoCache, PreparedDevice } from "../../api/decide/dra/claim-info.ts";
import { containerDevices } from "../../api/decide/dra/container-devices.ts";
import { claimHealth, healthAt, readHealth } from "../../api/decide/dra/health.ts";
import {
  type ClaimGates,
  type ClaimSources,
  type ClaimSteps,
  type DriverAnswer,
  type DriverCall,
  prepareResources,
} from "../../api/decide/dra/prepare.ts";
import { chooseService, endpointTaken } from "../../api/decide/dra/registration.ts";
import { removedPods, unprepareClaims, unprepareResources } from "../../api/decide/dra/unprepare.ts";
import { containersOf, type Pod, podUid } from "../../api/model/pod.ts";
import { dra, type ResourceClaim } from "../../api/model/resource-claim.ts";
import { epochMs } from "../../api/model/units.ts";
import { isGateOn, type Profile } from "../../api/profiles/profile.ts";
import { decodedPod } from "../kit/pods.ts";
import { type Suite, suite } from "./suite.ts";

/** A case of test/data/claims: the claims, drivers and state of a node, and operations on it. */
interface ClaimsInput {
  readonly gates?: Readonly<Record<string, boolean>>;
  readonly claims?: readonly unknown[];
  readonly drivers?: Readonly<Record<string, readonly string[]>>;
  readonly state?: string;
  readonly health?: Readonly<Record<string, Readonly<Record<string, HealthInput>>>>;
  readonly ops: readonly OpInput[];
}
interface HealthInput {
  readonly health: string;
  readonly message?: string;
  readonly ageSeconds: number;
  readonly timeoutSeconds?: number;
}
interface OpInput {
  readonly op: string;
  readonly pod?: unknown;
  readonly container?: string;
  readonly answers?: Readonly<Record<string, AnswerInput>>;
  readonly driver?: string;
  readonly claims?: readonly unknown[];
  readonly active?: readonly string[];
  readonly services?: readonly string[] | null;
  readonly anyOrder?: boolean;
}
interface AnswerInput {
  readonly fails?: string;
  readonly claims?: Readonly<Record<string, { readonly error?: string; readonly devices?: readonly DeviceInput[] }>>;
  readonly unasked?: readonly string[];
}
interface DeviceInput {
  readonly requests?: readonly string[];
  readonly pool: string;
  readonly device: string;
  readonly cdi?: readonly string[];
  readonly share?: string;
}
type Json = Record<string, unknown>;

const NOW = epochMs(Date.UTC(2026, 0, 31));
const claimsOf = (list: readonly unknown[]): readonly ResourceClaim[] =>
  dra.parse(withoutNulls({ resourceClaims: list })).resourceClaims ?? [];

/** A kubelet that carries out the operations on the case's node. */
class Node {
  readonly profile: Profile;
  readonly input: ClaimsInput;
  readonly drivers: Map<string, readonly string[]>;
  claims: readonly ResourceClaim[];
  file: string | undefined;
  cache: ClaimInfoCache | undefined;
  startError: string | undefined;

  constructor(input: ClaimsInput, profile: Profile) {
    this.profile = profile;
    this.input = input;
    this.claims = claimsOf(input.claims ?? []);
    this.drivers = new Map(Object.entries(input.drivers ?? {}));
    this.file = input.state;
    this.start();
  }
  start(): void {
    const read = readClaims(this.file, this.profile.behaviour.claims);
    if (read.ok) this.cache = read.value;
    else this.startError = read.error;
    if (read.ok && this.file === undefined) this.file = noClaims();
  }
  gate(name: string): boolean {
    return isGateOn(this.profile, this.input.gates ?? {}, name);
  }
  get gates(): ClaimGates {
    return {
      extended: this.gate("DRAExtendedResource"),
      groups: this.gate("DRAWorkloadResourceClaims"),
      optionalOperations: this.gate("DRAOptionalNodeOperations"),
    };
  }
  get sources(): ClaimSources {
    return {
      gates: this.gates,
      claim: (namespace, name) =>
        this.claims.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name),
      isRegistered: (driver) => this.drivers.has(driver),
    };
  }
  carryOut(steps: ClaimSteps, { op, answers = {} }: OpInput): Json {
    const calls: Json[] = [];
    let step = steps.next();
    while (step.done !== true) {
      const { value } = step;
      if (value === "store") {
        this.file = writeClaims(this.cache as ClaimInfoCache);
        step = steps.next();
        continue;
      }
      const messages = value.claims.map(({ namespace, name, uid }) => `${namespace}/${name}/${uid}`);
      calls.push({
        driver: value.driver,
        service: chosen(this.drivers.get(value.driver)),
        method: value.operation,
        // the kubelet reads a leaving pod's claims from a Go map
        claims: op === "prepare" ? messages : messages.sort(),
      });
      step = steps.next(answerOf(value, answers[value.driver], chosen(this.drivers.get(value.driver))));
    }
    return { ...(calls.length === 0 ? {} : { calls }), ...(step.value === undefined ? {} : { error: step.value }) };
  }
}
const chosen = (services: readonly string[] = []): string => {
  const service = chooseService(services);
  return service.ok ? service.value.replace(".DRAPlugin", "") : "";
};

function answerOf({ claims, operation }: DriverCall, answer: AnswerInput = {}, service: string): DriverAnswer {
  if (answer.fails !== undefined) return { failed: `rpc error: code = Unknown desc = ${answer.fails}` };
  const uids = [...(answer.unasked ?? []), ...claims.map(({ uid }) => uid)].filter((uid) => answer.claims?.[uid]);
  const reported = uids.map((uid) => {
    const { error, devices = [] } = answer.claims?.[uid] ?? {};
    const list = operation === "NodePrepareResources" ? devices.map((device) => deviceOf(device, service)) : [];
    return [uid, { ...(error === undefined ? {} : { error }), devices: list }] as const;
  });
  return { claims: new Map(reported) };
}
const deviceOf = ({ requests = [], pool, device, cdi = [], share }: DeviceInput, service: string): PreparedDevice => ({
  poolName: pool,
  deviceName: device,
  // v1beta1 has no shareId
  shareId: service === "v1" ? (share ?? null) : null,
  requestNames: requests.length === 0 ? null : requests,
  cdiDeviceIds: cdi.length === 0 ? null : cdi,
});

/** The claims in the state file, in the vectors' form. */
function stateOf(text: string): Json {
  const { Data } = JSON.parse(text) as { Data: string };
  const list = (JSON.parse(Data).ClaimInfoStateList ?? []) as readonly Json[];
  return { ...(list.length === 0 ? {} : { state: list }), ...(list.length < 2 ? { file: text } : {}) };
}

const podOps: Readonly<Record<string, (node: Node, op: OpInput, pod: Pod, cache: ClaimInfoCache) => Json>> = {
  prepare: (node, op, pod, cache) => node.carryOut(prepareResources(cache, pod, node.sources), op),
  unprepare: (node, op, pod, cache) => node.carryOut(unprepareResources(cache, pod, node.sources), op),
};

/**
 * Unprepares the claims of removed pods one after another. The kubelet logs a failure, and retries after a minute.
 * kubelet 1.37: reconcileLoop.
 */
function* reconciled(cache: ClaimInfoCache, active: ReadonlySet<string>, sources: ClaimSources): ClaimSteps {
  for (const { uid, namespace, names } of removedPods(cache, active))
    yield* unprepareClaims(cache, uid, namespace, names, sources);
  return undefined;
}

function done(node: Node, op: OpInput): Json {
  const cache = node.cache as ClaimInfoCache;
  const withState = (out: Json): Json => ({ ...out, ...stateOf(node.file as string) });
  if (op.op === "claims") node.claims = claimsOf(op.claims ?? []);
  if (op.op === "claims") return {};
  if (op.op === "register") return registered(node, op);
  if (op.op === "reconcile")
    return withState(node.carryOut(quiet(reconciled(cache, new Set(op.active), node.sources)), op));
  if (op.op === "deregister" || op.op === "restart") {
    if (op.op === "restart") node.start();
    else node.drivers.delete(op.driver as string);
    return withState(node.startError === undefined ? {} : { error: node.startError });
  }
  const pod = decodedPod(op.pod);
  if (op.op === "status") return { status: statusOf(node, pod, cache) };
  if (op.op === "resources") {
    const container = containersOf(pod).find(({ name }) => name === op.container);
    if (container === undefined) return {};
    const devices = containerDevices(cache, pod, container, node.gates.extended);
    if (!devices.ok) return { error: devices.error };
    const cdi = op.anyOrder === true ? devices.value.toSorted() : devices.value;
    return cdi.length === 0 ? {} : { cdi };
  }
  const out = podOps[op.op]?.(node, op, pod, cache) ?? {};
  const uid = podUid(pod) as string;
  return withState({ ...out, mightNeedToUnprepare: { [uid]: cache.ofPod(uid).length > 0 } });
}

/** Runs the steps; a failure is logged and not returned. */
function* quiet(steps: ClaimSteps): ClaimSteps {
  yield* steps;
  return undefined;
}

function registered(node: Node, { driver = "", services }: OpInput): Json {
  const endpoint = `/plugins/${driver}.sock`;
  const service = chooseService(services ?? []);
  if (!service.ok) {
    return {
      error: `invalid supported gRPC versions of DRA driver plugin ${driver} at endpoint ${endpoint}: ${service.error}`,
    };
  }
  if (node.drivers.has(driver)) return { error: endpointTaken(driver, endpoint) };
  node.drivers.set(driver, services ?? []);
  return {};
}

function statusOf(node: Node, pod: Pod, cache: ClaimInfoCache): Json {
  const file = Object.entries(node.input.health ?? {}).map(([driver, devices]) => {
    const Devices = Object.entries(devices).map(([key, { health, message, ageSeconds, timeoutSeconds = 0 }]) => [
      key,
      {
        Health: health,
        Message: message ?? "",
        LastUpdated: new Date(NOW - ageSeconds * 1000).toISOString(),
        HealthCheckTimeout: timeoutSeconds * 1e9,
      },
    ]);
    return [driver, { Devices: Object.fromEntries(Devices) }];
  });
  const health = healthAt(readHealth(JSON.stringify(Object.fromEntries(file)), cache.behaviour), NOW);
  const messages = node.gate("ResourceHealthStatusMessage");
  const reported = pod.spec.containers.map((container) => {
    const status = claimHealth(cache, pod, container, health, messages);
    return [container.name, status.length === 0 ? null : status];
  });
  return Object.fromEntries(reported);
}

const claims = suite({
  read: (input: ClaimsInput) => input,
  decide: (input, profile) => {
    const node = new Node(input, profile);
    if (node.startError !== undefined) return { start: node.startError };
    return { ops: input.ops.map((op) => done(node, op)) };
  },
  show: (decided) => decided,
});

export const CLAIM_SUITES: Readonly<Record<string, Suite>> = { claims };
