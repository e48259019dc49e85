import { rfc3339 } from "../service/timestamp.ts";
import { html } from "./html.ts";
import type { Html } from "./page.ts";

/** `2026-01-31 12:00:05 UTC`. */
export const utcText = (ms: number): string =>
  rfc3339(ms)
    .replace("T", " ")
    .replace(/\.\d+Z$/, " UTC");

/** A moment, as it is. */
export const moment = (ms: number): Html | Promise<Html> => html`<time datetime="${rfc3339(ms)}">${utcText(ms)}</time>`;

/** A moment, of which a browser with scripts tells how long ago it was. */
export const ago = (ms: number): Html | Promise<Html> =>
  html`<time datetime="${rfc3339(ms)}" title="${utcText(ms)}" data-age>${utcText(ms)}</time>`;
