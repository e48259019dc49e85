import { ok, type Result } from "../model/result.ts";
import { bodyProblem } from "../routes/body.ts";
import { type Problem, problem } from "../routes/problem.ts";
import type { Exchange } from "../routes/route.ts";
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

const FORMS = /^(?:multipart\/form-data|application\/x-www-form-urlencoded)\b/i;
/** The file input's name in all of these forms. */
export const FILE_FIELD = "file";

/** The posted form, at most as large as any body. Errors: another type, too large, cut off, a field given twice. */
export async function postedForm<Name extends string>(
  { c, ports }: Exchange,
  names: readonly Name[],
): Promise<Result<PostedForm<Name>, Problem>> {
  const type = c.req.header("content-type") ?? "";
  if (!FORMS.test(type)) {
    const found = type === "" ? "there is no Content-Type" : `\`${type.slice(0, 100)}\` is not supported here`;
    return problem("unsupported_media_type", `${found}; this page takes a form`, {
      advice: "use the form of the page",
    });
  }
  const limit = ports.limits.bodyBytes;
  const read = await ports.bodies.bytes(c.req.raw, c.env, limit);
  if (!read.ok) return read.error === "too_large" ? tooLarge(limit) : bodyProblem(read.error, limit);
  let form: FormData;
  try {
    form = await new Response(read.value as Uint8Array<ArrayBuffer>, { headers: { "content-type": type } }).formData();
  } catch {
    return problem("malformed_body", "the form ended early, or is not as its Content-Type says");
  }
  const texts = {} as Record<Name, string>;
  for (const name of names) {
    const [value, second] = form.getAll(name);
    if (second !== undefined || (value !== undefined && typeof value !== "string"))
      return problem("malformed_body", `the form has \`${name}\` more than once, or as a file`);
    texts[name] = (value ?? "").replaceAll("\r\n", "\n");
  }
  return ok({ texts, ...(await fileIn(form)) });
}

const tooLarge = (limit: number): Result<never, Problem> =>
  problem(
    "body_too_large",
    `the form has more than ${Math.floor(limit / 1024 ** 2)} MiB; nothing of it was read or stored`,
    {
      advice: "go back, where all is as it was, and choose a smaller file: a KubeletConfiguration has a few KiB",
    },
  );

async function fileIn(form: FormData): Promise<Omit<PostedForm<string>, "texts">> {
  const file = form.get(FILE_FIELD);
  if (file === null || typeof file === "string" || (file.name === "" && file.size === 0))
    return { file: null, fileFault: null };
  // a file's name is anybody's
  const name = file.name.slice(0, 120) || "the file";
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    return { file: { name, text: text.replaceAll("\r\n", "\n") }, fileFault: null };
  } catch {
    return { file: null, fileFault: `${name}: is not UTF-8 text: expected YAML or JSON` };
  }
}
