import { ok, type Result } from "../../model/result.ts";
import type { Problem } from "../../routes/problem.ts";
import type { Exchange } from "../../routes/route.ts";
import { type FormWords, fileText, formFields } from "../form-fields.ts";
import type { GivenText } from "./documents.ts";

/** The fields of the form that hold text; all of them come back with the answer. */
export const TEXT_FIELDS = [
  "node",
  "snapshot",
  "kept",
  "paste",
  "machine",
  "cgroup",
  "as",
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
  "remove",
] as const;
export type TextField = (typeof TEXT_FIELDS)[number];
export type FieldName = TextField | "files";

/** What somebody wrote into the form, or chose. */
export interface Given {
  readonly texts: Readonly<Record<TextField, string>>;
  readonly files: readonly GivenText[];
  /** Files that hold no text. */
  readonly faults: readonly FormFault[];
}
/** What is wrong with a field, in words with the place in it. */
export interface FormFault {
  readonly field: FieldName;
  readonly text: string;
}

const MOST_FILES = 64;

/** A form that nobody has filled in. */
export const emptyGiven = (texts: Partial<Given["texts"]> = {}): Given => ({
  texts: { ...(Object.fromEntries(TEXT_FIELDS.map((name) => [name, ""])) as Given["texts"]), ...texts },
  files: [],
  faults: [],
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
export async function readGiven(exchange: Exchange): Promise<Result<Given, Problem>> {
  const fields = await formFields(exchange, TEXT_FIELDS, WORDS);
  if (!fields.ok) return fields;
  const { texts, form } = fields.value;
  const files: GivenText[] = [];
  const faults: FormFault[] = [];
  for (const entry of form.getAll("files")) {
    if (typeof entry === "string" || (entry.name === "" && entry.size === 0)) continue;
    const name = nameOf(entry.name);
    if (files.length + faults.length === MOST_FILES) {
      faults.push({
        field: "files",
        text: `there are more than ${MOST_FILES} files: those after \`${files.at(-1)?.name}\` were not read`,
      });
      break;
    }
    const text = await fileText(entry);
    if (text === null) faults.push({ field: "files", text: `${name}: is not UTF-8 text: expected YAML or JSON` });
    else files.push({ name, text });
  }
  return ok({ texts, files, faults });
}

/** What is shown of a file's name, which is anybody's. */
const nameOf = (name: string): string => (name === "" ? "a file without a name" : name.slice(0, 120));
