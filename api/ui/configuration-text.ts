import { formText, isConfiguration } from "../../actuator/manifests/document-form.ts";
import type { InputDocument } from "../inputs/document.ts";
import { configurationPath } from "../model/kubelet-configuration.ts";
import { unknownFields } from "../model/kubelet-unknown-fields.ts";
import { err, ok, type Result } from "../model/result.ts";
import { documentOf, type GivenText } from "./what-if/documents.ts";

/** A KubeletConfiguration, or some of its fields, that somebody pasted or chose as a file. Its values are not looked at. */
export interface ConfigurationText {
  /** Its fields, without what /configz has around them. */
  readonly value: unknown;
  readonly source: InputDocument;
  /** Where the fields stand in the document. */
  readonly base: readonly string[];
}

/** No configuration comes near. */
export const MOST_CHARACTERS = 128 * 1024;

/** Reads YAML or JSON, /configz too. Errors: what it is instead, or where it stops being that, in words with line and column. */
export function readConfigurationText(given: GivenText): Result<ConfigurationText, readonly string[]> {
  const { name, text } = given;
  if (text.length > MOST_CHARACTERS)
    return err([
      `${name}: has ${text.length.toLocaleString("en")} characters, and no KubeletConfiguration has more than ${MOST_CHARACTERS.toLocaleString("en")}: give it alone`,
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

/** What is misspelt changes nothing: each such field with its place. */
export const misspelt = ({ value, source, base }: ConfigurationText): readonly string[] =>
  unknownFields(value).map(({ path, near }) => {
    const { line, column } = source.place([...base, ...path]);
    const meant = near === null ? "" : `; \`${near}\` is near`;
    return `${source.file}:${line}:${column}: the kubelet knows no field \`${path.join(".").slice(0, 100)}\`${meant}`;
  });
