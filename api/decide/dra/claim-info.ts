import { byKey } from "../../base/order.ts";
import type { Behaviour } from "../../profiles/profile.ts";

/** A device as its driver reported it to the kubelet. Null is Go's nil. kubelet 1.37: state.Device. */
export interface PreparedDevice {
  readonly poolName: string;
  readonly deviceName: string;
  readonly shareId: string | null;
  readonly requestNames: readonly string[] | null;
  readonly cdiDeviceIds: readonly string[] | null;
}
/** kubelet 1.37: state.DriverState. */
export interface DriverState {
  devices: readonly PreparedDevice[] | null;
  /** Calls that the driver does not need: NodePrepareResources, NodeUnprepareResources, `*` for both. */
  readonly skips: readonly string[];
}
export const NODE_OPERATIONS = ["NodePrepareResources", "NodeUnprepareResources"] as const;
export type NodeOperation = (typeof NODE_OPERATIONS)[number];
export const skipsOperation = ({ skips }: DriverState, operation: NodeOperation): boolean =>
  skips.includes("*") || skips.includes(operation);

/** How a claim is named to a driver. */
export interface ClaimRef {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}
/** What the kubelet knows about a claim. kubelet 1.37: ClaimInfo. */
export interface ClaimInfo extends ClaimRef {
  readonly podUids: Set<string>;
  /** The drivers' states by name. */
  readonly drivers: Map<string, DriverState>;
  /** True: this kubelet has an answer of each driver; no file stores that. */
  prepared: boolean;
  /** True: the last pod has left, and drivers are being called: no pod may join. */
  unpreparing: boolean;
}

/** The claims of a node's pods, by namespace and name. kubelet 1.37: claimInfoCache. */
export class ClaimInfoCache {
  readonly #claims = new Map<string, ClaimInfo>();
  readonly behaviour: Behaviour["claims"];

  constructor(behaviour: Behaviour["claims"], claims: Iterable<ClaimInfo> = []) {
    this.behaviour = behaviour;
    for (const claim of claims) this.add(claim);
  }
  get(namespace: string, name: string): ClaimInfo | undefined {
    return this.#claims.get(`${namespace}/${name}`);
  }
  add(claim: ClaimInfo): void {
    this.#claims.set(`${claim.namespace}/${claim.name}`, claim);
  }
  delete({ namespace, name }: Omit<ClaimRef, "uid">): void {
    this.#claims.delete(`${namespace}/${name}`);
  }
  /** Lists the claims sorted by name, where the kubelet follows a Go map. */
  list(): readonly ClaimInfo[] {
    return [...this.#claims].sort(byKey).map(([, claim]) => claim);
  }
  /** The claims that reference the pod. kubelet 1.37: hasPodReference. */
  ofPod(podUid: string): readonly ClaimInfo[] {
    return this.list().filter(({ podUids }) => podUids.has(podUid));
  }
}

/** The drivers sorted by name, where the kubelet follows a Go map. */
export const driversOf = ({ drivers }: Pick<ClaimInfo, "drivers">): readonly string[] => [...drivers.keys()].sort();
