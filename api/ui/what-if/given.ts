import { err, ok, type Result } from "../../model/result.ts";
import { bodyProblem } from "../../routes/body.ts";
import { type Problem, problem } from "../../routes/problem.ts";
import type { Exchange } from "../../routes/route.ts";
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
const FORMS = /^(?:multipart\/form-data|application\/x-www-form-urlencoded)\b/i;

/** A form that nobody has filled in. */
export const emptyGiven = (texts: Partial<Given["texts"]> = {}): Given => ({
  texts: { ...(Object.fromEntries(TEXT_FIELDS.map((name) => [name, ""])) as Given["texts"]), ...texts },
  files: [],
  faults: [],
});

/** The posted form, at most as large as any body. Errors: another type, too large, cut off, no form. */
export async function readGiven({ c, ports }: Exchange): Promise<Result<Given, Problem>> {
  const type = c.req.header("content-type") ?? "";
  if (!FORMS.test(type)) {
    const found = type === "" ? "there is no Content-Type" : `\`${type.slice(0, 100)}\` is not supported here`;
    return problem("unsupported_media_type", `${found}; this page takes a form`, {
      advice: "use the form of /what-if",
    });
  }
  const limit = ports.limits.bodyBytes;
  const read = await ports.bodies.bytes(c.req.raw, c.env, limit);
  if (!read.ok) return tooLarge(bodyProblem(read.error, limit), limit);
  let form: FormData;
  try {
    form = await new Response(read.value as Uint8Array<ArrayBuffer>, { headers: { "content-type": type } }).formData();
  } catch {
    return problem("malformed_body", "the form ended early, or is not as its Content-Type says");
  }
  return givenIn(form);
}

function tooLarge(failed: Result<never, Problem>, limit: number): Result<never, Problem> {
  if (failed.ok || failed.error.code !== "body_too_large") return failed;
  return err({
    ...failed.error,
    detail: `what was given is larger than ${Math.floor(limit / 1024 ** 2)} MiB, and nothing of it was read`,
    advice:
      "go back and give fewer files at a time: what has been recognised is kept in the form. `nodewise decide` takes 64 MiB a file, and nothing leaves the machine",
  });
}

async function givenIn(form: FormData): Promise<Result<Given, Problem>> {
  const texts = { ...emptyGiven().texts };
  for (const name of TEXT_FIELDS) {
    const [value, second] = form.getAll(name);
    if (second !== undefined || (value !== undefined && typeof value !== "string"))
      return problem("malformed_body", `the form has \`${name}\` more than once, or as a file`);
    texts[name] = (value ?? "").replaceAll("\r\n", "\n");
  }
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
    const text = textOf(await entry.arrayBuffer());
    if (text === null) faults.push({ field: "files", text: `${name}: is not UTF-8 text: expected YAML or JSON` });
    else files.push({ name, text });
  }
  return ok({ texts, files, faults });
}

/** What is shown of a file's name, which is anybody's. */
const nameOf = (name: string): string => (name === "" ? "a file without a name" : name.slice(0, 120));

function textOf(bytes: ArrayBuffer): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}
