import type { CgroupView } from "./cgroup-view.ts";
import type { KnownPod } from "./pod-set.ts";

/** Containers that have started or ended since are looked at together. */
const SOON_MS = 2_000;
/** What could not be written is tried again. */
const RETRY_MS = 10_000;

export interface LastPass {
  readonly atMs: number;
  readonly key: string;
  readonly filesVersion: number;
  readonly view: CgroupView | null;
}

/** What the cgroups depend on: the pods with their resources, and the containers that run. */
export function passKey(living: readonly KnownPod[], versionOf: (known: KnownPod) => number): string {
  const parts = living.map((known) => {
    const running = known.seen?.containers.filter(({ state }) => state === "running").map(({ id }) => id) ?? [];
    return `${known.uid}#${versionOf(known)}:${running.join(",")}`;
  });
  return parts.sort().join(" ");
}

/** Whether the cgroups are to be looked at now: what waits for them does not wait, the rest is kept each `intervalMs`. */
export function isPassDue(
  last: LastPass | null,
  living: readonly KnownPod[],
  now: { readonly atMs: number; readonly key: string; readonly filesVersion: number; readonly intervalMs: number },
): boolean {
  if (last === null || now.filesVersion !== last.filesVersion) return true;
  const age = now.atMs - last.atMs;
  if (age >= now.intervalMs || age < 0) return true;
  const { view } = last;
  if (view === null) return age >= RETRY_MS;
  if (living.some(({ uid, record }) => record.state === "lives" && !view.pods.has(uid))) return true;
  if (now.key !== last.key) return age >= SOON_MS;
  const isFaulty = view.cpusetFault !== null || [...view.pods.values()].some(({ faults }) => faults.length > 0);
  // the runtime may not have heard of it
  const isResized = living.some(({ record }) => record.resize?.actuation !== undefined);
  return (isFaulty || isResized) && age >= RETRY_MS;
}
