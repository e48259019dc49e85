import { type Amount, add, compare, ZERO } from "../../model/amount.ts";
import type { AllocationFault } from "../../model/claims.ts";
import type { Node, RequiredNodes, Taint, Toleration } from "../../model/placement.ts";
import { type Quantity, quantityOf } from "../../model/quantity.ts";
import type { AllocatedDevice, Dra, ResourceClaim, ResourceSlice, SliceDevice } from "../../model/resource-claim.ts";
import { matchesTerms } from "../admission/node-affinity.ts";
import { tolerates } from "../admission/predicates.ts";

/** Finds faults in the scheduler's allocation, which was made for another state of the node, or another node. */
export function allocationFaults(
  claims: readonly ResourceClaim[],
  { resourceClaims = [], resourceSlices, deviceClasses }: Dra,
  node: Node | undefined,
): readonly AllocationFault[] {
  const held = resourceClaims.flatMap(holdings);
  const holders = Map.groupBy(held, ({ result }) => deviceKey(result));
  const overdrawn =
    resourceSlices === undefined
      ? []
      : [
          ...overdrawnBy("counter-overdrawn", counters(held, resourceSlices)),
          ...overdrawnBy("capacity-overdrawn", capacities(held, resourceSlices)),
        ];
  return claims.flatMap((claim) => {
    const results = claim.status?.allocation?.devices?.results ?? [];
    const name = claimText(claim);
    const faults = results.flatMap((result) => {
      const others = (holders.get(deviceKey(result)) ?? []).filter((one) => excludes(result, one.result));
      const whose = others.map(({ holder }) => (holder === name ? "this claim once more" : holder));
      return [
        ...(resourceSlices === undefined ? [] : sliceFault(result, resourceSlices, node)),
        ...(whose.length > 0 && result.adminAccess !== true
          ? [fault(result, "given-twice", `it is given to ${whose.join(", ")} as well`)]
          : []),
        ...overdrawn.filter(({ by }) => by.has(deviceKey(result))).map((one) => fault(result, one.code, one.message)),
      ];
    });
    const elsewhere = claim.status?.allocation?.nodeSelector;
    if (elsewhere !== undefined && node !== undefined && !selects(elsewhere, node)) {
      faults.push(fault(results[0] ?? { driver: "" }, "other-node", "the allocation as a whole is for other nodes"));
    }
    return [...faults, ...requestFaults(claim, results, deviceClasses)].map((one) => ({ claim: name, ...one }));
  });
}
type Fault = Omit<AllocationFault, "claim">;
const claimText = ({ metadata }: ResourceClaim): string => `${metadata.namespace ?? "default"}/${metadata.name}`;
const fault = (
  { request = "", driver, pool = "", device = "" }: AllocatedDevice,
  code: Fault["fault"],
  message: string,
): Fault => ({ request, driver, pool, device, fault: code, message });

const deviceKey = ({ driver, pool = "", device = "" }: AllocatedDevice): string => `${driver}/${pool}/${device}`;
interface HeldDevice {
  readonly result: AllocatedDevice;
  /** The claim's text. */
  readonly holder: string;
}
/** The devices of a claim; a device with admin access does not exclude others. */
const holdings = (claim: ResourceClaim): readonly HeldDevice[] =>
  (claim.status?.allocation?.devices?.results ?? [])
    .filter(({ adminAccess }) => adminAccess !== true)
    .map((result) => ({ result, holder: claimText(claim) }));
/** Whether two allocations exclude each other: shares of a device can coexist, but not with the whole device. */
const excludes = (one: AllocatedDevice, other: AllocatedDevice): boolean =>
  one !== other && (one.shareID === undefined || other.shareID === undefined);

/**
 * The fault of a device's slice: only the newest generation of a pool counts, and a pool with missing slices cannot be
 * allocated from. kubernetes 1.37: GatherPools.
 */
