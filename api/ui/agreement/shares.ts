import type { OutcomeTally } from "../../../db/rows.ts";
import type { KindAgreement } from "../../http/agreement.ts";
import { AGREEMENT_VERDICTS, type AgreementVerdict } from "../../model/outcome.ts";
import { shareText } from "../../text/size.ts";
import { stackBar } from "../draw/stack-bar.ts";
import { html, utcText } from "../html.ts";
import { all, type Html } from "../page.ts";

/** The style sheet's words for verdicts. */
export const TONE: { readonly [V in AgreementVerdict]: "good" | "bad" | "rest" } = {
  agrees: "good",
  differs: "bad",
  "not-comparable": "rest",
};
/** The word for many of them. */
export const WORD: { readonly [V in AgreementVerdict]: string } = {
  agrees: "agree",
  differs: "differ",
  "not-comparable": "not comparable",
};

/** A time in pieces: the last is the one that `untilMs` is in. */
export interface Pieces {
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly pieceMs: number;
}

const WIDTH = 1000;
const HEIGHT = 100;

/** The outcomes of one kind: their sum, and what share of each piece of time came out how. */
export function kindPicture(
  kind: KindAgreement,
  tally: readonly OutcomeTally[],
  pieces: Pieces,
  link: string,
): Html | Promise<Html> {
  const { agrees, differs, notComparable, share } = kind;
  const counts: Readonly<Record<AgreementVerdict, number>> = { agrees, differs, "not-comparable": notComparable };
  const words = AGREEMENT_VERDICTS.map((verdict) => `${counts[verdict]} ${WORD[verdict]}`).join(", ");
  const segments = AGREEMENT_VERDICTS.map((verdict) => ({
    size: counts[verdict],
    tone: TONE[verdict],
    words: `${counts[verdict]} ${WORD[verdict]}`,
  }));
  return html`<div class="bar-row"><div><a href="${link}">${kind.kind}</a>
<span>${share === null ? html`<span class="soft">none could be compared</span>` : html`<strong>${shareText(share)}</strong> agree`} <span class="soft">· ${words}</span></span></div>
${stackBar(segments, `${kind.kind}: ${words}`)}${overTime(kind.kind, tally, pieces)}</div>`;
}

function overTime(
  kind: string,
  tally: readonly OutcomeTally[],
  { sinceMs, untilMs, pieceMs }: Pieces,
): Html | Promise<Html> {
  const first = sinceMs - (sinceMs % pieceMs);
  const count = Math.floor((untilMs - first) / pieceMs) + 1;
  const step = WIDTH / count;
  const own = Map.groupBy(
    tally.filter((row) => row.kind === kind),
    ({ fromMs }) => fromMs,
  );
  const columns = Array.from({ length: count }, (_, i) => {
    const rows = own.get(first + i * pieceMs) ?? [];
    return columnOf(rows, first + i * pieceMs, i * step, step * 0.86);
  });
  return html`<svg class="shares" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${kind}: shares over time, ${utcText(first)} to ${utcText(untilMs)}">${all(columns)}</svg>`;
}

/** From the ground up: what agrees, what differs, what is not comparable. */
function columnOf(rows: readonly OutcomeTally[], fromMs: number, x: number, width: number): Html | Promise<Html> {
  const sum = rows.reduce((total, { count }) => total + count, 0);
  if (sum === 0) return html``;
  let y = HEIGHT;
  const told: string[] = [];
  const parts = AGREEMENT_VERDICTS.flatMap((verdict) => {
    const count = rows.find((row) => row.verdict === verdict)?.count ?? 0;
    if (count === 0) return [];
    const height = (count / sum) * HEIGHT;
    y -= height;
    told.push(`${count} ${WORD[verdict]}`);
    return [
      html`<rect class="${TONE[verdict]}" x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${width.toFixed(1)}" height="${height.toFixed(1)}"/>`,
    ];
  });
  return html`<g><title>${utcText(fromMs)}: ${told.join(", ")}</title>${all(parts)}</g>`;
}
