import type { RuntimeContainer, RuntimeSandbox } from "../../model/runtime.ts";
import type { Keeping, Ledger } from "./ledger.ts";
import { goneBecause, type PodState } from "./pod-fates.ts";
import { type SandboxTarget, sandboxTarget } from "./targets.ts";
import { byAge, isTied } from "./unix-nanos.ts";

export interface SandboxPass {
  readonly sandboxes: readonly RuntimeSandbox[];
  /** That the pass has left. */
  readonly containers: readonly RuntimeContainer[];
  readonly fateOf: (uid: string) => PodState;
  readonly underPressure: boolean;
}

/**
 * The sandboxes that are not ready and hold no container any more: all of a pod that is gone, else all but the pod's
 * newest, which stays whatever its state. Each is stopped first. That all sources are ready is not asked for here, but
 * without it no pod that is not posted counts as gone.
 *
 * Order where Go's maps have none: pods by uid; in a pod oldest first, of one moment the smaller id.
 * kubelet 1.36: evictSandboxes.
 */
export function evictSandboxes(pass: SandboxPass, ledger: Ledger): void {
  const holding = new Map<string, number>();
  for (const { podSandboxId } of pass.containers) {
    if (podSandboxId !== undefined) holding.set(podSandboxId, (holding.get(podSandboxId) ?? 0) + 1);
  }
  const kept: (readonly [SandboxTarget, Keeping])[] = [];
  for (const [uid, list] of byPod(pass.sandboxes)) {
    const pod = pass.fateOf(uid);
    const gone = goneBecause(pod, pass.underPressure);
    for (let i = 0; i < list.length; i++) {
      const entry = list[i] as SandboxTarget;
      const newer = list.length - 1 - i;
      const keeping =
        inUse(entry.made, holding.get(entry.made.id) ?? 0) ?? (gone === null && newer === 0 ? newest(pod) : null);
      if (keeping !== null) {
        kept.push([entry, keeping]);
        continue;
      }
      const because = gone ?? ({ why: "older-sandbox", code: "older_sandbox", numbers: { newer } } as const);
      ledger.take(entry, because, true, isTied(list, i));
    }
  }
  for (const [entry, because] of kept) ledger.leave(entry, because);
}

function inUse(s: RuntimeSandbox, containers: number): Keeping | null {
  if (s.state === "SANDBOX_READY") return { why: "sandbox-ready", code: "sandbox_ready" };
  if (containers === 0) return null;
  return { why: "sandbox-has-containers", code: "sandbox_has_containers", numbers: { containers } };
}
const newest = ({ fate, because }: PodState): Keeping =>
  fate === "unsynced" ? { why: "sources-not-ready", code: because } : { why: "newest-sandbox", code: "newest_sandbox" };

function byPod(sandboxes: readonly RuntimeSandbox[]): readonly (readonly [string, readonly SandboxTarget[]])[] {
  const byUid = new Map<string, SandboxTarget[]>();
  for (const s of sandboxes) {
    const list = byUid.get(s.metadata.uid);
    if (list === undefined) byUid.set(s.metadata.uid, [sandboxTarget(s)]);
    else list.push(sandboxTarget(s));
  }
  for (const list of byUid.values()) list.sort(byAge);
  return [...byUid].sort(([a], [b]) => (a < b ? -1 : 1));
}
