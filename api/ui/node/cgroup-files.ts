import { html, raw } from "hono/html";
import type { CgroupFile, CgroupPlan } from "../../model/decision.ts";
import { humanBytes } from "../../text/size.ts";
import type { Html } from "../page.ts";
import type { Lists } from "./lists.ts";
import { isOpen, type Reported, type Reports } from "./reports.ts";
import { plural, scrolling } from "./section.ts";

/** The files of a cgroup and of those below it, a row each: what it should hold and, where results were reported, what was found. */
export function fileTable(plans: readonly CgroupPlan[], reports: Reports | null): Html {
  const rows = plans.map((plan, i) => groupOf(plan, reports, i === 0 ? "" : (plan.container ?? plan.path)));
  return html`<table class="files"><thead>${reports === null ? WANTED : HEAD}</thead>${rows}</table>`;
}
const HEAD = raw("<tr><th>File</th><th>Wanted</th><th>Found</th><th>State</th></tr>");
const WANTED = raw("<tr><th>File</th><th>Wanted</th></tr>");
/** Closing tags that HTML does without are left out: on a large node there are ten thousand such rows. */
const AS_WANTED = raw('<td class="soft">as wanted<td>');
const NOT_THERE = raw('<td class="soft">nothing: its cgroup is not there<td>');

function groupOf(plan: CgroupPlan, reports: Reports | null, name: string): Html {
  const told = reports?.byPath.get(plan.path);
  const own = told?.get("");
  const isMissing = own !== undefined && own.op === "mkdir" && isOpen(own);
  const rest = reports === null ? "" : isMissing ? NOT_THERE : AS_WANTED;
  const title =
    name === ""
      ? ""
      : html`<tr><th colspan="4" scope="rowgroup">${name}${plan.containerId === null ? html` <span class="soft">not running</span>` : ""}</th></tr>`;
  const whole = own === undefined || own.status === "unchanged" ? "" : stepRow(own, own.op);
  const files = together(plan.files, told).map(({ path: file, value }) => {
    const report = told?.get(file);
    return report === undefined
      ? html`<tr><td>${file}<td>${value}${human(file, value)}${rest}`
      : stepRow(report, file, value);
  });
  const unplanned = [...(told?.values() ?? [])].filter(
    ({ file }) => file !== "" && !plan.files.some(({ path }) => path === file),
  );
  return html`<tbody>${title}${whole}${files}${unplanned.map((step) => stepRow(step, step.file))}</tbody>`;
}

/** Limits of huge pages that are all the same, of which nothing else is to be told, as one. */
function together(
  files: readonly CgroupFile[],
  told: ReadonlyMap<string, Reported> | undefined,
): readonly CgroupFile[] {
  const pages = files.filter(({ path }) => path.startsWith("hugetlb.") && told?.has(path) !== true);
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

/** Bytes for the eye, where the file holds some. */
const human = (file: string, value: string): Html | "" =>
  file.startsWith("memory.") && /^\d{5,}$/.test(value)
    ? html` <span class="soft">${humanBytes(Number(value))}</span>`
    : "";

/** Steps about cgroups that the newest snapshot has no more: what was removed, or should have been. */
export function otherSteps(reports: Reports | null, known: ReadonlySet<string>, lists: Lists): Html | "" {
  const others = [...(reports?.byPath ?? [])].filter(([path]) => !known.has(path));
  const open = others.flatMap(([, files]) => [...files.values()]).filter(isOpen).length;
  if (others.length === 0) return "";
  const { shown, note } = lists.cut("cgroups-others", others);
  const rows = shown.map(
    ([path, files]) =>
      html`<tbody><tr><th colspan="4" scope="rowgroup">${path}</th></tr>${[...files.values()].map((step) => stepRow(step, step.file || step.op))}</tbody>`,
  );
  const isAsked = lists.isAsked("cgroups-others") ? html` open` : "";
  return html`<details id="cgroups-others"${isAsked}><summary>Reported about ${plural(others.length, "cgroup")} not in the newest snapshot${open === 0 ? "" : html` <span class="tag bad">${open} differ${open === 1 ? "s" : ""}</span>`}</summary>
${scrolling("Other cgroups", html`<table class="files"><thead>${HEAD}</thead>${rows}</table>`)}${note}</details>`;
}
