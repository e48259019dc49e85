import { formText, isConfiguration } from "../documents/document-form.ts";
import type { InputDocument } from "../documents/inputs/origin.ts";
import { configurationPath } from "../model/kubelet-configuration.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { Profile } from "../profiles/profile.ts";
import { unknownFields } from "../profiles/unknown-fields.ts";
import { described, FILE_FIELD, type FormFault, faultsOf } from "./form-fields.ts";
import { asTyped, html } from "./html.ts";
import type { Html } from "./page.ts";
import { documentOf, type GivenText } from "./what-if/posted-documents.ts";

/** A KubeletConfiguration, or some of its fields, that somebody pasted or chose as a file. Its values are not looked at. */
export interface ConfigurationText {
  /** Its fields, without what /configz has around them. */
  readonly value: unknown;
  readonly source: InputDocument;
  /** Where the fields stand in the document. */
  readonly base: readonly string[];
}

/** No configuration comes near. */
export const MAX_CHARACTERS = 128 * 1024;

/** Reads YAML or JSON, /configz too. Errors: what it is instead, or where it stops being that, in words with line and column. */
export function readConfigurationText(given: GivenText): Result<ConfigurationText, readonly string[]> {
  const { name, text } = given;
  if (text.length > MAX_CHARACTERS)
    return err([
      `${name}: has ${text.length.toLocaleString("en")} characters, and no KubeletConfiguration has more than ${MAX_CHARACTERS.toLocaleString("en")}: give it alone`,
    ]);
  const read = documentOf(given);
  if (!read.ok) return read;
  const source = read.value;
  if (!isConfiguration(source.value))
    return err([
      `${name}: is ${formText(source.value)}, and no KubeletConfiguration: expected its fields, such as \`maxPods: 110\``,
    ]);
  const base = configurationPath(source.value);
  const value = base.reduce<unknown>((at, step) => (at as Record<string, unknown>)[step], source.value);
  return ok({ value, source, base });
}

/** Lists the misspelt fields, each with its place; they change nothing. */
export const misspelt = ({ value, source, base }: ConfigurationText, { fieldNames }: Profile): readonly string[] =>
  unknownFields(value, fieldNames).map(({ path, near }) => {
    const { line, column } = source.place([...base, ...path]);
    const meant = near === null ? "" : `; \`${near}\` is near`;
    return `${source.file}:${line}:${column}: the kubelet knows no field \`${path.join(".").slice(0, 100)}\`${meant}`;
  });

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
${asTyped(text)}</textarea>
${faultsOf(faults, name)}
<label class="file" for="${name}-file">or a file in its place; drop it here<input id="${name}-file" type="file" name="${FILE_FIELD}" accept=".yaml,.yml,.json,application/json,text/plain" data-limit="${limit}"${described(faults, FILE_FIELD)}></label>
${faultsOf(faults, FILE_FIELD)}</div>`;

const rowsOf = (text: string): number => Math.max(9, Math.min(24, text.split("\n").length + 1));
