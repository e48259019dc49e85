import { html } from "hono/html";
import { described, type FormFault, faultsOf } from "./form-fault.ts";
import type { Html } from "./page.ts";
import { FILE_FIELD } from "./posted-form.ts";

interface Shown {
  readonly name: string;
  readonly label: string;
  readonly text: string;
  readonly placeholder: string;
  readonly faults: readonly FormFault[];
  /** Bytes that a posted form may have. */
  readonly limit: number;
}

/** A text area for a configuration, and a file that may be chosen or dropped in its place. */
export const configurationField = ({ name, label, text, placeholder, faults, limit }: Shown): Html => html`
<div class="drop" data-drop="${name}-file">
<label for="${name}">${label}</label>
<textarea id="${name}" name="${name}" rows="${rowsOf(text)}" spellcheck="false" autocomplete="off" placeholder="${placeholder}"${described(faults, name)}>
${text}</textarea>
${faultsOf(faults, name)}
<label class="file" for="${name}-file">or a file in its place; drop it here<input id="${name}-file" type="file" name="${FILE_FIELD}" accept=".yaml,.yml,.json,application/json,text/plain" data-limit="${limit}"${described(faults, FILE_FIELD)}></label>
${faultsOf(faults, FILE_FIELD)}</div>`;

const rowsOf = (text: string): number => Math.max(9, Math.min(24, text.split("\n").length + 1));
