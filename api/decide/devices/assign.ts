import { err, ok, type Result } from "../../base/result.ts";
import { type AllocateError, maskOf, type NumaMask, type NumaNodes } from "../topology/hint.ts";
import { type Device, hasTopology, type Inventory, isKnown } from "./inventory.ts";
import { naturalOrder } from "./natural-order.ts";
import type { PreferredAllocation } from "./preferred.ts";

/** A container's request for one resource, with everything that affects it. */
interface DeviceRequest {
  readonly podUid: string;
  readonly container: string;
  readonly resource: string;
  readonly required: number;
  /** The devices of the resource that the container holds; undefined: none recorded. */
  readonly held: ReadonlySet<string> | undefined;
  /** The devices that the pod's init containers have left. */
  readonly reusable: ReadonlySet<string>;
  /** Every device of the resource that any container holds. */
  readonly inUse: ReadonlySet<string>;
  /** True: sources are not ready, and the container was running when the kubelet started. */
  readonly running: boolean;
  readonly affinity: NumaMask | null;
}

export const SOURCES = ["reused", "preferred", "aligned", "unaligned", "no-affinity"] as const;
/** The list from which a device was taken. */
export type Source = (typeof SOURCES)[number];
/** Devices taken from one list, in the order in which they were taken. */
export interface TakenDevices {
  readonly from: Source;
  readonly ids: readonly string[];
}
/** The result; with `running` and `held` nothing is assigned. */
type Assigned =
  | { readonly kind: "running" | "held" }
  | { readonly kind: "given"; readonly taken: readonly TakenDevices[] };

const fail = (message: string): Result<never, AllocateError> => err({ message });

/**
 * Chooses the container's devices, with checks in the kubelet's order and the kubelet's errors. Where the kubelet
 * follows a Go map, ids are taken in natural order; where a plugin prefers more devices than needed, in the order of
 * its answer. kubelet 1.36: devicesToAllocate.
 */
export function devicesToAllocate(
  request: DeviceRequest,
  inventory: Inventory | undefined,
  nodes: NumaNodes,
  prefer: PreferredAllocation,
): Result<Assigned, AllocateError> {
  const { podUid, container, resource, required, held } = request;
  if (held !== undefined && held.size !== required) {
    const change = `from ${held.size} to ${required}`;
    return fail(
      `pod ${quoted(podUid)} container ${quoted(container)} changed request for resource ${quoted(resource)} ${change}`,
    );
  }
  // a running container has its devices: only the kubelet restarted
  if (request.running) return ok({ kind: "running" });
  if (!isKnown(inventory)) return fail(`cannot allocate unregistered device ${resource}`);
  const { healthy } = inventory;
  if (healthy.size === 0) {
    return fail(`no healthy devices present; cannot allocate unhealthy devices ${resource}`);
  }
  if (held !== undefined && [...held].some((id) => !healthy.has(id))) {
    return fail(`previously allocated devices are no longer healthy; cannot allocate unhealthy devices ${resource}`);
  }
  if (held !== undefined || required === 0) return ok({ kind: "held" });
  return take(request, inventory, nodes, prefer);
}
/** Go's %q for names that the API server accepted. */
const quoted = (name: string): string => JSON.stringify(name);

function take(
  request: DeviceRequest,
  inventory: Inventory,
  nodes: NumaNodes,
  prefer: PreferredAllocation,
): Result<Assigned, AllocateError> {
  const { resource, required, reusable, inUse, affinity } = request;
  const picked = picking(required);
  // the kubelet does not check the health of reused devices
  if (picked.take("reused", [...reusable].sort(naturalOrder))) return ok({ kind: "given", taken: picked.taken });
  const available = inventory.ids.filter((id) => inventory.healthy.has(id) && !inUse.has(id));
  if (available.length < picked.needed()) {
    const counts = `Requested: ${picked.needed()}, Available: ${available.length}`;
    return fail(`requested number of devices unavailable for ${resource}. ${counts}`);
  }
  const lists = filterByAffinity(inventory, available, affinity, nodes);
  const ask = (among: readonly string[]): Result<readonly string[], AllocateError> => {
    if (inventory.options.getPreferredAllocationAvailable !== true) return ok([]);
    const mustInclude = [...picked.ids].sort(naturalOrder);
    const question = {
      resource,
      available: [...among, ...mustInclude].sort(naturalOrder),
      mustInclude,
      size: required,
    };
    const answer = prefer(question) ?? ok([]);
    if (!answer.ok) return fail(`device plugin GetPreferredAllocation rpc failed with err: ${answer.error}`);
    const usable = new Set(among);
    return ok(answer.value.filter((id) => usable.has(id)));
  };
  const failed =
    picked.needed() < lists.aligned.length ? fromAligned(picked, lists, ask) : fromAll(picked, lists, available, ask);
  return failed ?? ok({ kind: "given", taken: picked.taken });
}

