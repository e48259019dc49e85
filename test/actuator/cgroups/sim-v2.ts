import { keep, refuse, type SimCgroup, type SimRules, type Verdict } from "./sim-kernel.ts";
import { NO_LIMIT, parseInteger, parseList, parsePages, printList } from "./sim-numbers.ts";
import { type SimMachine, writePids } from "./sim-v1.ts";

/** In the kernel's order. */
const CONTROLLERS = ["cpuset", "cpu", "memory", "hugetlb", "pids"] as const;
const HUGE_PAGE = 2n ** 21n;

const FILES: Readonly<Record<(typeof CONTROLLERS)[number], Readonly<Record<string, string>>>> = {
  cpu: { "cpu.weight": "100", "cpu.max": "max 100000" },
  cpuset: { "cpuset.cpus": "", "cpuset.mems": "" },
  memory: {
    "memory.min": "0",
    "memory.low": "0",
    "memory.high": "max",
    "memory.max": "max",
    "memory.swap.max": "max",
    "memory.oom.group": "0",
    "memory.current": "0",
    "memory.peak": "0",
    "memory.reclaim": "",
  },
  pids: { "pids.max": "max" },
  hugetlb: { "hugetlb.2MB.max": "max", "hugetlb.2MB.rsvd.max": "max" },
};

export const mountinfoV2 = (mountRoot: string): string => `32 24 0:29 / ${mountRoot} rw,nosuid - cgroup2 cgroup2 rw`;
export const v2Files = (controllers: readonly string[]): Readonly<Record<string, string>> =>
  Object.assign({}, ...CONTROLLERS.filter((name) => controllers.includes(name)).map((name) => FILES[name]));
export const v2Controllers: readonly string[] = CONTROLLERS;

/** `oomKills` counts the cgroups whose memory.max was set below their usage. */
export function v2Rules(machine: SimMachine): SimRules & { oomKills: number } {
  const rules = {
    version: 2 as const,
    mounts: [""],
    oomKills: 0,
    fill(cgroup: SimCgroup): void {
      cgroup.files.set("cgroup.procs", "");
      cgroup.files.set("cgroup.subtree_control", cgroup.parent === null ? CONTROLLERS.join(" ") : "");
      cgroup.files.set(
        "cgroup.controllers",
        cgroup.parent?.files.get("cgroup.subtree_control") ?? CONTROLLERS.join(" "),
      );
      if (cgroup.parent !== null) giveFiles(cgroup, words(cgroup.files.get("cgroup.controllers")));
    },
    write(cgroup: SimCgroup, file: string, value: string): Verdict {
      if (file === "memory.max" && (parsePages(value, "max") ?? 0n) < cgroup.usage) rules.oomKills++;
      return writeV2(cgroup, file, value, machine);
    },
  };
  return rules;
}

const words = (text: string | undefined): string[] => (text ?? "").split(" ").filter((word) => word !== "");

function giveFiles(cgroup: SimCgroup, controllers: readonly string[]): void {
  for (const [file, text] of Object.entries(v2Files(controllers))) {
    if (!cgroup.files.has(file)) cgroup.files.set(file, text);
  }
}

function writeV2(cgroup: SimCgroup, file: string, value: string, machine: SimMachine): Verdict {
  if (file === "cgroup.subtree_control") return enable(cgroup, value);
  if (file === "cpu.weight") return writeWeight(value);
  if (file === "cpu.max") return writeMax(cgroup.files.get(file) ?? "", value);
  if (file === "cpuset.cpus") return writeList(value, machine.cpus);
  if (file === "cpuset.mems") return writeList(value, machine.mems);
  if (file === "memory.oom.group") return /^[01]$/.test(value) ? keep(value) : refuse("EINVAL");
  if (file === "memory.reclaim") return reclaim(cgroup, value);
  if (file === "pids.max") return writePids(value);
  const limit = parsePages(value, "max");
  if (limit === null) return refuse("EINVAL");
  if (limit === NO_LIMIT) return keep("max");
  return keep((file.startsWith("hugetlb.") ? (limit / HUGE_PAGE) * HUGE_PAGE : limit).toString());
}

function writeWeight(value: string): Verdict {
  const n = parseInteger(value);
  if (n === null || n < 0n) return refuse("EINVAL");
  return n < 1n || n > 10_000n ? refuse("ERANGE") : keep(n.toString());
}

function writeMax(had: string, value: string): Verdict {
  const [quota = "", period = had.split(" ")[1] ?? "100000"] = value.split(" ");
  const p = parseInteger(period);
  if (p === null || p < 1000n || p > 1_000_000n) return refuse("EINVAL");
  if (quota === "max") return keep(`max ${p}`);
  const q = parseInteger(quota);
  return q === null || q < 1000n ? refuse("EINVAL") : keep(`${q} ${p}`);
}

function writeList(value: string, all: string): Verdict {
  const wanted = parseList(value);
  if (wanted === null) return refuse("EINVAL");
  if (Math.max(-1, ...wanted) > Math.max(...(parseList(all) ?? []))) return refuse("ERANGE");
  return keep(printList(wanted));
}

function enable(cgroup: SimCgroup, value: string): Verdict {
  const has = words(cgroup.files.get("cgroup.controllers"));
  const enabled = new Set(words(cgroup.files.get("cgroup.subtree_control")));
  for (const word of words(value)) {
    if (!word.startsWith("+")) return refuse("EINVAL");
    if (!has.includes(word.slice(1))) return refuse("ENOENT");
    enabled.add(word.slice(1));
  }
  if (cgroup.parent !== null && cgroup.processes.size > 0) return refuse("EBUSY");
  const text = CONTROLLERS.filter((name) => enabled.has(name)).join(" ");
  for (const child of cgroup.children.values()) {
    child.files.set("cgroup.controllers", text);
    giveFiles(child, words(text));
  }
  return keep(text);
}

function reclaim(cgroup: SimCgroup, value: string): Verdict {
  const wanted = parseInteger(value) ?? 0n;
  const freed = wanted < cgroup.reclaimable ? wanted : cgroup.reclaimable;
  cgroup.usage -= freed;
  cgroup.reclaimable -= freed;
  return freed < wanted ? refuse("EAGAIN") : keep("");
}
