import { html } from "hono/html";
import type { Difference } from "../../routes/difference.ts";
import { all, type Html } from "../page.ts";
import { terminalText } from "../terminal-text.ts";
import { verdictTag } from "../verdict-tag.ts";
import { diffView } from "./diff-view.ts";
import { fileChanges, type Goings, goings } from "./effects.ts";
import { needsList } from "./needs.ts";
import type { Plan, Side } from "./plans.ts";

type Piece = Html | Promise<Html> | "";
const MOST_ROWS = 60;
/** So many differing values are shown without being asked for. */
const MOST_OPEN = 14;
/** So many characters of a value, or of a text that is the same on both sides. */
const MOST_VALUE = 100;
const MOST_TEXT = 24_000;

/** A kind whose answers differ: both verdicts, what goes, the values that differ, and both texts beside each other. */
export function planCard({ kind, before, after, differences, truncated }: Plan): Html | Promise<Html> {
  const files = fileChanges(before, after);
  const isDecided = before.decided !== null && after.decided !== null;
  return html`<section class="card wi-plan" id="${kind}"><h3 class="wi-turn">${kind} ${sideTag(before)} → ${sideTag(after)}</h3>
${goingsList(goings(before, after))}
${refusals(before, after)}
${files.length === 0 ? "" : fileTable(files)}
${differences.length === 0 ? "" : differenceTable(differences, truncated, files.length > 0 || differences.length > MOST_OPEN || refuses(before) || refuses(after))}
${isDecided ? html`<details class="wi-more"${differences.length <= MOST_ROWS && !refuses(after) ? html` open` : ""}><summary class="wi-summary">Both answers</summary>${diffView(kind, before.text, after.text)}</details>` : ""}
${isDecided ? "" : answerOf(before.decided === null ? after : before)}</section>`;
}

/** Then everything differs, and its words say all. */
const refuses = ({ decided }: Side): boolean => decided?.verdict === "kubelet-refuses";

const sideTag = ({ decided }: Side): Html | Promise<Html> =>
  decided === null ? html`<span class="tag bad">not decided</span>` : verdictTag(decided.verdict);

/** A kind that both sides answer the same, to be opened. */
export const samePlan = ({ kind, after }: Plan, isOpen: boolean): Html | Promise<Html> =>
  html`<details class="wi-same" id="${kind}"${isOpen ? html` open` : ""}><summary><strong>${kind}</strong> ${sideTag(after)}</summary>${answerOf(after)}</details>`;

/** A kind that neither side can decide, and what it would take. */
export const undecidedPlan = ({ kind, after }: Plan): Html | Promise<Html> =>
  html`<li id="${kind}"><strong>${kind}</strong> ${after.text}${needsList(after.refusal?.needs ?? [])}</li>`;

function answerOf({ text }: Side): Html | Promise<Html> {
  const rest = text.length - MOST_TEXT;
  const cut = rest > 0 ? text.slice(0, text.lastIndexOf("\n", MOST_TEXT)) : text;
  return html`${terminalText(cut)}${rest > 0 ? html`<p class="soft small">The rest is left out here; <code>nodewise decide</code> prints it.</p>` : ""}`;
}

function refusals(before: Side, after: Side): Piece {
  const told = (when: string, { refusal, decided }: Side): Piece =>
    refusal === null
      ? all(
          startErrors(decided?.decision).map(
            (text) => html`<p class="note bad"><strong>${when}</strong> the kubelet does not start: ${text}</p>`,
          ),
        )
      : html`<div class="note bad"><strong>${when}</strong>: ${refusal.message}${needsList(refusal.needs)}</div>`;
  return html`${told("Before", before)}${told("After", after)}`;
}

/** Why a kubelet would not start, in its own words. */
function startErrors(decision: object | undefined): readonly string[] {
  const { startErrors: own, errors } = (decision ?? {}) as { startErrors?: unknown; errors?: unknown };
  const list = own ?? errors;
  return Array.isArray(list) ? list.filter((text) => typeof text === "string") : [];
}

