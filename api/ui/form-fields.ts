import { ok, type Result } from "../model/result.ts";
import { bodyProblem } from "../routes/body.ts";
import { type Problem, problem } from "../routes/problem.ts";
import type { Exchange } from "../routes/route.ts";

const FORMS = /^(?:multipart\/form-data|application\/x-www-form-urlencoded)\b/i;

/** What a page says of its own form where it cannot be taken. */
export interface FormWords {
  /** What to send in its place. */
  readonly advice: string;
  /** Of a form above the limit of a body, in whole MiB. */
  readonly tooLarge: (mebibytes: number) => { readonly detail: string; readonly advice: string };
}

export interface FormFields<Name extends string> {
  /** Every field, empty where it was not sent; lines end in `\n`. */
  readonly texts: Readonly<Record<Name, string>>;
  /** The whole form, its files among it. */
  readonly form: FormData;
}

/** The posted form, at most as large as any body. Errors: another type, too large, cut off, a field given twice. */
export async function formFields<Name extends string>(
  { c, ports }: Exchange,
  names: readonly Name[],
  words: FormWords,
): Promise<Result<FormFields<Name>, Problem>> {
  const type = c.req.header("content-type") ?? "";
  if (!FORMS.test(type)) {
    const found = type === "" ? "there is no Content-Type" : `\`${type.slice(0, 100)}\` is not supported here`;
    return problem("unsupported_media_type", `${found}; this page takes a form`, { advice: words.advice });
  }
  const limit = ports.limits.bodyBytes;
  const read = await ports.bodies.bytes(c.req.raw, c.env, limit);
  if (!read.ok) {
    if (read.error !== "too_large") return bodyProblem(read.error, limit);
    const { detail, advice } = words.tooLarge(Math.floor(limit / 1024 ** 2));
    return problem("body_too_large", detail, { advice });
  }
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
  return ok({ texts, form });
}

/** A file's content; null where it is no UTF-8. */
export async function fileText(file: File): Promise<string | null> {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    return null;
  }
}
