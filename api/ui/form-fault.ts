import { html, raw } from "hono/html";
import { type Html, prose } from "./page.ts";

/** What is wrong with a field of a form, in words with the place in it. */
export interface FormFault<Name extends string = string> {
  readonly field: Name;
  readonly text: string;
}

/** The faults of a field, below it. Their element has the id that `described` names. */
export function faultsOf(faults: readonly FormFault[], field: string): Html | "" {
  const found = faults.filter((fault) => fault.field === field);
  if (found.length === 0) return "";
  return html`<div class="note bad" id="${field}-fault" role="alert">${found.map(({ text }) => html`<p class="small">${prose(text)}</p>`)}</div>`;
}

/** Attributes of an input that has faults. */
export const described = (faults: readonly FormFault[], field: string): Html | "" =>
  faults.some((fault) => fault.field === field)
    ? html`${raw(' aria-invalid="true"')} aria-describedby="${field}-fault"`
    : "";