type Ask = (among: readonly string[]) => Result<readonly string[], AllocateError>;
type Failed = Result<never, AllocateError> | undefined;

/** There are more aligned devices than needed: the plugin may choose among them. */
function fromAligned(picked: DeviceSelection, { aligned }: Filtered, ask: Ask): Failed {
  const preferred = ask(aligned);
  if (!preferred.ok) return preferred;
  if (!picked.take("preferred", preferred.value)) picked.take("aligned", aligned);
  return undefined;
}

/** Takes every aligned device, then the plugin's choice among the rest. */
function fromAll(
  picked: DeviceSelection,
  { aligned, unaligned, noAffinity }: Filtered,
  available: readonly string[],
  ask: Ask,
): Failed {
  if (picked.take("aligned", aligned)) return undefined;
  const preferred = ask(available.filter((id) => !picked.ids.has(id)));
  if (!preferred.ok) return preferred;
  if (picked.take("preferred", preferred.value) || picked.take("unaligned", unaligned)) return undefined;
  picked.take("no-affinity", noAffinity);
  return undefined;
}

interface DeviceSelection {
  readonly ids: ReadonlySet<string>;
  readonly taken: readonly TakenDevices[];
  /** The number of devices still needed. */
  needed(): number;
  /**
   * Takes devices from the front of the list that are needed and not taken yet; returns true when no more are needed.
   */
  take(from: Source, list: readonly string[]): boolean;
}
function picking(required: number): DeviceSelection {
  const ids = new Set<string>();
  const taken: TakenDevices[] = [];
  const needed = (): number => required - ids.size;
  const takeFrom = (from: Source, list: readonly string[]): boolean => {
    const got: string[] = [];
    for (const id of list) {
      if (needed() === 0) break;
      if (ids.has(id)) continue;
      ids.add(id);
      got.push(id);
    }
    if (got.length > 0) taken.push({ from, ids: got });
    return needed() === 0;
  };
  return { ids, taken, needed, take: takeFrom };
}

/** The available devices by place, each list in the order of `available`. */
interface Filtered {
  /** Devices on a node of the affinity. */
  readonly aligned: readonly string[];
  /** Devices on other nodes only. */
  readonly unaligned: readonly string[];
  /** Devices without a known node, or all if there is no affinity. */
  readonly noAffinity: readonly string[];
}

/**
 * Sorts devices by the affinity; null: none. A device on several nodes is aligned if any of them is. The kubelet sorts
 * nodes by their devices first, but puts the result into sets, which loses the order. kubelet 1.36: filterByAffinity.
 */
export function filterByAffinity(
  inventory: Inventory,
  available: readonly string[],
  affinity: NumaMask | null,
  nodes: NumaNodes,
): Filtered {
  if (affinity === null || !hasTopology(inventory)) return { aligned: [], unaligned: [], noAffinity: available };
  const aligned: string[] = [];
  const unaligned: string[] = [];
  const noAffinity: string[] = [];
  for (const id of available) {
    const { numaNodes } = inventory.devices.get(id) as Device;
    if (numaNodes === undefined || numaNodes.length === 0) noAffinity.push(id);
    else if ((maskOf(nodes, numaNodes) & affinity) !== 0) aligned.push(id);
    else unaligned.push(id);
  }
  return { aligned, unaligned, noAffinity };
}
