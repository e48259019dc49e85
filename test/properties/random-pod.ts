import type { Json } from "../kit/snapshots.ts";
import type { Draws } from "./draws.ts";

/** A pod's request in thousandths of a CPU and bytes; undefined: no request. */
interface Wish {
  readonly cpu: number | undefined;
  readonly memory: number | undefined;
}
const cpuText = (milli: number, d: Draws): string =>
  milli % 1000 === 0 && d.chance(2) ? `${milli / 1000}` : `${milli}m`;
const memoryText = (bytes: number, d: Draws): string =>
  bytes % 1024 === 0 && d.chance(2) ? `${bytes / 1024}Ki` : `${bytes}`;
function listOf(wish: Wish, d: Draws): Json {
  return {
    ...(wish.cpu !== undefined && { cpu: cpuText(wish.cpu, d) }),
    ...(wish.memory !== undefined && { memory: memoryText(wish.memory, d) }),
  };
}

type Mood = "guaranteed" | "limited" | "mixed" | "bare";
/** Resources that the API server would accept: no request exceeds its limit. `mood` decides which of them are set. */
function resourcesOf(mood: Mood, d: Draws): Json {
  const cpu = d.chance(6) ? d.below(4) : d.spread(16_000);
  const memory = d.chance(6) ? d.below(4096) : d.spread(2 ** 34) * (d.chance(2) ? 1 : 1024);
  if (mood === "bare") return {};
  if (mood === "guaranteed") return { limits: listOf({ cpu: cpu + 1, memory: memory + 1 }, d) };
  const skip = (): boolean => mood === "mixed" && d.chance(3);
  const limit: Wish = { cpu: skip() ? undefined : cpu + 1, memory: skip() ? undefined : memory + 1 };
  const asks = (most: number | undefined, free: number): number | undefined =>
    d.chance(4) ? undefined : most === undefined ? free : d.below(most + 1);
  const request: Wish = { cpu: asks(limit.cpu, cpu), memory: asks(limit.memory, memory) };
  const pages = d.chance(12) ? { "hugepages-2Mi": `${2 * d.below(8)}Mi` } : {};
  return { limits: { ...listOf(limit, d), ...pages }, requests: { ...listOf(request, d), ...pages } };
}

/** Pod-level resources that cover every container, as the API server requires. */
function podLevel(d: Draws): Json {
  const cpu = 400_000 + d.below(1000);
  const memory = 2 ** 48 + d.below(4096) * 1024;
  const limits = { cpu: `${cpu}m`, memory: `${memory}` };
  return { requests: d.chance(3) ? limits : { cpu: `${300_000 + d.below(1000)}m`, memory: `${2 ** 47}` }, limits };
}

function statusOf(names: readonly string[], uid: string, d: Draws): Json {
  const one = (name: string): Json => {
    if (d.chance(6)) return { name, state: { terminated: { exitCode: 0 } } };
    if (d.chance(6)) return { name, state: { waiting: { reason: "CrashLoopBackOff" } } };
    return { name, containerID: `containerd://${uid}-${name}`, state: { running: {} } };
  };
  return { containerStatuses: names.map(one) };
}

/** A pod with any mix of containers, init containers, sidecars, overhead, pod-level resources and status. */
export function randomPod(uid: string, d: Draws): Json {
  const mood = d.pick<Mood>(["guaranteed", "limited", "mixed", "mixed", "mixed", "bare"]);
  const app = Array.from({ length: 1 + d.below(3) }, (_, i) => ({ name: `c${i}`, resources: resourcesOf(mood, d) }));
  const init = Array.from({ length: d.chance(2) ? d.below(4) : 0 }, (_, i) => ({
    name: `i${i}`,
    resources: resourcesOf(mood === "guaranteed" || d.chance(3) ? mood : d.pick<Mood>(["bare", "limited"]), d),
    ...(d.chance(2) && { restartPolicy: "Always" }),
  }));
  const annotations = d.chance(8) ? { "kubernetes.io/config.source": "file" } : undefined;
  const phase = d.chance(10) ? d.pick(["Succeeded", "Failed"]) : "Running";
  return {
    metadata: { name: `pod-${uid}`, uid, ...(annotations && { annotations }) },
    spec: {
      containers: app,
      ...(init.length > 0 && { initContainers: init }),
      ...(d.chance(4) && { overhead: { cpu: `${d.below(500)}m`, memory: `${d.below(200)}Mi` } }),
      ...(d.chance(8) && { resources: podLevel(d) }),
      ...(d.chance(8) && { priority: d.pick([0, 1000, 2_000_000_000, 2_000_001_000]) }),
      ...(d.chance(10) && { priorityClassName: "system-node-critical" }),
      ...(d.chance(3) && { nodeName: d.pick(["node", "node", "elsewhere"]) }),
    },
    ...(d.chance(2) && {
      status: {
        phase,
        ...statusOf(
          app.map((c) => c.name),
          uid,
          d,
        ),
      },
    }),
  };
}
