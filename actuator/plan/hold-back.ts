import type { CgroupLevel, CgroupsDecision } from "../../api/model/decision.ts";
import { ruleOf } from "./cgroup-files.ts";
import type { CgroupState } from "./state.ts";
import { amountOf, shareOf } from "./values.ts";

/**
 * Files whose value follows from all pods together. `sum`: more pods make it more; `rest`: what the pods leave, more pods
 * make it less. kubelet 1.36: setCPUCgroupConfig, setMemoryReserve, setMemoryQoS.
 */
const FOLLOWS: Partial<Readonly<Record<CgroupLevel, Readonly<Record<string, "sum" | "rest">>>>> = {
  node: { "memory.min": "sum", "memory.low": "sum" },
  qos: {
    "cpu.shares": "sum",
    "cpu.weight": "sum",
    "memory.min": "sum",
    "memory.low": "sum",
    "memory.limit_in_bytes": "rest",
    "memory.max": "rest",
  },
};

export interface HeldBack {
  /** Without the values that are held back. */
  readonly decision: CgroupsDecision;
  /** `/kubepods/burstable cpu.shares`, in the decision's order. */
  readonly held: readonly string[];
}

/**
 * What may be written while some pods could not be read: a value that follows from all of them moves only the way that
 * the missing ones would move it too; else it stays as it is. A cgroup that is not there yet gets what was decided.
 */
export function holdBack(decision: CgroupsDecision, state: CgroupState): HeldBack {
  const held: string[] = [];
  const cgroups = decision.cgroups.map((cgroup) => {
    const follows = FOLLOWS[cgroup.level] ?? {};
    const files = cgroup.files.filter(({ path: file, value }) => {
      const now = state.cgroups[cgroup.path]?.files[file];
      const how = follows[file];
      if (how === undefined || now === undefined || !movesBack(state, file, how, now, value)) return true;
      held.push(`${cgroup.path} ${file}`);
      return false;
    });
    return { ...cgroup, files };
  });
  return { decision: { ...decision, cgroups }, held };
}

function movesBack({ version, pageSize }: CgroupState, file: string, how: "sum" | "rest", now: string, to: string) {
  const rule = ruleOf(version, file);
  if (rule === null) return false;
  const sizeOf = (text: string) => (rule.kind === "share" ? shareOf(rule, text) : amountOf(rule, text, pageSize));
  const [old, next] = [sizeOf(now), sizeOf(to)];
  if (old === null || next === null) return false;
  return how === "sum" ? next < old : next > old;
}
