import { type Json, snapshot } from "./snapshots.ts";

export const MI = 2 ** 20;
export const HOUR = 3_600_000;
/** The time of the first of several summaries. */
export const START = Date.parse("2026-11-14T00:00:00Z");

/** CPU in millicores, memory in MiB. */
export interface Used {
  readonly cpu: number;
  readonly memoryMi: number;
}
const usage = ({ cpu, memoryMi }: Used, time: string): Json => ({
  cpu: { time, usageNanoCores: cpu * 1_000_000 },
  memory: { time, workingSetBytes: memoryMi * MI },
});

/** The answer of the kubelet's /stats/summary `hours` after the start: the node, and the system containers in it. */
export function summary(
  hours: number,
  node: Used,
  containers: Readonly<Record<string, Used>>,
  more: Json = {},
  pods: readonly Json[] = [],
): Json {
  const time = new Date(START + hours * HOUR).toISOString();
  const systemContainers = Object.entries(containers).map(([name, used]) => ({ name, ...usage(used, time) }));
  return { node: { nodeName: "n1", systemContainers, ...usage(node, time), ...more }, pods };
}

/** A node's usage of which all but 30m of CPU and 250 MiB is accounted to the system and the pods. */
export const WHOLE: Used = { cpu: 1000, memoryMi: 2500 };
export const CONTAINERS = {
  kubelet: { cpu: 40, memoryMi: 100 },
  runtime: { cpu: 30, memoryMi: 150 },
  pods: { cpu: 900, memoryMi: 2000 },
} as const;

/** A snapshot of a node with such a summary, in which the kubelet uses `kubeletMi`. */
export const measuredSnapshot = (hours: number, kubeletMi: number, nodeName = "n1"): Json => {
  const stats = summary(hours, WHOLE, { ...CONTAINERS, kubelet: { cpu: 40, memoryMi: kubeletMi } }, { nodeName });
  const node = { metadata: { name: nodeName }, status: { capacity: { cpu: "4", memory: "8Gi", pods: "110" } } };
  return snapshot({ observedAt: new Date(START + hours * HOUR).toISOString(), node, stats });
};
