import { html, raw } from "hono/html";
import { all, type Html } from "./page.ts";

/** What the terminal's colours are called in the style sheet. */
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
