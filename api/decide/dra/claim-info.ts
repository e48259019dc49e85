import { byKey } from "../../model/order.ts";
import type { Behaviour } from "../../profiles/profile.ts";

/** A device as its driver described it to the kubelet. Null is Go's nil. kubelet 1.37: state.Device. */
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
  /** Calls that the driver does without: NodePrepareResources, NodeUnprepareResources, `*` for both. */
  readonly skips: readonly string[];
}
export const NODE_OPERATIONS = ["NodePrepareResources", "NodeUnprepareResources"] as const;
export type NodeOperation = (typeof NODE_OPERATIONS)[number];
export const doesWithout = ({ skips }: DriverState, operation: NodeOperation): boolean =>
  skips.includes("*") || skips.includes(operation);

/** How a driver is told of a claim. */
export interface ClaimRef {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}
/** The kubelet's knowledge of a claim. kubelet 1.37: ClaimInfo. */
export interface ClaimInfo extends ClaimRef {
  readonly podUids: Set<string>;
  /** By driver. */
  readonly drivers: Map<string, DriverState>;
  /** This kubelet has had an answer of each driver; no file keeps it. */
  prepared: boolean;
  /** The last pod has gone, and the drivers are being asked: no pod may join. */
  unpreparing: boolean;
}

/** The claims that pods of a node use, by namespace and name. kubelet 1.37: claimInfoCache. */
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
  /** In the order of their names; the kubelet walks a Go map. */
  list(): readonly ClaimInfo[] {
    return [...this.#claims].sort(byKey).map(([, claim]) => claim);
  }
  /** Those that the pod refers to. kubelet 1.37: hasPodReference. */
  ofPod(podUid: string): readonly ClaimInfo[] {
    return this.list().filter(({ podUids }) => podUids.has(podUid));
  }
}

/** Names in order; the kubelet walks a Go map. */
export const driversOf = ({ drivers }: Pick<ClaimInfo, "drivers">): readonly string[] => [...drivers.keys()].sort();
