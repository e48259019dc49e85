import { html } from "hono/html";
import type { Refusal } from "../../model/decision.ts";
import type { Html } from "../page.ts";

/** A part of the page that is made anew when something was decided about the node. */
export const section = (id: string, title: string, content: Html | "", aside: Html | "" = ""): Html => html`
<section id="${id}" data-live aria-labelledby="${id}-title"><h2 id="${id}-title">${title} ${aside}</h2>
${content}</section>`;

/** What stands where a picture would be: what is not known, and what to post for it. */
export const notKnown = (what: string, needs: readonly string[] = [], more: Html | "" = ""): Html =>
  html`<div class="note warn"><p>${what}.</p>${
    needs.length === 0
      ? ""
      : html`<p class="small">To post in the snapshot: ${needs.map((need, i) => html`${i === 0 ? "" : ", "}<code>${need}</code>`)}</p>`
  }${more}</div>`;

/** A kind's refusal, in its own words. */
export const refusedText = ({ message, needs }: Refusal): Html =>
  notKnown(`Not decided: ${message.replace(/\.$/, "")}`, needs);

/** A table that scrolls by itself, by keyboard too. */
export const scrolling = (label: string, table: Html): Html =>
  html`<div class="scroll" tabindex="0" role="region" aria-label="${label}">${table}</div>`;

/** `1 pod`, `3 pods`. */
export const plural = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;
