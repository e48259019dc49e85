import { posix } from "node:path";
import type { Hierarchy } from "../../cgroupfs/hierarchy.ts";
import type { PodRuntime } from "../../containerd/cri.ts";
import type { Problem } from "../../core/interfaces.ts";
import { textOf } from "../../core/read-text.ts";
import { isBelow, type Skip } from "../../plan/step.ts";
import { isPodCgroup } from "../../plan/targets.ts";
import type { PodClock } from "../pod-clock.ts";

/** Access to the machine's processes, to end what is left of a pod. */
export interface Processes {
  /** The process's start in clock ticks since boot, which distinguishes reused ids; undefined: the process has ended. */
  startOf(pid: number): string | undefined;
  nameOf(pid: number): string;
  /** Kills a process; undefined: SIGKILL was sent, or the process has ended; otherwise why not. */
  kill(pid: number): string | undefined;
}

export const systemProcesses: Processes = {
  startOf: (pid) => {
    const stat = textOf(`/proc/${pid}/stat`);
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  },
  nameOf: (pid) => textOf(`/proc/${pid}/comm`).trim() || "?",
  kill: (pid) => {
    try {
      process.kill(pid, "SIGKILL");
      return undefined;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return code === "ESRCH" ? undefined : message;
    }
  },
};

interface Orphan {
  readonly sinceMs: number;
  readonly passes: number;
}
/** The number of regular passes over the cgroups that must have found the processes before they are killed. */
const PASSES = 3;
/** The number of tries. kubelet 1.36: tryKillingCgroupProcesses. */
const ROUNDS = 5;
const MAX_NAMED = 10;

export interface OrphanProcessDeps {
  readonly hierarchy: Hierarchy;
  readonly runtime: Pick<PodRuntime, "pods">;
  readonly clock: PodClock;
  readonly onProblem: (problem: Problem) => void;
  /** Absent: processes are reported, never killed. */
  readonly processes?: Processes;
}
interface Settings {
  readonly cgroupRoot: string;
  readonly intervalMs: number;
}

/**
 * Processes in pod cgroups that belong to no decided pod and no pod in the runtime, such as those of a killed runtime. They are
 * reported, and killed after some passes. INVARIANT: only processes below our root; none of a pod of which the runtime,
 * asked right before, has anything; each only while its cgroup still lists it. kubelet 1.36:
 * podContainerManagerImpl.Destroy.
 */
export class OrphanProcesses {
  readonly #deps: OrphanProcessDeps;
  readonly #settings: Settings;
  #orphans: ReadonlyMap<string, Orphan> = new Map();
  readonly #tried = new Set<string>();

  constructor(deps: OrphanProcessDeps, settings: Settings) {
    this.#deps = deps;
    this.#settings = settings;
  }

  /** `skipped`: from the last pass. Returns the current problems; `killed`: there are emptied cgroups to remove now. */
  async reap(skipped: readonly Skip[]): Promise<{ readonly problems: readonly Problem[]; readonly killed: boolean }> {
    const paths = skipped.flatMap(({ code, path }) => (code === "has_processes" && isPodCgroup(path) ? [path] : []));
    if (paths.length === 0) {
      this.#orphans = new Map();
      this.#tried.clear();
      return { problems: [], killed: false };
    }
    const held = await this.#deps.runtime.pods();
    // a pass without an answer of the runtime does not count
    const lost = held.ok ? paths.filter((path) => ![...held.value.keys()].some((uid) => isOf(path, uid))) : [];
    const before = this.#orphans;
    const nowMs = this.#deps.clock.monotonicMs();
    if (held.ok)
      this.#orphans = new Map(
        lost.map((path) => {
          const { sinceMs = nowMs, passes = 0 } = before.get(path) ?? {};
          return [path, { sinceMs, passes: passes + 1 }] as const;
        }),
      );
    const problems: Problem[] = [];
    let killed = false;
    for (const [path, { sinceMs, passes }] of this.#orphans) {
      const isDue = held.ok && passes >= PASSES && nowMs - sinceMs >= (PASSES - 1) * this.#settings.intervalMs;
      const faults = isDue ? this.#killAll(path) : [];
      // a process that does not die is checked only in the regular passes
      killed ||= isDue && !this.#tried.has(path);
      if (isDue) this.#tried.add(path);
      const pids = this.#pidsIn(path);
      if (pids.length > 0) problems.push(this.#problemOf(path, pids, passes, faults));
    }
    return { problems, killed };
  }

  /** Returns why processes could not be killed. */
  #killAll(path: string): readonly string[] {
    const { processes } = this.#deps;
    if (processes === undefined) return [];
    const faults = new Map<number, string>();
    for (let round = 0; round < ROUNDS; round++) {
      const members = this.#members(path).filter(({ pid }) => pid > 0 && !faults.has(pid));
      if (members.length === 0) break;
      for (const { pid, cgroup } of members) this.#killOne(pid, cgroup, processes, faults);
    }
    return [...faults].map(([pid, why]) => `${pid}: ${why}`);
  }

  #killOne(pid: number, cgroup: string, processes: Processes, faults: Map<number, string>): void {
    const start = processes.startOf(pid);
    const name = processes.nameOf(pid);
    // the id may have been reused
    const isStill = this.#deps.hierarchy.pids(cgroup).includes(pid) && processes.startOf(pid) === start;
    if (start === undefined || pid === process.pid || !isStill) return;
    const fault = processes.kill(pid);
    if (fault !== undefined) faults.set(pid, fault);
    const where = posix.join(this.#settings.cgroupRoot, cgroup);
    if (fault === undefined)
      this.#deps.onProblem({
        from: "pods",
        message: `killed process ${pid} (${name}) in cgroup ${where}: ${NOBODYS}`,
      });
  }

  #members(path: string): readonly { readonly pid: number; readonly cgroup: string }[] {
    const { hierarchy } = this.#deps;
    const cgroups = hierarchy.paths().filter((one) => one === path || isBelow(one, path));
    return cgroups.flatMap((cgroup) => hierarchy.pids(cgroup).map((pid) => ({ pid, cgroup })));
  }
  #pidsIn = (path: string): readonly number[] => [...new Set(this.#members(path).map(({ pid }) => pid))];

  #problemOf(path: string, pids: readonly number[], passes: number, faults: readonly string[]): Problem {
    const { processes } = this.#deps;
    const named = pids.slice(0, MAX_NAMED).map((pid) => `${pid} (${processes?.nameOf(pid) ?? "?"})`);
    const more = pids.length > MAX_NAMED ? ` and ${pids.length - MAX_NAMED} more` : "";
    const next =
      faults.length > 0
        ? `they could not be killed: ${faults.join("; ")}`
        : passes < PASSES
          ? `they are killed if ${PASSES} passes see them`
          : "they are being killed";
    const where = posix.join(this.#settings.cgroupRoot, path);
    return { from: "pods", message: `cgroup ${where} holds processes ${named.join(", ")}${more}: ${NOBODYS}; ${next}` };
  }
}
const NOBODYS = "no pod and no sandbox of the runtime accounts for it";

/** Compares with the pod's cgroup name for the cgroupfs and for the systemd driver. */
function isOf(path: string, uid: string): boolean {
  const name = posix.basename(path);
  return name === `pod${uid}` || name.endsWith(`-pod${uid.replaceAll("-", "_")}.slice`);
}
