import type { DecisionHead } from "../../db/rows.ts";
import type { Exchange } from "../http/route.ts";
import { errorFields, type Log } from "../observe/log.ts";
import { isCurrentPolicy } from "../profiles/index.ts";
import { html, raw } from "./html.ts";
import { all, type Html } from "./page.ts";

/** The style sheet's names for the terminal's colours. */
const CLASSES: Readonly<Record<string, string>> = {
  1: "t-bold",
  2: "t-dim",
  31: "t-bad",
  32: "t-good",
  33: "t-warn",
  36: "t-accent",
};
// biome-ignore lint/suspicious/noControlCharactersInRegex: the escape that starts a colour
const ESCAPE = /\u001b\[(\d+)m/;

/** A text as the terminal would show it. INVARIANT: its escapes are those of `colorPaint`, which nest. */
export function terminalText(text: string): Html | Promise<Html> {
  const parts = text.split(ESCAPE).map((part, i) => {
    if (i % 2 === 0) return html`${part}`;
    const name = CLASSES[part];
    return name === undefined ? raw("</span>") : raw(`<span class="${name}">`);
  });
  return html`<pre class="terminal" tabindex="0">${all(parts)}</pre>`;
}

/** Columns of a wide page, and those that a phone of 360 px has room for; the style sheet has them too (`.text-diff`). */
export const WIDE_COLUMNS = 140;
export const NARROW_COLUMNS = 40;
/** A text for wide and narrow pages, since columns can only be laid out for one width. */
export const textForBoth = (at: (columns: number) => string, wide = WIDE_COLUMNS): Html | Promise<Html> =>
  wideAndNarrow(at(wide), at(NARROW_COLUMNS));
export const wideAndNarrow = (wide: string, narrow: string): Html | Promise<Html> =>
  html`<div class="text-wide">${terminalText(wide)}</div><div class="text-narrow">${terminalText(narrow)}</div>`;

type Drawn = Pick<DecisionHead, "id" | "policyVersion">;
/** Called with a record that could not be drawn, and why. */
export type DrawFailureHandler = (record: Drawn, error: unknown) => void;

/** Logs the record: damage and a mistake of this program look the same. */
export function drawFailureHandler({ deps, requestId }: Pick<Exchange, "deps" | "requestId">): DrawFailureHandler {
  return ({ id, policyVersion }, error) => {
    const level: keyof Log = isCurrentPolicy(policyVersion) ? "error" : "warn";
    deps.log[level]({ requestId, decision: id, policyVersion, ...errorFields(error) }, "a record cannot be drawn");
  };
}

/**
 * Draws a recorded decision; null: it lacks the form that this needs. Only this function catches such errors: reading a record
 * checks only its outermost form, and each kind has its own.
 */
export async function tryDrawing<T>(
  record: Drawn,
  undrawn: DrawFailureHandler,
  draw: () => T,
): Promise<Awaited<T> | null> {
  try {
    return await draw();
  } catch (error) {
    undrawn(record, error);
    return null;
  }
}

/** As tryDrawing, as a part of a page with a note if nothing can be drawn. */
export async function recordPart(
  record: Drawn,
  undrawn: DrawFailureHandler,
  draw: () => Html | Promise<Html>,
): Promise<Html> {
  return (await tryDrawing(record, undrawn, draw)) ?? notDrawn(record);
}

/** The note in the place of a part that cannot be drawn. */
export const notDrawn = ({ id, policyVersion }: Drawn): Html =>
  html`<div class="note warn"><p>${
    isCurrentPolicy(policyVersion)
      ? "This part of the record cannot be shown: it has not the form that this version writes, so it is damaged."
      : `What the policy ${policyVersion} decided cannot be drawn by this version.`
  } <a href="/v1/decisions/${id}">The JSON</a> has all that is stored.</p></div>`;
