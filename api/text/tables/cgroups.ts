import { type CgroupPlan, type CgroupsDecision, type CgroupValues, lastSegment } from "../../model/cgroups.ts";
import { pageSizeName } from "../../model/machine.ts";
import { KERNEL_CFS_PERIOD } from "../../model/units.ts";
import { many } from "../sentences/words.ts";
import { amountText, humanBytes } from "../size.ts";
import { type Color, printable } from "../style.ts";
import { type Cell, type Column, table, treeLines } from "../table.ts";
import type { Shown } from "./shown.ts";

export function cgroupsVerdict({ cgroups, version, driver }: CgroupsDecision): string {
  const pods = new Set(cgroups.flatMap(({ pod }) => (pod === null ? [] : [pod.uid]))).size;
  return `${many(cgroups.length, "cgroup")} for ${many(pods, "pod")}: cgroup v${version}, ${driver} driver.`;
}

interface ValueColumn extends Column {
  /** Empty where the cgroup sets no such value; a column without any is not shown. */
  readonly cell: (values: CgroupValues, isExact: boolean) => string | Cell;
}
const LEVEL_COLOR: Readonly<Record<CgroupPlan["level"], Color | undefined>> = {
  node: "bold",
  qos: "bold",
  pod: "cyan",
  container: undefined,
};

/** The tree of cgroups with pods' and containers' names, and the values of each. */
export function cgroupsTable(shown: Shown<CgroupsDecision>): string {
  const { decision, columns, paint, notesAt } = shown;
  const lines = treeLines(
    decision.cgroups,
    (c) => c.path,
    (c) => c.path.slice(0, c.path.lastIndexOf("/")),
  );
  const values = decision.version === 1 ? V1_COLUMNS : V2_COLUMNS;
  const pods = new Set(decision.cgroups.flatMap(({ pod }) => (pod === null ? [] : [pod.uid]))).size;
  const caption = `cgroup v${decision.version}, ${decision.driver} driver: ${decision.cgroups.length} cgroups, ${pods} pods`;
  const tree = table(
    [{ title: "CGROUP", shrinkTo: 20 }, ...values, { title: "DIRECTORY", giveUp: 1, giveUpTo: "nothing" }],
    lines.map((line) => ({
      cells: [
        cellOf(labelOf(line.item), LEVEL_COLOR[line.item.level]),
        ...values.map(({ cell }) => cell(line.item.values, shown.isExact === true)),
        cellOf(directoryOf(line.item), "dim"),
      ],
      tree: line,
      notes: notesAt(line.item.path).map((note) => paint("dim", `${line.below}  `) + note),
    })),
    columns,
    paint,
  );
  return `${paint("dim", caption)}\n${tree}`;
}
const cellOf = (text: string, color: Color | undefined): Cell => (color === undefined ? { text } : { text, color });

function labelOf(plan: CgroupPlan): string {
  if (plan.container !== null) return printable(plan.container);
  if (plan.pod !== null) return printable(`${plan.pod.namespace}/${plan.pod.name}`);
  return printable(plan.level === "node" ? plan.path : lastSegment(plan.path));
}
const directoryOf = (plan: CgroupPlan): string => {
  if (plan.pod === null) return "";
  return plan.container !== null && plan.containerId === null ? "(not running)" : printable(lastSegment(plan.path));
};

const number = (n: number | undefined): string => (n === undefined ? "" : String(n));
const limit = (n: number | undefined): string => (n !== undefined && n < 0 ? "none" : number(n));

/** CPUs that the quota allows: `0.5`, `none`. */
function cpuLimit({ cpuQuota, cpuPeriod }: CgroupValues): string {
  if (cpuQuota === undefined || cpuQuota === 0) return "";
  return cpuQuota < 0 ? "none" : String(Math.round((cpuQuota / (cpuPeriod ?? KERNEL_CFS_PERIOD)) * 100_000) / 100_000);
}
const quota = (v: CgroupValues): string =>
  v.cpuQuota === undefined || v.cpuQuota <= 0
    ? ""
    : `${String(v.cpuQuota)}/${String(v.cpuPeriod ?? KERNEL_CFS_PERIOD)}`;

/** Limits of huge pages that are not the usual ones: pods usually have 0, tiers none. */
function hugePages({ hugePageLimit }: CgroupValues): string {
  const shown = Object.entries(hugePageLimit ?? {}).filter(([, bytes]) => bytes > 0);
  return shown.map(([size, bytes]) => `${pageSizeName(Number(size))}: ${humanBytes(bytes)}`).join(", ");
}
const bytesColumn = (
  title: string,
  field: "memory" | "memoryMin" | "memoryLow" | "memoryHigh" | "memorySwap",
  giveUp?: number,
): ValueColumn => ({
  title,
  align: "right",
  ...(giveUp === undefined ? {} : { giveUp }),
  cell: ({ [field]: bytes }, isExact) =>
    bytes === undefined || bytes < 0 ? limit(bytes) : amountText("memory", bytes, isExact),
});

const SHARES: ValueColumn = { title: "SHARES", align: "right", cell: (v) => number(v.cpuShares) };
const WEIGHT: ValueColumn = { title: "WEIGHT", align: "right", cell: (v) => number(v.cpuWeight) };
const COMMON: readonly ValueColumn[] = [
  { title: "CPU LIMIT", align: "right", cell: cpuLimit },
  // the column before it has the same limit, in CPUs
  { title: "QUOTA µs", align: "right", giveUp: 2, giveUpTo: "nothing", cell: quota },
  bytesColumn("MEMORY", "memory"),
];
const LAST: readonly ValueColumn[] = [
  { title: "PIDS", align: "right", cell: (v) => limit(v.pidsLimit) },
  { title: "CPUSET", cell: (v) => v.cpusetCpus ?? "" },
  { title: "MEMS", giveUp: 5, cell: (v) => v.cpusetMems ?? "" },
  { title: "HUGE PAGES", giveUp: 6, cell: hugePages },
  { title: "OOM ADJ", align: "right", giveUp: 7, cell: (v) => number(v.oomScoreAdj) },
];
const V1_COLUMNS: readonly ValueColumn[] = [SHARES, ...COMMON, bytesColumn("MEM+SWAP", "memorySwap", 4), ...LAST];
const V2_COLUMNS: readonly ValueColumn[] = [
  WEIGHT,
  ...COMMON,
  bytesColumn("MIN", "memoryMin", 4),
  bytesColumn("LOW", "memoryLow", 4),
  bytesColumn("HIGH", "memoryHigh", 4),
  bytesColumn("SWAP", "memorySwap", 4),
  ...LAST,
];
