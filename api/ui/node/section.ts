import type { Refusal } from "../../model/decision.ts";
import type { PodRef } from "../../model/forms.ts";
import type { Managed } from "../../model/managers.ts";
import { html } from "../html.ts";
import type { Html } from "../page.ts";
import type { Known } from "./decided.ts";

/** A part of the page that is made anew when something was decided about the node. */
export const section = (id: string, title: string, content: Html | "", aside: Html | "" = ""): Html => html`
<section id="${id}" data-live aria-labelledby="${id}-title"><h2 id="${id}-title">${title} ${aside}</h2>
${content}</section>`;

/** The note in the place of a picture: what is not known, and what to post for it. */
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

/** A pod that is gone from the snapshot has only its uid. */
export const podName = ({ namespace, name, uid }: PodRef): string =>
  name === "" ? `(gone) ${uid}` : `${namespace}/${name}`;

/** Why a kubelet would not start with this, and what it takes without a word; but what `told` has said already. */
export function managedNotes({ startErrors, warnings }: Notes, told?: Notes): Html {
  const errors = startErrors.filter((line) => told?.startErrors.includes(line) !== true);
  const others = warnings.filter((line) => told?.warnings.includes(line) !== true);
  return html`${errors.map((error) => html`<p class="note bad">The kubelet does not start: ${error}</p>`)}${others.map((line) => html`<p class="note warn">${line}</p>`)}`;
}
type Notes = Pick<Managed, "startErrors" | "warnings">;
/** The notes that the CPUs' part of the page has told. */
export const toldOfCpus = ({ decided: { cpus } }: Pick<Known, "decided">): Notes | undefined =>
  cpus.ok ? cpus.value.decision : undefined;
