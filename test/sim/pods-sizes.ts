/** The sums of the resources of a pod's containers, limited to what stories use. */
export interface Sizes {
  /** The CPUs that admission counts. */
  readonly cpuMilli: number;
  /** Container name -> number of exclusive CPUs. */
  readonly exclusive: ReadonlyMap<string, number>;
  readonly memoryRequest: number;
  /** The sum of all memory limits in bytes; null: some containers have no limit. */
  readonly memoryLimit: number | null;
  /** The limits of each container; null: none. */
  readonly containers: readonly ContainerSize[];
}
interface ContainerSize {
  readonly name: string;
  readonly cpuMilli: number;
  readonly memory: number;
  readonly isLimited: boolean;
}
interface Asking {
  readonly name: string;
  readonly resources?: {
    readonly requests?: { readonly cpu: string; readonly memory: string };
    readonly limits?: unknown;
  };
}

const MIB = 2 ** 20;
const known = new WeakMap<object, Sizes>();

/** The sizes of a v1.Pod whose amounts are in `m` and `Mi`, and whose limits equal its requests or are absent. */
export function sizesOf(object: object): Sizes {
  const before = known.get(object);
  if (before !== undefined) return before;
  const { spec } = object as { readonly spec: { readonly containers: Asking[]; readonly initContainers?: unknown[] } };
  const containers = spec.containers.map(({ name, resources = {} }) => ({
    name,
    cpuMilli: Number.parseInt(resources.requests?.cpu ?? "0", 10),
    memory: Number.parseInt(resources.requests?.memory ?? "0", 10) * MIB,
    isLimited: resources.limits !== undefined,
  }));
  const isGuaranteed = spec.initContainers === undefined && containers.every(({ isLimited }) => isLimited);
  const sum = (of: "cpuMilli" | "memory"): number => containers.reduce((total, one) => total + one[of], 0);
  const alone = containers.filter(({ cpuMilli }) => isGuaranteed && cpuMilli % 1000 === 0);
  const found: Sizes = {
    cpuMilli: sum("cpuMilli"),
    exclusive: new Map(alone.map(({ name, cpuMilli }) => [name, cpuMilli / 1000])),
    memoryRequest: sum("memory"),
    memoryLimit: isGuaranteed ? sum("memory") : null,
    containers,
  };
  known.set(object, found);
  return found;
}
