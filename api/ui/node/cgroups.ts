import { type CgroupFile, type CgroupPlan, type CgroupsDecision, lastSegment } from "../../model/cgroups.ts";
import { many } from "../../text/sentences/words.ts";
import { humanBytes } from "../../text/size.ts";
import { html, moment, raw } from "../html.ts";
import type { Html } from "../page.ts";
import { LISTS, type ListView } from "./lists.ts";
import { type DecidedSnapshot, folded, isOpen, type Reported, type Reports, scrolling, undecided } from "./view.ts";

/** The files of cgroups, one row each: the wanted value and, if results were reported, the found one. */
function fileTable(plans: readonly CgroupPlan[], reports: Reports | null): Html {
  const rows = plans.map((plan, i) => groupOf(plan, reports, i === 0 ? "" : (plan.container ?? plan.path)));
  return html`<table class="files"><thead>${reports === null ? WANTED : HEAD}</thead>${rows}</table>`;
}
const HEAD = raw("<tr><th>File</th><th>Wanted</th><th>Found</th><th>State</th></tr>");
const WANTED = raw("<tr><th>File</th><th>Wanted</th></tr>");
/** Optional closing tags are omitted: a large node has ten thousand such rows. */
const AS_WANTED = raw('<td class="soft">as wanted<td>');
const NOT_THERE = raw('<td class="soft">nothing: its cgroup is not there<td>');

function groupOf(plan: CgroupPlan, reports: Reports | null, name: string): Html {
  const reported = reports?.byPath.get(plan.path);
  const own = reported?.get("");
  const isMissing = own !== undefined && own.op === "mkdir" && isOpen(own);
  const rest = reports === null ? "" : isMissing ? NOT_THERE : AS_WANTED;
  const title =
    name === ""
      ? ""
      : html`<tr><th colspan="4" scope="rowgroup">${name}${plan.containerId === null ? html` <span class="soft">not running</span>` : ""}</th></tr>`;
  const whole = own === undefined || own.status === "unchanged" ? "" : stepRow(own, own.op);
  const files = mergeHugePages(plan.files, reported).map(({ path: file, value }) => {
    const report = reported?.get(file);
    return report === undefined
      ? html`<tr><td>${file}<td>${value}${human(file, value)}${rest}`
      : stepRow(report, file, value);
  });
  const unplanned = [...(reported?.values() ?? [])].filter(
    ({ file }) => file !== "" && !plan.files.some(({ path }) => path === file),
  );
  return html`<tbody>${title}${whole}${files}${unplanned.map((step) => stepRow(step, step.file))}</tbody>`;
}

/** Combines equal limits of huge pages without other remarks into one row. */
function mergeHugePages(
  files: readonly CgroupFile[],
  reported: ReadonlyMap<string, Reported> | undefined,
): readonly CgroupFile[] {
  const pages = files.filter(({ path }) => path.startsWith("hugetlb.") && reported?.has(path) !== true);
  const [first] = pages;
  if (first === undefined || pages.length < 2 || pages.some(({ value }) => value !== first.value)) return files;
  const others = files.filter((file) => !pages.includes(file));
  return [...others, { path: `hugetlb.* (${pages.length} files)`, value: first.value }];
}

function stepRow(step: Reported, what: string, wanted: string | null = step.wanted): Html {
  const { found, status, message } = step;
  const open = isOpen(step);
  const drifted = open ? "bad" : status === "applied" ? "warn" : "good";
  const words = open ? html`<span class="small">${message}</span>` : "";
  return html`<tr class="${open ? "changed" : ""}"><td>${what}</td><td>${wanted ?? ""}${wanted === null ? "" : human(what, wanted)}</td><td>${found ?? "nothing"}</td><td><span class="tag ${drifted}">${WORDS[status] ?? status}</span> ${words}</td></tr>`;
}
const WORDS: Readonly<Record<string, string>> = {
  planned: "differs, left as it is",
  applied: "put right",
  unchanged: "as wanted",
  skipped: "differs, skipped",
  failed: "differs, failed",
  rolled_back: "differs, put back",
};