function sliceFault(
  result: AllocatedDevice,
  slices: readonly ResourceSlice[],
  node: Node | undefined,
): readonly Fault[] {
  const { driver, pool = "", device = "" } = result;
  const { all, current, newest } = poolOf(result, slices);
  if (all.length === 0) return [fault(result, "no-slice", `no ResourceSlice is of driver ${driver} and pool ${pool}`)];
  const found = deviceIn(current, device);
  if (found === undefined) {
    const old = deviceIn(all, device);
    return [
      old === undefined
        ? fault(result, "no-device", `no ResourceSlice of pool ${pool} has it`)
        : fault(
            result,
            "old-generation",
            `only generation ${old.slice.spec.pool.generation ?? 0} of pool ${pool} has it, the newest is ${newest}`,
          ),
    ];
  }
  const faults: Fault[] = [];
  const wanted = found.slice.spec.pool.resourceSliceCount ?? current.length;
  if (current.length < wanted) {
    faults.push(fault(result, "incomplete-pool", `pool ${pool} has ${current.length} of ${wanted} ResourceSlices`));
  }
  const having = current.flatMap((slice) =>
    (slice.spec.devices ?? []).filter(({ name }) => name === device).map(() => slice.metadata.name),
  );
  if (having.length > 1) {
    const where = new Set(having).size === 1 ? `${having[0]}, ${having.length} times` : having.join(", ");
    const message = `generation ${newest} of pool ${pool} has it more than once, in ResourceSlice ${where}: nothing is given from such a pool`;
    faults.push(fault(result, "twice-in-pool", message));
  }
  if (result.shareID !== undefined && found.device.allowMultipleAllocations !== true)
    faults.push(
      fault(
        result,
        "not-shareable",
        "a share of it is given, and its driver does not allow shares (allowMultipleAllocations)",
      ),
    );
  const where = found.slice.spec.perDeviceNodeSelection === true ? found.device : found.slice.spec;
  const elsewhere = elsewhereText(where, node);
  if (elsewhere !== undefined) faults.push(fault(result, "other-node", elsewhere));
  const taint = found.device.taints?.find((one) => !isHarmless(result.tolerations ?? [], one));
  if (taint !== undefined) {
    const { key, value = "", effect } = taint;
    faults.push(
      fault(result, "tainted", `its taint ${key}${value === "" ? "" : `=${value}`}:${effect} is not tolerated`),
    );
  }
  return faults;
}

/** The slices of a device's pool, and those of its newest generation, which count. */
function poolOf({ driver, pool = "" }: AllocatedDevice, slices: readonly ResourceSlice[]) {
  const all = slices.filter(({ spec }) => spec.driver === driver && spec.pool.name === pool);
  const newest = Math.max(...all.map(({ spec }) => spec.pool.generation ?? 0));
  return { all, newest, current: all.filter(({ spec }) => (spec.pool.generation ?? 0) === newest) };
}

interface Overdrawn {
  readonly code: Fault["fault"];
  /** Keys of the devices that use it. */
  readonly by: ReadonlySet<string>;
  readonly message: string;
}
/** What devices, or shares of one, use in total. */
interface Drawn {
  readonly name: string;
  readonly has: Quantity;
  readonly draws: Draw[];
}
interface Draw {
  readonly key: string;
  readonly value: Quantity;
  /** The device and its holder. */
  readonly text: string;
}
/** The entry of a key, created on first use. */
const drawnIn = (all: Map<string, Drawn>, at: string, name: string, has: Quantity): Drawn => {
  const one = all.get(at) ?? { name, has, draws: [] };
  all.set(at, one);
  return one;
};

/**
 * The counters that allocated devices consume. A device counts once, however many shares are allocated. kubernetes
 * 1.37: checkAvailableCounters.
 */
function counters(held: readonly HeldDevice[], slices: readonly ResourceSlice[]): readonly Drawn[] {
  const given = new Map(held.map((one) => [deviceKey(one.result), one]));
  const all = new Map<string, Drawn>();
  for (const [key, { result, holder }] of given) {
    const { current } = poolOf(result, slices);
    const found = deviceIn(current, result.device ?? "");
    for (const { counterSet, counters = {} } of found?.device.consumesCounters ?? []) {
      const [set] = [found?.slice as ResourceSlice, ...current].flatMap(({ spec }) =>
        (spec.sharedCounters ?? []).filter(({ name }) => name === counterSet),
      );
      for (const [counter, { value }] of Object.entries(counters)) {
        const has = set?.counters?.[counter]?.value;
        if (has === undefined) continue;
        const at = `${result.driver}/${result.pool}/${counterSet}/${counter}`;
        const { draws } = drawnIn(all, at, `counter ${counter} of ${counterSet}`, has);
        draws.push({ key, value, text: `${result.device} of ${holder}` });
      }
    }
  }
  return [...all.values()];
}

