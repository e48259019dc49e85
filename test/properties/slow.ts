import type { Json } from "../kit/snapshots.ts";

/**
 * Simple, slow implementations of the definitions, over the posted objects. They share no code with the implementations
 * that they check.
 */

interface Resources {
  requests?: Record<string, string>;
  limits?: Record<string, string>;
}
export interface RawContainer {
  name: string;
  restartPolicy?: string;
  resources?: Resources;
}
export interface RawPod {
  metadata: { uid: string };
  spec: {
    containers: RawContainer[];
    initContainers?: RawContainer[];
    overhead?: Record<string, string>;
    resources?: Resources;
    nodeName?: string;
  };
  status?: { phase?: string; containerStatuses?: RawStatus[]; initContainerStatuses?: RawStatus[] };
}
interface RawStatus {
  state?: { running?: unknown };
}
export const rawPods = (input: Json): RawPod[] => input["pods"] as RawPod[];

const SCALE: Readonly<Record<string, bigint>> = {
  m: 1n,
  "": 1000n,
  Ki: 1024n * 1000n,
  Mi: 1024n ** 2n * 1000n,
  Gi: 1024n ** 3n * 1000n,
};
/** Parses a quantity of the generator into thousandths. */
export function thousandths(text: string): bigint {
  const digits = /^\d+/.exec(text)?.[0] ?? "";
  const scale = SCALE[text.slice(digits.length)];
  if (digits === "" || scale === undefined) throw new Error(`not a quantity of the generator: ${text}`);
  return BigInt(digits) * scale;
}

const asked = (c: RawContainer, resource: string): bigint | undefined => {
  const text = c.resources?.requests?.[resource] ?? c.resources?.limits?.[resource];
  return text === undefined ? undefined : thousandths(text);
};
/** The highest need at any moment of the pod's life: during each init container, and while everything else runs. */
export function slowRequest(pod: RawPod, resource: string): bigint {
  const overhead = pod.spec.overhead?.[resource];
  const podLevel = pod.spec.resources?.requests?.[resource];
  let most = 0n;
  const moments: RawContainer[][] = [];
  const staying: RawContainer[] = [];
  for (const c of pod.spec.initContainers ?? []) {
    moments.push([...staying, c]);
    if (c.restartPolicy === "Always") staying.push(c);
  }
  moments.push([...staying, ...pod.spec.containers]);
  for (const together of moments) {
    const sum = together.reduce((s, c) => s + (asked(c, resource) ?? 0n), 0n);
    if (sum > most) most = sum;
  }
  const own = podLevel === undefined ? most : thousandths(podLevel);
  return own + (overhead === undefined ? 0n : thousandths(overhead));
}

/**
 * The QoS class by its definition: BestEffort has no requests and limits; Guaranteed has limits equal to its requests.
 */
export function slowClass(pod: RawPod): "Guaranteed" | "Burstable" | "BestEffort" {
  const lists = pod.spec.resources
    ? [pod.spec.resources]
    : [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].map((c) => c.resources ?? {});
  const amount = (list: Resources, of: "requests" | "limits", name: string): bigint => {
    const text =
      of === "requests" && !pod.spec.resources ? (list.requests?.[name] ?? list.limits?.[name]) : list[of]?.[name];
    return text === undefined ? 0n : thousandths(text);
  };
  const sum = (of: "requests" | "limits", name: string): bigint => lists.reduce((s, l) => s + amount(l, of, name), 0n);
  const names = ["cpu", "memory"];
  if (names.every((n) => sum("requests", n) === 0n && sum("limits", n) === 0n)) return "BestEffort";
  const limited = lists.every((l) => names.every((n) => amount(l, "limits", n) > 0n));
  return limited && names.every((n) => sum("requests", n) === sum("limits", n)) ? "Guaranteed" : "Burstable";
}

/**
 * Whether the pod holds its resources: it is on this node and has not ended. A pod that has ended holds them while a
 * container is still being stopped.
 */
export function holds({ status, spec }: RawPod): boolean {
  const all = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])];
  const isStopping = all.some(({ state }) => state?.running !== undefined);
  const isOver = ["Succeeded", "Failed"].includes(status?.phase ?? "") && !isStopping;
  return !isOver && ["", "node"].includes(spec.nodeName ?? "");
}

/** floor(milli * 1024 / 1000) between 2 and 262144. */
export function slowShares(milli: bigint): number {
  const shares = (milli * 1024n) / 1000n;
  return shares < 2n ? 2 : shares > 262_144n ? 262_144 : Number(shares);
}
