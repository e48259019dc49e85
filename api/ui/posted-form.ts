import { ok, type Result } from "../model/result.ts";
import type { Problem } from "../routes/problem.ts";
import type { Exchange } from "../routes/route.ts";
import { type FormWords, fileText, formFields } from "./form-fields.ts";
import type { GivenText } from "./what-if/documents.ts";

/** What somebody wrote into a form of a page. */
export interface PostedForm<Name extends string> {
  /** Every field, empty where it was not sent; lines end in `\n`. */
  readonly texts: Readonly<Record<Name, string>>;
  /** The one file that was chosen; null: none. */
  readonly file: GivenText | null;
  /** Why the file was not read, in words. */
  readonly fileFault: string | null;
}

/** The file input's name in all of these forms. */
export const FILE_FIELD = "file";

/** The posted form, at most as large as any body. Errors: another type, too large, cut off, a field given twice. */
export async function postedForm<Name extends string>(
  exchange: Exchange,
  names: readonly Name[],
): Promise<Result<PostedForm<Name>, Problem>> {
  const fields = await formFields(exchange, names, WORDS);
  if (!fields.ok) return fields;
  const { texts, form } = fields.value;
  return ok({ texts, ...(await fileIn(form)) });
}

const WORDS: FormWords = {
  advice: "use the form of the page",
  tooLarge: (mebibytes) => ({
    detail: `the form has more than ${mebibytes} MiB; nothing of it was read or stored`,
    advice: "go back, where all is as it was, and choose a smaller file: a KubeletConfiguration has a few KiB",
  }),
};

async function fileIn(form: FormData): Promise<Omit<PostedForm<string>, "texts">> {
  const file = form.get(FILE_FIELD);
  if (file === null || typeof file === "string" || (file.name === "" && file.size === 0))
    return { file: null, fileFault: null };
  // a file's name is anybody's
  const name = file.name.slice(0, 120) || "the file";
  const text = await fileText(file);
  return text === null
    ? { file: null, fileFault: `${name}: is not UTF-8 text: expected YAML or JSON` }
    : { file: { name, text: text.replaceAll("\r\n", "\n") }, fileFault: null };
}