/** The value in readable units, if the file contains bytes. */
const human = (file: string, value: string): Html | "" =>
  file.startsWith("memory.") && /^\d{5,}$/.test(value)
    ? html` <span class="soft">${humanBytes(Number(value))}</span>`
    : "";

/** Steps about cgroups that are no longer in the newest snapshot: removed, or to be removed. */
function otherSteps(reports: Reports | null, known: ReadonlySet<string>, lists: ListView): Html | "" {
  const others = [...(reports?.byPath ?? [])].filter(([path]) => !known.has(path));
  const open = others.flatMap(([, files]) => [...files.values()]).filter(isOpen).length;
  if (others.length === 0) return "";
  const { shown, note } = lists.cut("cgroups-others", others);
  const rows = shown.map(
    ([path, files]) =>
      html`<tbody><tr><th colspan="4" scope="rowgroup">${path}</th></tr>${[...files.values()].map((step) => stepRow(step, step.file || step.op))}</tbody>`,
  );
  const isAsked = lists.isAsked("cgroups-others") ? html` open` : "";
  return html`<details id="cgroups-others"${isAsked}><summary>Reported about ${many(others.length, "cgroup")} not in the newest snapshot${open === 0 ? "" : html` <span class="tag bad">${open} differ${open === 1 ? "s" : ""}</span>`}</summary>
${scrolling("Other cgroups", html`<table class="files"><thead>${HEAD}</thead>${rows}</table>`)}${note}</details>`;
}

/** The tree of cgroups: the wanted values, and the found ones if the node reported about its newest decision. */
export function cgroupsSection({ decided }: DecidedSnapshot, reports: Reports | null, lists: ListView): Html {
  const { cgroups } = decided;
  if (!cgroups.ok) return undecided("cgroups", "Cgroups", cgroups.error);
  const { decision } = cgroups.value;
  const trees = cgroupTree(decision.cgroups, reports);
  const roots = lists.asked?.name === "cgroups" ? branchesAt(trees, lists.asked.of) : trees;
  const known = new Set(decision.cgroups.map(({ path }) => path));
  return folded(
    "cgroups",
    "Cgroups and drift",
    html`<p>${captionOf(decision)}. ${reportText(reports)}</p>
<div class="card tree">${roots.map((branch) => branchOf(branch, { reports, lists }, true))}</div>
${otherSteps(reports, known, lists)}`,
    lists.asked !== null,
    reports === null ? "" : driftTag(reports.open, reports.corrected),
  );
}

function captionOf({ version, driver, cgroups }: CgroupsDecision): string {
  const pods = new Set(cgroups.flatMap(({ pod }) => (pod === null ? [] : [pod.uid]))).size;
  return `cgroup v${version}, ${driver} driver: ${many(cgroups.length, "cgroup")} of ${many(pods, "pod")}`;
}

function reportText(reports: Reports | null): Html {
  if (reports === null) {
    return html`What the files hold is not known: no results were reported of the node’s newest <code>cgroups</code> decision. <code>nodewise actuator</code> reports them (<code>--mode observe</code> changes nothing), and so does <code>POST /v1/results</code>; one that finds all as wanted has nothing to report.`;
  }
  const { atMs, dryRun, open, corrected } = reports;
  if (reports.isOfEarlierPass)
    return html`Last reported at ${moment(atMs)}. The passes since had nothing to report: every file is as wanted.`;
  const found =
    open === 0
      ? html`nothing differs${corrected === 0 ? "" : " any more"}`
      : html`<strong>${open} ${open === 1 ? "file or cgroup" : "files or cgroups"}</strong> not as decided`;
  return html`As reported at ${moment(atMs)}${dryRun ? ", by an actuator in observe mode" : ""}: ${found}${corrected === 0 ? "" : `, ${corrected} put right`}. What was not reported was as wanted.`;
}

