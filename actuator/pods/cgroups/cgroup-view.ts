import { posix } from "node:path";
import { type SandboxValues, sandboxValues } from "../../../api/decide/cgroups/container-config.ts";
import { NO_QUOTA } from "../../../api/decide/resources/cpu-convert.ts";
import type { QuantityList } from "../../../api/model/allocatable.ts";
import type { CgroupPlan, CgroupsDecision, CgroupValues } from "../../../api/model/cgroups.ts";
import type { EffectiveConfiguration } from "../../../api/profiles/effective.ts";
import type { StepResult } from "../../apply/steps.ts";
import { decodedPod } from "../../lifecycle/decoded-pod.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import type { PassReport } from "../../pass/loop.ts";

/** What a pass over the cgroups decided and found for one pod. */
export interface PodCgroups {
  /** Path of the pod's cgroup, below the root cgroup. */
  readonly path: string;
  /** The values by container name. */
  readonly values: ReadonlyMap<string, CgroupValues>;
  /** Running containers: id -> cgroup. */
  readonly containers: ReadonlyMap<string, string>;
  /** The values by container id. */
  readonly byId: ReadonlyMap<string, CgroupValues>;
  /** The pod's own limit in bytes; null: none. */
  readonly memory: number | null;
  /** True: containers of the pod have exclusive CPUs, or quotas are off, so the pod's cgroup has no quota. */
  readonly isWithoutQuota: boolean;
  /** Why the cgroup is not as decided, in one line; null: it is, so containers may start in it. */
  readonly fault: string | null;
  /** The faults of the pod's cgroups, including containers'; failures come first. */
  readonly faults: readonly string[];
}
export interface CgroupView {
  readonly version: 1 | 2;
  readonly driver: "cgroupfs" | "systemd";
  readonly pods: ReadonlyMap<string, PodCgroups>;
  /** Why a CPU set could not be moved: exclusive CPUs are not exclusive yet. */
  readonly cpusetFault: string | null;
  /** Running containers whose values were written: the runtime must be told them too, so that its record agrees. */
  readonly rewritten: readonly { readonly containerId: string; readonly values: CgroupValues }[];
}

/** The outcome of the last pass over the cgroups, for the work on pods. */
export class CurrentCgroups {
  /** The view; null: nothing was decided yet. */
  view: CgroupView | null = null;
  /** The node's allocatable as last decided; null: not decided yet. */
  allocatable: QuantityList | null = null;

  /** The memory limit of a pod's cgroup, in bytes; null: none, or not decided yet. */
  memoryLimitOf(uid: string): number | null {
    const limit = this.view?.pods.get(uid)?.memory ?? -1;
    return limit > 0 ? limit : null;
  }
  /**
   * The values for a pod's sandbox; undefined: its cgroup is not decided yet. Only a Guaranteed pod may have exclusive
   * CPUs; without them it has a quota.
   */
  sandboxOf({ uid, object }: RunnablePod, config: EffectiveConfiguration): SandboxValues | undefined {
    const cgroups = this.view?.pods.get(uid);
    const decoded = decodedPod(object);
    if (this.view === null || cgroups === undefined || decoded === null) return undefined;
    const { version } = this.view;
    return sandboxValues(decoded, config, { version, exclusiveCpus: cgroups.isWithoutQuota });
  }
  /** A pod's cgroup in the runtime's form: absolute, or the slice name of the systemd driver; empty: not decided yet. */
  parentOf(uid: string, root: string): string {
    if (this.view === null) return "";
    const path = this.view.pods.get(uid)?.path ?? "";
    return this.view.driver === "systemd" ? posix.basename(path) : posix.join(root, path);
  }
}

/** The view; null: nothing was decided. */
export function cgroupView({ cgroups, applied }: Pick<PassReport, "cgroups" | "applied">): CgroupView | null {
  if (cgroups === null) return null;
  const results = applied?.results ?? [];
  const faults = results.filter(isFault);
  return {
    version: cgroups.version,
    driver: cgroups.driver,
    pods: podsOf(cgroups, faults),
    cpusetFault: faults.find(({ step }) => step.op === "write" && step.file === "cpuset.cpus")?.message ?? null,
    rewritten: rewrittenOf(cgroups, results),
  };
}

interface CgroupViewDraft extends PodCgroups {
  readonly values: Map<string, CgroupValues>;
  readonly containers: Map<string, string>;
  readonly byId: Map<string, CgroupValues>;
  readonly faults: string[];
}
const isFault = ({ status, code }: StepResult): boolean =>
  (status === "failed" || status === "skipped" || status === "rolled_back") && code !== "no_such_file";

function podsOf({ cgroups }: CgroupsDecision, faults: readonly StepResult[]): ReadonlyMap<string, PodCgroups> {
  const pods = new Map<string, CgroupViewDraft>();
  // a failed step says more than those skipped because of it
  const sorted = [...faults].sort((a, b) => Number(a.status === "failed") - Number(b.status === "failed"));
  const faultAt = new Map(sorted.map(({ step, message }) => [step.path, message]));
  const failedAt = new Set(faults.filter(({ status }) => status === "failed").map(({ step }) => step.path));
  for (const { pod, level, path, container, containerId, values } of cgroups) {
    if (pod === null) continue;
    if (level === "pod") {
      pods.set(pod.uid, {
        path,
        values: new Map(),
        containers: new Map(),
        byId: new Map(),
        memory: values.memory ?? null,
        isWithoutQuota: values.cpuQuota === NO_QUOTA,
        fault: faultAt.get(path) ?? null,
        faults: [],
      });
    }
    const filling = pods.get(pod.uid);
    const fault = faultAt.get(path);
    if (fault !== undefined && failedAt.has(path)) filling?.faults.unshift(fault);
    else if (fault !== undefined) filling?.faults.push(fault);
    if (container === null || filling === undefined) continue;
    filling.values.set(container, values);
    if (containerId === null) continue;
    filling.containers.set(containerId, path);
    filling.byId.set(containerId, values);
  }
  return pods;
}

function rewrittenOf({ cgroups }: CgroupsDecision, results: readonly StepResult[]): CgroupView["rewritten"] {
  const written = new Set(
    results.filter((r) => r.status === "applied" && r.step.op === "write").map((r) => r.step.path),
  );
  return cgroups
    .filter((plan): plan is CgroupPlan & { containerId: string } => plan.containerId !== null && written.has(plan.path))
    .map(({ containerId, values }) => ({ containerId, values }));
}
