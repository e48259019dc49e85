import type { RunnablePod, SpecFault } from "../lifecycle/pod.ts";
import { runnablePod } from "../lifecycle/spec/runnable-pod.ts";
import type { PodsRead, Problem } from "../ports.ts";

export interface RefusedManifest {
  /** `NAMESPACE/NAME`, as far as the object tells. */
  readonly pod: string;
  readonly faults: readonly SpecFault[];
}
/** The pods that should run, by uid, in the order of their source. */
export interface DesiredPods {
  readonly pods: ReadonlyMap<string, RunnablePod>;
  /** What this daemon cannot run as it is written. */
  readonly refused: readonly RefusedManifest[];
  /** False: a pod that is missing here need not be gone. */
  readonly whole: boolean;
  readonly problems: readonly Problem[];
  readonly notices: readonly Problem[];
}

/** Checks what a source told; what it tells again unchanged is not checked again. Null: the source could not be read. */
export function desiredPodsReader(): (read: PodsRead) => DesiredPods | null {
  let checked = new Map<unknown, ReturnType<typeof runnablePod>>();
  let last: { readonly read: PodsRead; readonly desired: DesiredPods } | null = null;
  return (read) => {
    if (read.pods === null) return null;
    if (last?.read === read) return last.desired;
    const before = checked;
    checked = new Map(read.pods.map((object) => [object, before.get(object) ?? runnablePod(object)]));
    const desired = desiredOf(read, checked);
    last = { read, desired };
    return desired;
  };
}

function desiredOf(read: PodsRead, checked: ReadonlyMap<unknown, ReturnType<typeof runnablePod>>): DesiredPods {
  const pods = new Map<string, RunnablePod>();
  const refused: RefusedManifest[] = [];
  for (const [object, pod] of checked) {
    if (pod.ok) pods.set(pod.value.uid, pod.value);
    else refused.push({ pod: nameOf(object), faults: pod.error });
  }
  const { whole, problems, notices } = read;
  return { pods, refused, whole, problems, notices };
}

export function nameOf(object: unknown): string {
  const { metadata } = (object ?? {}) as { metadata?: { namespace?: unknown; name?: unknown } };
  return `${String(metadata?.namespace ?? "default")}/${String(metadata?.name ?? "?")}`;
}