const driftTag = (open: number, corrected: number): Html =>
  open > 0
    ? html`<span class="tag bad">${open} differ${open === 1 ? "s" : ""}</span>`
    : corrected > 0
      ? html`<span class="tag warn">${corrected} put right</span>`
      : html`<span class="tag good">no drift</span>`;

/** The branch of this path, wherever it is. */
const branchesAt = (trees: readonly Branch[], path: string): readonly Branch[] =>
  trees.flatMap((branch) => (branch.plan.path === path ? [branch] : branchesAt(branch.children, path)));

interface ReportContext {
  readonly reports: Reports | null;
  readonly lists: ListView;
}
/** A summary counts what differs below it, so that a closed one hides nothing. */
function branchOf(branch: Branch, context: ReportContext, isRoot = false): Html {
  const { reports } = context;
  const { plan, children, open, corrected } = branch;
  const isPod = plan.level === "pod";
  const tag = open > 0 || corrected > 0 ? driftTag(open, corrected) : "";
  const pods = isPod ? "" : html`<span class="soft small">${many(branch.pods, "pod")}</span>`;
  const inner = isPod
    ? fileTable([plan, ...children.map((child) => child.plan)], reports)
    : html`${fileTable([plan], reports)}${below(branch, context)}`;
  const id = `cgroup-${plan.path.replaceAll(/\s/g, "_")}`;
  return html`<details id="${id}"${isRoot || (open > 0 && !isPod) ? html` open` : ""}><summary><span class="name">${labelOf(plan)}</span> ${pods} ${tag}<span class="soft small">${isPod ? valuesSummary(plan) : ""}</span></summary>${inner}</details>`;
}

/** The children; if some are left out, those that differ come first. */
function below({ plan, children }: Branch, context: ReportContext): Html {
  const isLong = children.length > LISTS.cgroups.few;
  const inOrder = isLong ? children.toSorted((a, b) => b.open - a.open) : children;
  const { shown, note } = context.lists.cut("cgroups", inOrder, plan.path);
  return html`${shown.map((child) => branchOf(child, context))}${note}`;
}

function labelOf({ pod, level, path }: CgroupPlan): string {
  if (pod !== null) return `${pod.namespace}/${pod.name}`;
  return level === "node" ? path : lastSegment(path);
}

/** The most important values of a pod. */
function valuesSummary({ values }: CgroupPlan): string {
  const { cpuShares, cpuWeight, memory } = values;
  const share =
    cpuWeight === undefined ? (cpuShares === undefined ? "" : `shares ${cpuShares}`) : `weight ${cpuWeight}`;
  const limit = memory === undefined || memory < 0 ? "" : `memory ${memory / 2 ** 20} MiB`;
  return [share, limit].filter((text) => text !== "").join(", ");
}

/** A cgroup with those below it; drift and pods are counted over all of them. */
interface Branch {
  readonly plan: CgroupPlan;
  readonly children: readonly Branch[];
  readonly open: number;
  readonly corrected: number;
  readonly pods: number;
}

/** Builds trees of plans, which come parents first. A plan whose parent is missing is a root. */
function cgroupTree(plans: readonly CgroupPlan[], reports: Reports | null): readonly Branch[] {
  const paths = new Set(plans.map(({ path }) => path));
  const byParent = Map.groupBy(plans, ({ path }) => {
    const parent = path.slice(0, path.lastIndexOf("/"));
    return paths.has(parent) ? parent : "";
  });
  const grow = (plan: CgroupPlan): Branch => {
    const children = (byParent.get(plan.path) ?? []).map(grow);
    const own = [...(reports?.byPath.get(plan.path)?.values() ?? [])];
    const sum = (count: (child: Branch) => number): number =>
      children.reduce((total, child) => total + count(child), 0);
    return {
      plan,
      children,
      open: own.filter(isOpen).length + sum(({ open }) => open),
      corrected: own.filter(({ status }) => status === "applied").length + sum(({ corrected }) => corrected),
      pods: (plan.level === "pod" ? 1 : 0) + sum(({ pods }) => pods),
    };
  };
  return (byParent.get("") ?? []).map(grow);
}