/** The capacities that shares of devices consume. kubernetes 1.37: CmpRequestOverCapacity. */
function capacities(held: readonly HeldDevice[], slices: readonly ResourceSlice[]): readonly Drawn[] {
  const all = new Map<string, Drawn>();
  for (const { result, holder } of held) {
    const key = deviceKey(result);
    const consumed = Object.entries(result.consumedCapacity ?? {});
    const found = consumed.length === 0 ? undefined : deviceIn(poolOf(result, slices).current, result.device ?? "");
    for (const [capacity, value] of consumed) {
      const has = found?.device.capacity?.[capacity]?.value;
      if (has === undefined) continue;
      const { draws } = drawnIn(all, `${key}/${capacity}`, `capacity ${capacity} of ${result.device}`, has);
      draws.push({ key, value, text: `a share of ${holder}` });
    }
  }
  return [...all.values()];
}

/** The entries that are used beyond their total. */
function overdrawnBy(code: Overdrawn["code"], drawn: readonly Drawn[]): readonly Overdrawn[] {
  return drawn.flatMap(({ name, has, draws }) => {
    const sum = draws.reduce<Amount>((all, { value }) => add(all, value.amount), ZERO);
    if (compare(sum, has.amount) <= 0) return [];
    const each = draws.map(({ text, value }) => `${text} takes ${value.text}`).join(", ");
    const what = code === "counter-overdrawn" ? "the devices that are given" : "the shares that are given";
    const message = `${name} has ${has.text}, and ${what} take ${quantityOf(sum, has.format).text}: ${each}`;
    return [{ code, by: new Set(draws.map(({ key }) => key)), message }];
  });
}

function deviceIn(slices: readonly ResourceSlice[], name: string) {
  for (const slice of slices) {
    const device = slice.spec.devices?.find((one) => one.name === name);
    if (device !== undefined) return { slice, device };
  }
  return undefined;
}

/** The slices with devices on the node, and these devices; the slice, or each device, names its nodes. */
export function slicesHere({ resourceSlices = [] }: Dra = {}, node: Node | undefined): readonly ResourceSlice[] {
  const isHere = (where: DeviceNodeFields): boolean => elsewhereText(where, node) === undefined;
  return resourceSlices.flatMap((slice) => {
    if (slice.spec.perDeviceNodeSelection !== true) return isHere(slice.spec) ? [slice] : [];
    const devices = (slice.spec.devices ?? []).filter(isHere);
    return devices.length === 0 ? [] : [{ ...slice, spec: { ...slice.spec, devices } }];
  });
}

/** The fields that say on which nodes devices are. */
type DeviceNodeFields = Pick<SliceDevice, "nodeName" | "nodeSelector">;
/** Why devices are not on the node; undefined: they are, or the node is not known. */
function elsewhereText(where: DeviceNodeFields, node: Node | undefined): string | undefined {
  const name = node?.metadata.name;
  if (name === undefined) return undefined;
  if (where.nodeName !== undefined && where.nodeName !== name) return `it is on node ${where.nodeName}`;
  return where.nodeSelector === undefined || selects(where.nodeSelector, node as Node)
    ? undefined
    : "its node selector does not select this node";
}
const selects = ({ nodeSelectorTerms }: RequiredNodes, { metadata }: Node): boolean =>
  matchesTerms(nodeSelectorTerms, metadata.labels ?? {}, metadata.name);

/**
 * Whether a taint has no effect here, such as one with the effect `None`. kubernetes 1.37:
 * resourceclaim.ToleratesTaint.
 */
const isHarmless = (tolerations: readonly Toleration[], taint: Taint): boolean =>
  (taint.effect !== "NoSchedule" && taint.effect !== "NoExecute") || tolerates(tolerations, taint, false);

/**
 * Faults of requests that the claim no longer has, and of missing classes, which determine how devices are prepared.
 */
function requestFaults(
  { spec }: ResourceClaim,
  results: readonly AllocatedDevice[],
  deviceClasses: Dra["deviceClasses"],
): readonly Fault[] {
  const requests = spec?.devices?.requests ?? [];
  const known = new Set(deviceClasses?.map(({ metadata }) => metadata.name));
  return results.flatMap((result) => {
    const [name, sub] = (result.request ?? "").split("/");
    const request = requests.find((one) => one.name === name);
    const chosen = sub === undefined ? request?.exactly : request?.firstAvailable?.find((one) => one.name === sub);
    // a claim posted without its spec has unknown requests
    if (requests.length > 0 && (request === undefined || (sub !== undefined && chosen === undefined)))
      return [fault(result, "no-request", `the claim has no request ${result.request ?? ""}`)];
    const missing = deviceClasses === undefined ? undefined : chosen?.deviceClassName;
    return missing === undefined || known.has(missing)
      ? []
      : [fault(result, "no-class", `its DeviceClass ${missing} is not there`)];
  });
}
