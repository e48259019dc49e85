import { posix } from "node:path";
import { isPodCgroup } from "../plan/orphans.ts";
import type { Skip } from "../plan/step.ts";
import { isBelow } from "../plan/tree.ts";
import type { Problem } from "../ports.ts";
import type { ManagerPorts } from "./manager-ports.ts";
import type { Processes } from "./processes.ts";

interface Orphan {
  readonly sinceMs: number;
  readonly passes: number;
}
/** So many passes over the cgroups must have seen it, with the usual time between them. */
const PASSES = 3;
/** kubelet 1.36: tryKillingCgroupProcesses tries so often. */
const ROUNDS = 5;
const MOST_NAMED = 10;

type Ports = Pick<ManagerPorts, "hierarchy" | "runtime" | "clock" | "onProblem" | "processes">;
interface Settings {
  readonly cgroupRoot: string;
  readonly intervalMs: number;
}

/**
 * Processes in cgroups of pods that neither a decision nor the runtime knows: what a runtime that was killed left, and does
 * not list any more. They are told, and killed once that stood for some passes. INVARIANT: none outside the own root; none
 * of a pod that the runtime, asked right before, holds anything of; each only while its cgroup still lists it.
 * kubelet 1.36: podContainerManagerImpl.Destroy.
 */
export class OrphanProcesses {
  readonly #ports: Ports;
  readonly #settings: Settings;
  #orphans: ReadonlyMap<string, Orphan> = new Map();
  readonly #tried = new Set<string>();

  constructor(ports: Ports, settings: Settings) {
    this.#ports = ports;
    this.#settings = settings;
  }

  /** `skipped`: of the last pass. Answers what stands; `killed`: there is something to remove now. */
  async look(skipped: readonly Skip[]): Promise<{ readonly problems: readonly Problem[]; readonly killed: boolean }> {
    const paths = skipped.flatMap(({ code, path }) => (code === "has_processes" && isPodCgroup(path) ? [path] : []));
    if (paths.length === 0) {
      this.#orphans = new Map();
      this.#tried.clear();
      return { problems: [], killed: false };
    }
    const held = await this.#ports.runtime.pods();
    // a pass in which it did not answer counts for nothing
    const lost = held.ok ? paths.filter((path) => ![...held.value.keys()].some((uid) => isOf(path, uid))) : [];
    const before = this.#orphans;
    const nowMs = this.#ports.clock.monotonicMs();
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
      // one that does not die is looked at with the usual passes only
      killed ||= isDue && !this.#tried.has(path);
      if (isDue) this.#tried.add(path);
      const pids = this.#pidsIn(path);
      if (pids.length > 0) problems.push(this.#told(path, pids, passes, faults));
    }
    return { problems, killed };
  }

  /** Answers why some could not be. */
  #killAll(path: string): readonly string[] {
    const { processes } = this.#ports;
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
    // its id may be another process's by now
    const isStill = this.#ports.hierarchy.pids(cgroup).includes(pid) && processes.startOf(pid) === start;
    if (start === undefined || pid === process.pid || !isStill) return;
    const fault = processes.kill(pid);
    if (fault !== undefined) faults.set(pid, fault);
    const where = posix.join(this.#settings.cgroupRoot, cgroup);
    if (fault === undefined)
      this.#ports.onProblem({
        from: "pods",
        message: `killed process ${pid} (${name}) in cgroup ${where}: ${NOBODYS}`,
      });
  }

  #members(path: string): readonly { readonly pid: number; readonly cgroup: string }[] {
    const { hierarchy } = this.#ports;
    const cgroups = hierarchy.paths().filter((one) => one === path || isBelow(one, path));
    return cgroups.flatMap((cgroup) => hierarchy.pids(cgroup).map((pid) => ({ pid, cgroup })));
  }
  #pidsIn = (path: string): readonly number[] => [...new Set(this.#members(path).map(({ pid }) => pid))];

  #told(path: string, pids: readonly number[], passes: number, faults: readonly string[]): Problem {
    const { processes } = this.#ports;
    const named = pids.slice(0, MOST_NAMED).map((pid) => `${pid} (${processes?.nameOf(pid) ?? "?"})`);
    const more = pids.length > MOST_NAMED ? ` and ${pids.length - MOST_NAMED} more` : "";
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

/** The names of the cgroupfs and of the systemd driver. */
function isOf(path: string, uid: string): boolean {
  const name = posix.basename(path);
  return name === `pod${uid}` || name.endsWith(`-pod${uid.replaceAll("-", "_")}.slice`);
}
