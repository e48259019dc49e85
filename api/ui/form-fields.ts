import { ok, type Result } from "../base/result.ts";
import { bodyProblem, boundsOf } from "../http/body.ts";
import type { Exchange } from "../http/route.ts";
import { END_REASONS } from "../model/end-reasons.ts";
import { PROFILES } from "../profiles/index.ts";
import { historyProblem, type Problem, problem } from "../service/problem.ts";
import { html, raw } from "./html.ts";
import { type Html, prose } from "./page.ts";
import type { FormText } from "./what-if/posted-documents.ts";

const FORMS = /^(?:multipart\/form-data|application\/x-www-form-urlencoded)\b/i;

/** A page's messages about its form. */
export interface FormWords {
  /** Says what to send instead. */
  readonly advice: string;
  /** The message for a form above the body limit, in whole MiB. */
  readonly tooLarge: (mebibytes: number) => { readonly detail: string; readonly advice: string };
}

interface FormFields<Name extends string> {
  /** Every field, empty if it was not sent; lines end in `\n`. */
  readonly texts: Readonly<Record<Name, string>>;
  /** The whole form, its files among it. */
  readonly form: FormData;
}

/** Reads the posted form, up to the limit of any body. Errors: another type, too large, truncated, a field given twice. */
export async function formFields<Name extends string>(
  exchange: Exchange,
  names: readonly Name[],
  words: FormWords,
): Promise<Result<FormFields<Name>, Problem>> {
  const { c, deps } = exchange;
  const type = c.req.header("content-type") ?? "";
  if (!FORMS.test(type)) {
    const found = type === "" ? "there is no Content-Type" : `\`${type.slice(0, 100)}\` is not supported here`;
    return problem("unsupported_media_type", `${found}; this page takes a form`, { advice: words.advice });
  }
  const limit = deps.limits.bodyBytes;
  const read = await deps.bodies.bytes(c.req.raw, c.env, boundsOf(exchange));
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

/** A file's content; null if it is not UTF-8, or not text. */
export async function fileText(file: File): Promise<string | null> {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

/** A fault of a form's field, with the place in its text. */
export interface FormFault<Name extends string = string> {
  readonly field: Name;
  readonly text: string;
}

/** The faults of a field, below it. Their element has the id that `described` names. */
export function faultsOf(faults: readonly FormFault[], field: string): Html | "" {
  const found = faults.filter((fault) => fault.field === field);
  if (found.length === 0) return "";
  return html`<div class="note bad" id="${field}-fault" role="alert">${found.map(({ text }) => html`<p class="small">${prose(text)}</p>`)}</div>`;
}

/** Attributes of an input that has faults. */
export const described = (faults: readonly FormFault[], field: string): Html | "" =>
  faults.some((fault) => fault.field === field)
    ? html`${raw(' aria-invalid="true"')} aria-describedby="${field}-fault"`
    : "";

/** The contents of a posted form. */
export interface PostedForm<Name extends string> {
  /** Every field, empty if it was not sent; lines end in `\n`. */
  readonly texts: Readonly<Record<Name, string>>;
  /** The one file that was chosen; null: none. */
  readonly file: FormText | null;
  /** Why the file could not be read. */
  readonly fileFault: string | null;
}

/** The file input's name in all of these forms. */
export const FILE_FIELD = "file";

/** Reads the posted form, up to the limit of any body. Errors: another type, too large, truncated, a field given twice. */
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
  // a file's name is untrusted
  const name = file.name.slice(0, 120) || "the file";
  const text = await fileText(file);
  return text === null
    ? { file: null, fileFault: `${name}: is not UTF-8 text: expected YAML or JSON` }
    : { file: { name, text: text.replaceAll("\r\n", "\n") }, fileFault: null };
}

const KNOWN: readonly string[] = PROFILES.map(({ version }) => version);

/** The kubelet versions for a select. `unset`: the text for no choice. */
export const kubeletOptions = (chosen: string, unset: string, versions = KNOWN): readonly Html[] => [
  html`<option value="">${unset}</option>` as Html,
  ...[...new Set([...versions, chosen])]
    .filter((version) => version !== "")
    .map(
      (version) =>
        html`<option value="${version}"${version === chosen ? raw(" selected") : ""}>${version}</option>` as Html,
    ),
];

/** A field for a kubelet's reason, which suggests the existing ones. */
export const reasonField = (reason: string): Html =>
  html`<label>Reason<input type="text" name="reason" value="${reason}" placeholder="OutOfcpu" size="16" list="reasons"></label><datalist id="reasons">${END_REASONS.map((one) => html`<option value="${one}">`)}</datalist>`;

/** The number of nodes that a form suggests; any other name can be typed. */
const MAX_OFFERED = 500;
/** The names of nodes that a form offers to its caller. */
export async function offeredNodes({ deps, caller }: Exchange): Promise<Result<readonly string[], Problem>> {
  if (caller.node !== null) return ok([caller.node]);
  const rows = await deps.store.listNodes({ limit: MAX_OFFERED });
  if (!rows.ok) return historyProblem(rows.error);
  return ok(rows.value.map(({ name }) => name));
}
/** The suggestions for the field with `list="nodes"`. */
export const nodeChoices = (nodes: readonly string[]): Html | Promise<Html> =>
  html`<datalist id="nodes">${nodes.map((name) => html`<option value="${name}">`)}</datalist>`;
