import { joinPath } from "./input-issue.ts";
import { KUBELET_CONFIGURATION_FIELDS, NESTED_FIELDS } from "./kubelet-configuration-fields.ts";
import { nearName } from "./near-name.ts";

type Path = readonly (string | number)[];
export interface UnknownField {
  readonly path: Path;
  /** As the kubelet's strict decoding names it. kubelet 1.36: DecodeKubeletConfiguration. */
  readonly fault: string;
  /** The name that was perhaps meant, of the same object; null: none is near. */
  readonly near: string | null;
}

/**
 * Fields of a KubeletConfiguration that a kubelet does not know, at every depth, in the order of the document. A misspelt
 * field is a default that nobody wanted. Maps, whose names are anybody's, are not looked into.
 */
export function unknownFields(configuration: unknown): readonly UnknownField[] {
  return below(configuration, [], "");
}

/** Nobody misspells one that is so long. */
const LONGEST_NAME = 64;

/** `form`: the path without the places in lists, by which `NESTED_FIELDS` names what is known. */
function below(value: unknown, path: Path, form: string): readonly UnknownField[] {
  if (Array.isArray(value)) return value.flatMap((item, i) => below(item, [...path, i], form));
  const known = form === "" ? KUBELET_CONFIGURATION_FIELDS : NESTED_FIELDS.get(form);
  if (known === undefined || typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const at = [...path, name];
    if (known.includes(name)) return below(inner, at, form === "" ? name : `${form}.${name}`);
    const fault = `strict decoding error: unknown field "${joinPath("", at)}"`;
    return [{ path: at, fault, near: name.length > LONGEST_NAME ? null : nearName(name, known) }];
  });
}
