import type { InputDocument } from "../../inputs/document.ts";
import { unknownFields } from "../../model/kubelet-unknown-fields.ts";
import { type Fields, fieldsOf } from "./assemble.ts";
import { documentOf } from "./documents.ts";
import type { FormFault, Given, TextField } from "./given.ts";

/** What is to be otherwise. */
export interface Change {
  /** Of the kubelet's configuration; null: nothing. */
  readonly configuration: {
    /** `whole`: in the place of the configuration; `patch`: onto it, a merge patch of RFC 7396. */
    readonly as: "patch" | "whole";
    readonly value: unknown;
    /** Where it was written; null: in the fields beside it. */
    readonly source: InputDocument | null;
  } | null;
  /** A v1.Pod, or NAMESPACE/NAME of one that is there; null: none. */
  readonly pod: { readonly posted: unknown; readonly source: InputDocument | null } | null;
  /** Names of pods, with their namespace or without. */
  readonly remove: readonly string[];
}
export interface ReadChange {
  readonly change: Change;
  readonly faults: readonly FormFault[];
  /** Of what is misspelt, which changes nothing. */
  readonly warnings: readonly FormFault[];
  /** The configuration's text with what the fields beside it say. */
  readonly text: string;
}

/** What the form says is to be otherwise. */
export function readChange({ texts }: Given): ReadChange {
  const faults: FormFault[] = [];
  const at = (field: TextField, found: readonly string[]): void => {
    faults.push(...found.map((text) => ({ field, text })));
  };
  const handy = handyPatch(texts, at);
  const written = readWritten(texts, at);
  const posted = written?.value;
  const unwrapped = fieldsOf(posted)["kubeletconfig"] ?? posted;
  const hasHandy = Object.keys(handy).length > 0;
  const value = hasHandy ? joined(fieldsOf(unwrapped), handy) : posted;
  const as = texts.as === "whole" ? "whole" : "patch";
  const warnings = unknownFields(unwrapped).map(({ path, near }) => {
    const place =
      written?.hasPlaces === true ? written.place([...(unwrapped === posted ? [] : ["kubeletconfig"]), ...path]) : null;
    const where = place === null ? "" : `:${place.line}:${place.column}`;
    const meant = near === null ? "" : `; \`${near}\` is near`;
    return {
      field: "change" as const,
      text: `the change${where}: the kubelet knows no field \`${path.join(".").slice(0, 100)}\`${meant}`,
    };
  });
  return {
    change: {
      configuration: value === undefined ? null : { as, value, source: hasHandy && written === null ? null : written },
      pod: podOf(texts, at),
      remove: texts.remove.split(/[\s,]+/).filter((name) => name !== ""),
    },
    faults,
    warnings,
    text: hasHandy && !faults.some(({ field }) => field === "change") ? JSON.stringify(value, null, 2) : texts.change,
  };
}
/** One patch that does what both do, the second after the first; a null in it stays, as it takes something away. */
const joined = (first: Fields, second: Fields): Fields => ({
  ...first,
  ...Object.fromEntries(
    Object.entries(second).map(([name, value]) => [
      name,
      typeof value === "object" ? { ...fieldsOf(first[name]), ...value } : value,
    ]),
  ),
});

type Tell = (field: TextField, found: readonly string[]) => void;

function readWritten({ change }: Given["texts"], tell: Tell): InputDocument | null {
  if (change.trim() === "") return null;
  const read = documentOf({ name: "the change", text: change });
  if (!read.ok) tell("change", read.error);
  else if (typeof read.value.value !== "object" || Array.isArray(read.value.value))
    tell("change", ['the change: expected fields of a KubeletConfiguration, such as {"maxPods": 110}']);
  else return read.value;
  return null;
}

function podOf({ pod }: Given["texts"], tell: Tell): Change["pod"] {
  const text = pod.trim();
  if (text === "") return null;
  if (/^[a-z0-9][a-z0-9-]*\/[a-z0-9][a-z0-9.-]*$/.test(text)) return { posted: text, source: null };
  const read = documentOf({ name: "the pod", text: pod });
  if (read.ok) {
    const { kind = "Pod" } = fieldsOf(read.value.value);
    if (kind === "Pod" && typeof read.value.value === "object") return { posted: read.value.value, source: read.value };
    tell("pod", [
      `the pod: expected a v1.Pod, or NAMESPACE/NAME of one that is there, found \`${String(kind).slice(0, 60)}\``,
    ]);
  } else tell("pod", read.error);
  return null;
}

const MAPS = ["kubeReserved", "systemReserved", "evictionHard"] as const;
const COUNTS = ["maxPods", "imageGCHighThresholdPercent", "imageGCLowThresholdPercent"] as const;
const POLICIES = ["cpuManagerPolicy", "topologyManagerPolicy"] as const;

/** What the single fields say, as a merge patch. */
function handyPatch(texts: Given["texts"], tell: Tell): Fields {
  const patch: Record<string, unknown> = {};
  for (const field of MAPS) {
    const pairs = texts[field]
      .split(/[,\n;]+/)
      .map((pair) => pair.trim())
      .filter((pair) => pair !== "");
    if (pairs.length === 0) continue;
    const entries: [string, string | null][] = [];
    for (const pair of pairs) {
      const [, name, value] = /^([\w.-]+)\s*[=:<]\s*(\S*)$/.exec(pair) ?? [];
      if (name === undefined || value === undefined)
        tell(field, [`${field}: expected pairs such as ${EXAMPLES[field]}, found \`${pair.slice(0, 60)}\``]);
      else entries.push([name, value === "" ? null : value]);
    }
    patch[field] = Object.fromEntries(entries);
  }
  for (const field of COUNTS) {
    const text = texts[field].trim();
    if (text === "") continue;
    if (/^-?\d{1,9}$/.test(text)) patch[field] = Number(text);
    else tell(field, [`${field}: expected a whole number, found \`${text.slice(0, 60)}\``]);
  }
  for (const field of POLICIES) if (texts[field] !== "") patch[field] = texts[field];
  return patch;
}
export const EXAMPLES: Readonly<Record<(typeof MAPS)[number], string>> = {
  kubeReserved: "cpu=200m, memory=500Mi",
  systemReserved: "cpu=100m, memory=200Mi",
  evictionHard: "memory.available<500Mi, nodefs.available<10%",
};
