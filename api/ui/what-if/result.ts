import { html } from "hono/html";
import type { LintFinding } from "../../decide/lint/lint.ts";
import { type Difference, differences, MAX_DIFFERENCES } from "../../routes/difference.ts";
import { all, type Html, prose } from "../page.ts";
import { becomes, planCard, samePlan, shown, undecidedPlan, was } from "./plan-card.ts";
import type { Plan } from "./plans.ts";

/** All that the page tells of a comparison. */
export interface Comparison {
  readonly plans: readonly Plan[];
  /** As they were given. */
  readonly configurations: readonly [before: unknown, after: unknown];
  /** What lint says of the new configuration and not of the old one. */
  readonly findings: readonly LintFinding[];
  /** The pod that comes in; null: none. */
  readonly pod: string | null;
  readonly removed: readonly string[];
  readonly assumed: readonly string[];
  readonly notes: readonly string[];
}

type Piece = Html | Promise<Html> | "";

/** What would differ, kind by kind, and what would not. */
export function resultOf(comparison: Comparison): Html | Promise<Html> {
  const { plans, pod } = comparison;
  const of = (state: Plan["state"]): readonly Plan[] => plans.filter((plan) => plan.state === state);
  const [differ, same, undecided] = [of("differs"), of("same"), of("undecided")];
  return html`<h2>What would change</h2>
${changes(comparison)}
<nav class="wi-chips" aria-label="Kinds of decision">${all(plans.map(chip))}</nav>
${differ.length === 0 ? html`<p class="note good">${same.length === 0 ? "Nothing could be decided." : "No decision would be another."}</p>` : all(differ.map(planCard))}
${same.length === 0 ? "" : html`<h3>The same on both sides</h3><div class="card">${all(same.map((plan) => samePlan(plan, pod !== null && plan.kind === "admission")))}</div>`}
${undecided.length === 0 ? "" : html`<h3>Not decided, for lack of input or for what it says</h3><ul class="wi-undecided">${all(undecided.map(undecidedPlan))}</ul>`}`;
}

const WORDS: Readonly<Record<Plan["state"], string>> = {
  differs: "differs",
  same: "the same",
  undecided: "not decided",
};
const chip = ({ kind, state }: Plan): Html | Promise<Html> =>
  html`<a class="card wi-chip wi-chip-${state}" href="#${kind}"><strong>${kind}</strong> <span class="small soft">${WORDS[state]}</span></a>`;

/** What was made otherwise, and what was taken for granted. */
function changes({ configurations, findings, pod, removed, assumed, notes }: Comparison): Piece {
  const fields = differences(...configurations);
  const told = [
    ...(pod === null ? [] : [html`<li>pod <strong>${pod}</strong> is asked about</li>`]),
    ...removed.map((name) => html`<li>pod <strong>${name}</strong> goes</li>`),
  ];
  const isNothing = fields.length + told.length === 0;
  return html`${told.length === 0 ? "" : html`<ul>${all(told)}</ul>`}
${isNothing ? html`<p class="note warn">Nothing was changed: these are the decisions as they are.</p>` : ""}
${fields.length === 0 ? "" : fieldTable(fields)}
${all(findings.map(finding))}
${assumed.length === 0 ? "" : html`<p class="soft small">Assumed: ${assumed.join("; ")}.</p>`}
${all(notes.map((note) => html`<p class="soft small">${prose(note)}</p>`))}`;
}

const MOST_FIELDS = 40;
const fieldTable = (
  fields: readonly Difference[],
): Html | Promise<Html> => html`<div class="scroll" tabindex="0" role="region" aria-label="Configuration"><table>
<thead><tr><th>KubeletConfiguration</th><th>Before</th><th>After</th></tr></thead>
<tbody>${all(fields.slice(0, MOST_FIELDS).map(({ path, recorded, replayed }) => html`<tr><td><code class="wi-value">${path}</code></td><td>${was(shown(recorded))}</td><td>${becomes(shown(replayed))}</td></tr>`))}</tbody></table></div>
${fields.length > MOST_FIELDS ? html`<p class="soft small">${fields.length > MAX_DIFFERENCES ? "many" : fields.length - MOST_FIELDS} more are not shown.</p>` : ""}`;

const TONE: Readonly<Record<LintFinding["severity"], string>> = {
  "refuses-start": "bad",
  error: "bad",
  warning: "warn",
  note: "",
};
const finding = ({ severity, field, message, advice }: LintFinding): Html | Promise<Html> =>
  html`<div class="note ${TONE[severity]}"><span class="tag ${TONE[severity]}">${severity.replace("-", " ")}</span> <code>${field}</code>: ${message} <span class="soft">${advice}</span></div>`;
