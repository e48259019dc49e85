import { ok, type Result } from "../../base/result.ts";
import type { Exchange } from "../../http/route.ts";
import arm64OneSocket from "../../machines/arm64-1s.json" with { type: "json" };
import arm64TwoSockets from "../../machines/arm64-2s.json" with { type: "json" };
import desktopHybrid from "../../machines/desktop-hybrid.json" with { type: "json" };
import epycNps1 from "../../machines/epyc-2s-nps1.json" with { type: "json" };
import epycNps4 from "../../machines/epyc-2s-nps4.json" with { type: "json" };
import epycUncore from "../../machines/epyc-uncore-split.json" with { type: "json" };
import { expandLayout, type MachineLayout } from "../../machines/layout.ts";
import vmSmall from "../../machines/vm-small.json" with { type: "json" };
import xeon from "../../machines/xeon-2s.json" with { type: "json" };
import xeonSnc2 from "../../machines/xeon-2s-snc2.json" with { type: "json" };
import type { Machine } from "../../model/machine.ts";
import type { Problem } from "../../service/problem.ts";
import { type FormWords, fileText, formFields } from "../form-fields.ts";
import type { FormText } from "./posted-documents.ts";

/** The machines of `nodewise machines`, as a platform without a disk has them. */
const LAYOUTS: Readonly<Record<string, MachineLayout>> = {
  "arm64-1s": arm64OneSocket,
  "arm64-2s": arm64TwoSockets,
  "desktop-hybrid": desktopHybrid,
  "epyc-2s-nps1": epycNps1,
  "epyc-2s-nps4": epycNps4,
  "epyc-uncore-split": epycUncore,
  "vm-small": vmSmall,
  "xeon-2s": xeon,
  "xeon-2s-snc2": xeonSnc2,
};
export const MACHINES: readonly { readonly name: string; readonly description: string }[] = Object.entries(LAYOUTS).map(
  ([name, { description }]) => ({ name, description }),
);

/** Undefined for a name that is not in the library. */
export const machineNamed = (name: string): Machine | undefined => {
  const layout = Object.hasOwn(LAYOUTS, name) ? LAYOUTS[name] : undefined;
  return layout === undefined ? undefined : expandLayout(layout);
};

/** The text fields of the form; the answer contains all of them again. */
export const TEXT_FIELDS = [
  "node",
  "snapshot",
  "kept",
  "paste",
  "machine",
  "cgroup",
  "as",
  "kubelet",
  "change",
  "kubeReserved",
  "systemReserved",
  "evictionHard",
  "maxPods",
  "cpuManagerPolicy",
  "topologyManagerPolicy",
  "imageGCHighThresholdPercent",
  "imageGCLowThresholdPercent",
  "pod",
  "resize",
  "remove",
] as const;
export type TextField = (typeof TEXT_FIELDS)[number];
export type FieldName = TextField | "files";

/** The texts and choices entered in the form. */
export interface FormValues {
  readonly texts: Readonly<Record<TextField, string>>;
  readonly files: readonly FormText[];
  /** Files that were not read, since there are too many. */
  readonly faults: readonly FormFault[];
  /** Files that are no text: the rest is used without them. */
  readonly warnings: readonly FormFault[];
}
/** A fault of a field, as a sentence with its place. */
export interface FormFault {
  readonly field: FieldName;
  readonly text: string;
}

const MAX_FILES = 64;

/** A form without input. */
export const emptyForm = (texts: Partial<FormValues["texts"]> = {}): FormValues => ({
  texts: { ...(Object.fromEntries(TEXT_FIELDS.map((name) => [name, ""])) as FormValues["texts"]), ...texts },
  files: [],
  faults: [],
  warnings: [],
});

const WORDS: FormWords = {
  advice: "use the form of /what-if",
  tooLarge: (mebibytes) => ({
    detail: `what was given is larger than ${mebibytes} MiB, and nothing of it was read`,
    advice:
      "go back and give fewer files at a time: what has been recognised is kept in the form. `nodewise decide` takes 64 MiB a file, and nothing leaves the machine",
  }),
};

/** The posted form, at most as large as any body. Errors: another type, too large, cut off, no form. */
export async function readForm(exchange: Exchange): Promise<Result<FormValues, Problem>> {
  const fields = await formFields(exchange, TEXT_FIELDS, WORDS);
  if (!fields.ok) return fields;
  const { texts, form } = fields.value;
  const files: FormText[] = [];
  const faults: FormFault[] = [];
  const warnings: FormFault[] = [];
  for (const entry of form.getAll("files")) {
    if (typeof entry === "string" || (entry.name === "" && entry.size === 0)) continue;
    const name = nameOf(entry.name);
    if (files.length + warnings.length === MAX_FILES) {
      faults.push({
        field: "files",
        text: `there are more than ${MAX_FILES} files: those after \`${files.at(-1)?.name}\` were not read`,
      });
      break;
    }
    const text = await fileText(entry);
    if (text === null) warnings.push({ field: "files", text: `${name}: skipped, as it is not UTF-8 text` });
    else files.push({ name, text });
  }
  return ok({ texts, files, faults, warnings });
}

/** The shown part of a file's name, which is untrusted. */
const nameOf = (name: string): string => (name === "" ? "a file without a name" : name.slice(0, 120));
