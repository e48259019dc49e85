import { podAddresses } from "../lifecycle/env.ts";
import { latestOf } from "../lifecycle/instances.ts";
import type { PodContainer } from "../lifecycle/pod.ts";
import { shouldStart } from "../lifecycle/restart.ts";
import type { PodStatus } from "../lifecycle/status/status.ts";
import type { ProbedContainer, ProbedPod } from "../probes/probed.ts";
import type { ContainerRow } from "../status/node-status.ts";
import { fieldsOf, listOf, textOf } from "./fields.ts";
import type { KnownPod } from "./pod-set.ts";

/** What the daemon before this one told last of a pod's containers. */
export type LastTold = ReadonlyMap<string, readonly Pick<ContainerRow, "name" | "id" | "ready" | "started">[]>;

export interface ProbedParts {
  readonly known: KnownPod;
  readonly status: PodStatus;
  readonly hostIPs: readonly string[];
  readonly last: LastTold;
}

const probedIn = ({ pod: { spec } }: KnownPod): readonly PodContainer[] => [
  ...spec.initContainers.filter(({ isSidecar }) => isSidecar),
  ...spec.containers,
];
/** One of its containers has a probe. */
export const isProbed = (known: KnownPod): boolean =>
  probedIn(known).some(({ probes }) => Object.values(probes).some((probe) => probe !== null));

/** A pod as its probes see it. */
export function probedPod({ known, status, hostIPs, last }: ProbedParts): ProbedPod {
  const { uid, pod, record, seen } = known;
  const before = last.get(uid) ?? [];
  const podIPs = seen?.sandboxes[0]?.ips ?? [];
  const told = status.conditions.find(({ type }) => type === "Ready")?.status === "True";
  return {
    uid,
    namespace: pod.namespace,
    name: pod.name,
    owner: ownerOf(pod.object),
    podIP: podAddresses(pod, { hostIPs, podIPs })[0] ?? "",
    deletionAtMs: record.state === "ends" ? (record.end?.sinceMs ?? null) : (pod.deletion?.atMs ?? null),
    phase: status.phase,
    wasReady: told || (before.length > 0 && before.every(({ ready }) => ready)),
    containers: probedIn(known).map((container) => probedContainer(known, container, before)),
  };
}

function probedContainer({ pod, seen }: KnownPod, container: PodContainer, last: readonly LastRow[]): ProbedContainer {
  const { name, isSidecar, ports, env, probes } = container;
  const latest = seen === null ? undefined : latestOf(seen, name);
  const before = last.find((row) => row.name === name);
  return {
    name,
    isSidecar,
    ports,
    env,
    probes,
    id: latest?.id ?? null,
    state: latest?.state === "running" ? "running" : latest?.state === "exited" ? "terminated" : "waiting",
    startedAtMs: latest?.startedAtMs ?? null,
    willRestart: shouldStart(pod, container, latest),
    wasStarted: before !== undefined && before.id === latest?.id ? (before.started ?? null) : null,
  };
}
type LastRow = LastTold extends ReadonlyMap<string, readonly (infer Row)[]> ? Row : never;

/** Of its controller; null: it has none. */
function ownerOf(object: Readonly<Record<string, unknown>>): string | null {
  const { ownerReferences } = fieldsOf(object["metadata"]);
  const owner = listOf(ownerReferences).find(({ controller }) => controller === true);
  return owner === undefined ? null : `${textOf(owner["kind"])}/${textOf(owner["uid"])}`;
}
