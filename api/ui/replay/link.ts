import { html } from "hono/html";
import type { Html } from "../page.ts";
import type { ReplayTexts } from "./question.ts";

/** Characters: what is longer no one shares, and not every server takes. */
const LONGEST = 2000;

/** The address of the form with a question filled in. Null: it is too long to be shared. */
export function questionLink(texts: Partial<ReplayTexts>): string | null {
  // without it the form would fill in a time of its own
  const given = Object.entries(texts).filter(([name, text]) => text !== "" || name === "since");
  const link = `/replay?${new URLSearchParams(Object.fromEntries(given))}`;
  return link.length > LONGEST ? null : link;
}

/** On an answer: where a script puts the address of its question into the browser. Empty: a question that has none. */
export const linkAttribute = (link: string | null): Html => html` data-link="${link ?? ""}"`;
