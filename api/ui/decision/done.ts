import { html } from "hono/html";
import type { ResultRow } from "../../../db/store.ts";
import { parsedObject } from "../../replay/parsed.ts";
import { all, type Html, prose } from "../page.ts";
import { moment, utcText } from "../time.ts";

/** Steps of a report that the page shows; the JSON has all. */
const MOST_STEPS = 200;

/**
 * A step as the node told of it; what it is made of is the reporter's own. The actuator's: `from` is what the plan took the
 * file to hold, `before` what it held when it was written, `to` or `value` what it was to hold.
 */
interface Step {
  readonly status: string;
  readonly op?: unknown;
  readonly path?: unknown;
  readonly file?: unknown;
  readonly from?: unknown;
  readonly before?: unknown;
  readonly to?: unknown;
  readonly value?: unknown;
  readonly message?: unknown;
}
interface Report {
  readonly dryRun: boolean;
  readonly complete: boolean;
  readonly steps: readonly Step[];
}

const TONE: Readonly<Record<string, string>> = { applied: "good", planned: "warn", failed: "bad", rolled_back: "bad" };

/** What the node did about it, report by report. */
export function doneList(results: readonly ResultRow[]): Html | Promise<Html> {
  if (results.length === 0)
    return html`<p class="soft">The node has reported nothing: there was nothing to do, or nobody who does it.</p>`;
  return all(results.map(report));
}

function report({ id, body, okCount, failedCount, atMs }: ResultRow): Html | Promise<Html> {
  const read = parsedObject(`report \`${id}\``, body);
  if (!read.ok) return html`<h3>${moment(atMs)}</h3><p class="note bad">${prose(read.error.message)}</p>`;
  const { dryRun, complete, steps } = read.value as unknown as Report;
  const words = [
    `${okCount} ${dryRun ? "to be done (it only looks)" : "done"}`,
    `${failedCount} failed`,
    ...(complete ? [] : ["not all was tried"]),
  ];
  const rest = steps.length - MOST_STEPS;
  return html`<h3>${moment(atMs)}: ${words.join(", ")}</h3>
<div class="scroll" tabindex="0" role="region" aria-label="Steps reported ${utcText(atMs)}"><table>
<thead><tr><th>Status</th><th>Where</th><th>Was</th><th>Wanted</th><th>Told</th></tr></thead>
<tbody>${all(steps.slice(0, MOST_STEPS).map(stepRow))}</tbody></table></div>
${rest > 0 ? html`<p class="soft small">${rest} more are in the JSON.</p>` : ""}`;
}

const shown = (value: unknown): string => (typeof value === "string" || typeof value === "number" ? String(value) : "");

const stepRow = ({ status, op, path, file, from, before, to, value, message }: Step): Html | Promise<Html> => html`<tr>
<td><span class="tag ${TONE[status] ?? ""}">${status}</span></td>
<td><code>${[shown(path), shown(file)].filter((part) => part !== "").join("/")}</code>${file === undefined ? html` ${shown(op)}` : ""}</td>
<td><code>${shown(before ?? from)}</code></td><td><code>${shown(to ?? value)}</code></td><td>${shown(message)}</td></tr>`;
