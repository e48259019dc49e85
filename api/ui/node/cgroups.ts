import { html } from "hono/html";
import type { CgroupPlan, CgroupsDecision } from "../../model/decision.ts";
import type { Html } from "../page.ts";
import { moment } from "../time.ts";
import { fileTable, otherSteps } from "./cgroup-files.ts";
import { type Branch, cgroupTree } from "./cgroup-tree.ts";
import type { Known } from "./decided.ts";
import { LISTS, type Lists } from "./lists.ts";
import type { Reports } from "./reports.ts";
import { plural, refusedText, section } from "./section.ts";

/** The tree of cgroups: what each should hold, and what was found where the node reported about its newest decision. */
export function cgroupsSection({ decided }: Known, reports: Reports | null, lists: Lists): Html {
  const { cgroups } = decided;
  if (!cgroups.ok) return section("cgroups", "Cgroups", refusedText(cgroups.error));
  const { decision } = cgroups.value;
  const trees = cgroupTree(decision.cgroups, reports);
  const roots = lists.asked?.name === "cgroups" ? branchesAt(trees, lists.asked.of) : trees;
  const known = new Set(decision.cgroups.map(({ path }) => path));
  return section(
    "cgroups",
    "Cgroups: wanted, actual and drift",
    html`<p>${captionOf(decision)}. ${reportText(reports)}</p>
<div class="card tree">${roots.map((branch) => branchOf(branch, { reports, lists }, true))}</div>
${otherSteps(reports, known, lists)}`,
    reports === null ? "" : driftTag(reports.open, reports.mended),
  );
}

function captionOf({ version, driver, cgroups }: CgroupsDecision): string {
  const pods = new Set(cgroups.flatMap(({ pod }) => (pod === null ? [] : [pod.uid]))).size;
  return `cgroup v${version}, ${driver} driver: ${plural(cgroups.length, "cgroup")} of ${plural(pods, "pod")}`;
}

function reportText(reports: Reports | null): Html {
  if (reports === null) {
    return html`What the files hold is not known: no results were reported of the node’s newest <code>cgroups</code> decision. <code>nodewise actuator</code> reports them (<code>--mode observe</code> only looks), and so does <code>POST /v1/results</code>; one that finds all as wanted has nothing to report.`;
  }
  const { atMs, dryRun, open, mended } = reports;
  const found =
    open === 0
      ? html`nothing differs${mended === 0 ? "" : " any more"}`
      : html`<strong>${open} ${open === 1 ? "file or cgroup" : "files or cgroups"}</strong> not as decided`;
  return html`As reported at ${moment(atMs)}${dryRun ? ", by an actuator that only looks" : ""}: ${found}${mended === 0 ? "" : `, ${mended} put right`}. What was not reported was as wanted.`;
}

const driftTag = (open: number, mended: number): Html =>
  open > 0
    ? html`<span class="tag bad">${open} differ${open === 1 ? "s" : ""}</span>`
    : mended > 0
      ? html`<span class="tag warn">${mended} put right</span>`
      : html`<span class="tag good">no drift</span>`;

/** The branch of this path, wherever it is. */
const branchesAt = (trees: readonly Branch[], path: string): readonly Branch[] =>
  trees.flatMap((branch) => (branch.plan.path === path ? [branch] : branchesAt(branch.children, path)));

interface Told {
  readonly reports: Reports | null;
  readonly lists: Lists;
}
/** A summary counts what differs below it, so that a closed one hides nothing. */
function branchOf(branch: Branch, told: Told, isRoot = false): Html {
  const { reports } = told;
  const { plan, children, open, mended } = branch;
  const isPod = plan.level === "pod";
  const tag = open > 0 || mended > 0 ? driftTag(open, mended) : "";
  const pods = isPod ? "" : html`<span class="soft small">${plural(branch.pods, "pod")}</span>`;
  const inner = isPod
    ? fileTable([plan, ...children.map((child) => child.plan)], reports)
    : html`${fileTable([plan], reports)}${below(branch, told)}`;
  const id = `cgroup-${plan.path.replaceAll(/\s/g, "_")}`;
  return html`<details id="${id}"${isRoot || (open > 0 && !isPod) ? html` open` : ""}><summary><span class="name">${labelOf(plan)}</span> ${pods} ${tag}<span class="soft small">${isPod ? brief(plan) : ""}</span></summary>${inner}</details>`;
}

/** Where some are left out, those that differ stand first. */
function below({ plan, children }: Branch, told: Told): Html {
  const isLong = children.length > LISTS.cgroups.few;
  const inOrder = isLong ? children.toSorted((a, b) => b.open - a.open) : children;
  const { shown, note } = told.lists.cut("cgroups", inOrder, plan.path);
  return html`${shown.map((child) => branchOf(child, told))}${note}`;
}

const leafOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
function labelOf({ pod, level, path }: CgroupPlan): string {
  if (pod !== null) return `${pod.namespace}/${pod.name}`;
  return level === "node" ? path : leafOf(path);
}

/** What of a pod one looks for first. */
function brief({ values }: CgroupPlan): string {
  const { cpuShares, cpuWeight, memory } = values;
  const share =
    cpuWeight === undefined ? (cpuShares === undefined ? "" : `shares ${cpuShares}`) : `weight ${cpuWeight}`;
  const limit = memory === undefined || memory < 0 ? "" : `memory ${memory / 2 ** 20} MiB`;
  return [share, limit].filter((text) => text !== "").join(", ");
}
