import { html } from "hono/html";
import type { Explain, PlaceReasons, Reason } from "../../model/decision.ts";
import { reasonText } from "../../text/reason-text.ts";
import { all, type Html } from "../page.ts";

/** So many places are open at once; of more, each opens by itself. */
const MOST_OPEN = 12;

/** Decisions of an older version have a flat list. */
const grouped = (reasons: readonly (PlaceReasons | (Reason & { readonly at: string }))[]): readonly PlaceReasons[] =>
  reasons.map((reason) => ("because" in reason ? reason : { at: reason.at, because: [reason] }));

/** Why the answer is what it is: each place with its reasons, and the numbers that they used. */
export function reasonsList(reasons: readonly PlaceReasons[], explain: Explain): Html | Promise<Html> {
  if (reasons.length === 0 && explain !== "off")
    return html`<p class="soft">Nothing had to be explained: what the answer compares stands in it.</p>`;
  if (reasons.length === 0)
    return html`<p class="soft">No reasons were recorded: it was asked with <code>explain: off</code>.</p>`;
  const isOpen = reasons.length <= MOST_OPEN;
  return html`<div class="reasons">${all(grouped(reasons).map((place) => placeReasons(place, isOpen)))}</div>`;
}

const placeReasons = ({ at, because }: PlaceReasons, isOpen: boolean): Html | Promise<Html> =>
  isOpen
    ? html`<section><h3><code>${at}</code></h3><ul>${all(because.map(reasonItem))}</ul></section>`
    : html`<details><summary><code>${at}</code> <span class="soft small">${because.length}</span></summary><ul>${all(because.map(reasonItem))}</ul></details>`;

/** As many digits as one reads. */
const numberText = (value: string | number | boolean | undefined): string =>
  typeof value === "number" && !Number.isInteger(value) ? `${Number(value.toPrecision(6))}` : String(value);

function reasonItem(reason: Reason): Html | Promise<Html> {
  const numbers = Object.entries(reason.numbers ?? {}).filter(([, value]) => value !== undefined);
  const told = numbers.map(
    ([name, value]) => html`<span><span class="soft">${name}</span> ${numberText(value)}</span> `,
  );
  return html`<li>${reasonText(reason, false)} <span class="numbers small"><code>${reason.code}</code> ${all(told)}</span></li>`;
}
