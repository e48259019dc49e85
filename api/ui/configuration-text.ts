import { err, ok, type Result } from "../base/result.ts";
import type { DropIn } from "../decide/lint/drop-ins.ts";
import { readCommandLine } from "../documents/command-line.ts";
import { formText, isConfiguration } from "../documents/document-form.ts";
import { hasAt, type InputDocument, stepsOf } from "../documents/inputs/origin.ts";
import { MAX_DROP_INS } from "../http/lint.ts";
import { configurationPath } from "../model/kubelet-configuration.ts";
import type { Profile } from "../profiles/profile.ts";
import { unknownFields } from "../profiles/unknown-fields.ts";
import { described, FILE_FIELD, type FormFault, faultsOf } from "./form-fields.ts";
import { asTyped, html } from "./html.ts";
import type { Html } from "./page.ts";
import { documentOf, documentsOf, type FormText } from "./what-if/posted-documents.ts";

/** A pasted or chosen KubeletConfiguration, or some of its fields; values are not checked. */
interface ConfigurationText {
  /** The fields without the wrapper of /configz. */
  readonly value: unknown;
  readonly source: InputDocument;
  /** The path of the fields in the document. */
  readonly base: readonly string[];
}

/** Far longer than any configuration. */
const MAX_CHARACTERS = 128 * 1024;

/** Reads YAML or JSON, also the form of /configz. Errors: why the text is no configuration, with line and column. */
export function readConfigurationText(given: FormText): Result<ConfigurationText, readonly string[]> {
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

/** Finds the line of a configuration's field in the text that it was read from, from 1: that of its name. Null: it is not there. */
export function lineIn({ source, base, value }: ConfigurationText, text: string): (field: string) => number | null {
  const lines = text.split("\n");
  return (field) => {
    const steps = stepsOf(field);
    if (!source.hasPlaces || !isThere(value, steps)) return null;
    const { line } = source.place([...base, ...steps]);
    return nameAbove(lines, line, String(steps.at(-1)));
  };
}
/** Finds the line of a map's name above the map. */
function nameAbove(lines: readonly string[], line: number, name: string): number {
  const above = [line, line - 1, line - 2].find((at) => lines[at - 1]?.includes(name));
  return above ?? line;
}
function isThere(value: unknown, steps: readonly (string | number)[]): boolean {
  const [first] = steps;
  return first !== undefined && typeof value === "object" && value !== null && Object.hasOwn(value, first);
}

/** The kubelet's command line in a pasted text; null: empty. Errors: it has no flag. */
export function readArgsText(text: string): Result<readonly string[] | null, string> {
  if (text.trim() === "") return ok(null);
  if (text.length > MAX_CHARACTERS)
    return err(`has more than ${MAX_CHARACTERS.toLocaleString("en")} characters: give the command line alone`);
  const { args } = readCommandLine(text);
  return args.length === 0 ? err("there is no flag in it, such as --max-pods=110") : ok(args.map((word) => word.text));
}

export interface DropInsText {
  readonly dropIns: readonly DropIn[];
  /** `drop-in 2, line 7` of the last one that has the field; null: none has. */
  readonly placeOf: (field: string) => string | null;
}

/**
 * The drop-ins of a `--config-dir` in a pasted text, one per document; null: empty. Errors: no YAML or JSON, or too
 * many.
 */
export function readDropInsText(text: string): Result<DropInsText | null, string> {
  if (text.trim() === "") return ok(null);
  const read = documentsOf({ name: "the drop-ins", text });
  if (!read.ok) return err(read.error.join("; "));
  const sources = read.value;
  if (sources.length > MAX_DROP_INS) return err(`these are ${sources.length} files, and ${MAX_DROP_INS} are the most`);
  const lines = text.split("\n");
  const nameOf = (i: number): string => `drop-in ${i + 1}`;
  return ok({
    dropIns: sources.map(({ value: document }, i) => ({ file: nameOf(i), document })),
    placeOf: (field) => {
      const steps = stepsOf(field);
      const i = steps.length === 0 ? -1 : sources.findLastIndex(({ value }) => hasAt(value, steps));
      const source = sources[i];
      if (source === undefined) return null;
      const line = nameAbove(lines, source.place(steps).line, String(steps.at(-1)));
      return source.hasPlaces ? `${nameOf(i)}, line ${line}` : nameOf(i);
    },
  });
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

/** A text area for the drop-ins of the kubelet's `--config-dir`. */
export const dropInsField = (text: string, faults: readonly FormFault[]): Html => html`
<label for="dropIns">The files of its <code>--config-dir</code> in their order, which are merged over that: YAML or JSON, with <code>---</code> between two files</label>
<textarea id="dropIns" name="dropIns" rows="2" spellcheck="false" autocomplete="off" placeholder="none"${described(faults, "dropIns")}>
${asTyped(text)}</textarea>
${faultsOf(faults, "dropIns")}`;

/** A text area for the kubelet's command line. */
export const argsField = (text: string, faults: readonly FormFault[]): Html => html`
<label for="args">The kubelet’s command line, whose flags override it: <code>ps -o args</code>, <code>systemctl cat kubelet</code> or <code>kubeadm-flags.env</code></label>
<textarea id="args" name="args" rows="2" spellcheck="false" autocomplete="off" placeholder="not known"${described(faults, "args")}>
${asTyped(text)}</textarea>
${faultsOf(faults, "args")}`;

const rowsOf = (text: string): number => Math.max(9, Math.min(24, text.split("\n").length + 1));
