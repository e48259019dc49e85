import { containersToKill, effectiveGracePeriod, type StopContainer } from "../lifecycle/container-termination.ts";
import { type ForeignSandbox, otherNodeOf } from "../lifecycle/foreign-sandbox.ts";
import type { RunnablePod } from "../lifecycle/pod.ts";
import type { DesiredPods } from "../pods/records/desired-pods.ts";

/** A sandbox that is stopped, with its containers in the order in which they may end. */
export interface TakeoverStop {
  readonly pod: RunnablePod;
  readonly sandbox: ForeignSandbox;
  readonly containers: readonly StopContainer[];
  /** Seconds from the beginning of a container's end to its kill. */
  readonly graceSeconds: number;
}
/** One that goes on, and why. */
export interface TakeoverStay {
  readonly sandbox: ForeignSandbox;
  readonly why: string;
}
export interface TakeoverPlan {
  /** In their order: those of the lowest priority first, as a node's shutdown ends pods. */
  readonly stops: readonly TakeoverStop[];
  readonly stays: readonly TakeoverStay[];
}
export type PodsWanted = Pick<DesiredPods, "pods" | "refused">;

/**
 * Plans what a take-over would stop of the sandboxes that others run in the runtime. Pure. INVARIANT: only a sandbox whose
 * namespace and name are those of a pod that Nodewise is to run, and can. `asked`: names (`NAMESPACE/NAME`) that it is limited
 * to; null: all.
 */
export function takeoverPlan(
  foreign: readonly ForeignSandbox[],
  { pods, refused }: PodsWanted,
  asked: ReadonlySet<string> | null,
): TakeoverPlan {
  const byName = new Map([...pods.values()].map((pod) => [fullName(pod), pod]));
  const stops: TakeoverStop[] = [];
  const stays: TakeoverStay[] = [];
  for (const sandbox of foreign) {
    const name = fullName(sandbox);
    const pod = byName.get(name);
    const unfit = refused.find((one) => one.pod === name);
    const stay = (why: string) => stays.push({ sandbox, why });
    if (sandbox.otherOwner !== null)
      stay(`the Nodewise daemon of cgroup root ${sandbox.otherOwner} runs it: let that one end it`);
    else if (unfit !== undefined)
      stay(`its manifest cannot be run here: ${unfit.faults[0]?.path}: ${unfit.faults[0]?.message}`);
    else if (pod === undefined) stay(whyNobodys(sandbox, pods));
    else if (asked !== null && !asked.has(name)) stay("not asked for");
    else stops.push(stopOf(pod, sandbox));
  }
  return { stops: stops.toSorted(inOrder), stays };
}

export const fullName = ({ namespace, name }: Pick<RunnablePod, "namespace" | "name">): string =>
  `${namespace}/${name}`;

export const stopOf = (pod: RunnablePod, sandbox: ForeignSandbox): TakeoverStop => ({
  pod,
  sandbox,
  containers: containersToKill(pod, { ...sandbox, sandboxes: [] }),
  graceSeconds: effectiveGracePeriod(pod, null),
});

function whyNobodys(sandbox: ForeignSandbox, pods: PodsWanted["pods"]): string {
  for (const pod of pods.values()) {
    const nodeName = otherNodeOf(pod, sandbox);
    if (nodeName !== null)
      return `seems to be ${fullName(pod)} of a kubelet that calls this node \`${nodeName}\`: give Nodewise that nodeName`;
  }
  return "no manifest names it";
}

const inOrder = (a: TakeoverStop, b: TakeoverStop): number =>
  priorityOf(a) - priorityOf(b) ||
  compare(fullName(a.pod), fullName(b.pod)) ||
  a.sandbox.createdAtMs - b.sandbox.createdAtMs ||
  compare(a.sandbox.id, b.sandbox.id);
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
export const priorityOf = ({ pod }: TakeoverStop): number => pod.spec.priority ?? 0;
