import { html } from "hono/html";
import type { Managed, PodRef } from "../../model/managers.ts";
import type { Html } from "../page.ts";
import type { Known } from "./decided.ts";

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
/** What the CPUs' part of the page has told. */
export const toldOfCpus = ({ decided: { cpus } }: Pick<Known, "decided">): Notes | undefined =>
  cpus.ok ? cpus.value.decision : undefined;