function goingsList(found: Goings | null): Piece {
  if (found === null || found.onlyBefore.length + found.onlyAfter.length === 0) return "";
  const { what, onlyBefore, onlyAfter, both } = found;
  const list = (names: readonly string[], name: "del" | "ins"): Html | Promise<Html> =>
    names.length === 0
      ? html`<p class="soft">none</p>`
      : html`<ul class="wi-list">${all(names.slice(0, MOST_ROWS).map((one) => html`<li>${name === "del" ? html`<del>${one}</del>` : html`<ins>${one}</ins>`}</li>`))}${names.length > MOST_ROWS ? html`<li class="soft">${names.length - MOST_ROWS} more</li>` : ""}</ul>`;
  return html`<div class="wi-pair"><div><p class="wi-side">Only before: ${what}</p>${list(onlyBefore, "del")}</div>
<div><p class="wi-side">Only after: ${what}</p>${list(onlyAfter, "ins")}</div></div>
${both === 0 ? "" : html`<p class="soft small">${both} on both sides.</p>`}`;
}

function fileTable(files: ReturnType<typeof fileChanges>): Html | Promise<Html> {
  const rows = files.map(
    ({ cgroup, file, before, after }) =>
      html`<tr><td class="wi-path"><code class="wi-value">${cgroup}</code></td><td><code>${file}</code></td><td class="wi-cell">${was(before)}</td><td class="wi-cell">${becomes(after)}</td></tr>`,
  );
  return shortened(
    `${files.length} cgroup file${files.length === 1 ? "" : "s"} would change`,
    ["Cgroup", "File"],
    rows,
    true,
  );
}

function differenceTable(
  differences: readonly Difference[],
  truncated: boolean,
  isAside: boolean,
): Html | Promise<Html> {
  const rows = differences.map(
    ({ path, recorded, replayed }) =>
      html`<tr><td class="wi-path"><code class="wi-value">${path.slice(0, 160)}</code></td><td class="wi-cell">${was(shown(recorded))}</td><td class="wi-cell">${becomes(shown(replayed))}</td></tr>`,
  );
  const count = `${truncated ? "more than " : ""}${differences.length}`;
  return shortened(
    `${count} value${differences.length === 1 && !truncated ? "" : "s"} of the answer differ${differences.length === 1 && !truncated ? "s" : ""}`,
    ["Value"],
    rows,
    !isAside,
  );
}

/** The first rows, in a table that can be opened. */
function shortened(
  title: string,
  columns: readonly string[],
  rows: readonly (Html | Promise<Html>)[],
  isOpen: boolean,
): Html | Promise<Html> {
  const rest = rows.length - MOST_ROWS;
  return html`<details class="wi-more"${isOpen ? html` open` : ""}><summary class="wi-summary">${title}</summary>
<div class="scroll" tabindex="0" role="region" aria-label="${title}"><table>
<thead><tr>${all([...columns, "Before", "After"].map((name) => html`<th>${name}</th>`))}</tr></thead>
<tbody>${all(rows.slice(0, MOST_ROWS))}</tbody></table></div>
${rest > 0 ? html`<p class="soft small">${rest} more are not shown.</p>` : ""}</details>`;
}

const nothing = (text: "" | null): Html | Promise<Html> =>
  html`<span class="soft">${text === null ? "none" : "empty"}</span>`;
export const was = (text: string | null): Html | Promise<Html> =>
  text === null || text === "" ? nothing(text) : html`<del><code class="wi-value">${text}</code></del>`;
export const becomes = (text: string | null): Html | Promise<Html> =>
  text === null || text === "" ? nothing(text) : html`<ins><code class="wi-value">${text}</code></ins>`;

/** A value in short; null where there is none. */
export function shown(value: unknown): string | null {
  if (value === undefined) return null;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > MOST_VALUE ? `${text.slice(0, MOST_VALUE)}…` : text;
}
