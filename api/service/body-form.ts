import * as z from "zod";
import { isObject } from "../base/own.ts";
import { err, ok, type Result } from "../base/result.ts";
import { issuesOf } from "../model/decode.ts";
import { VERSION_FORM, VERSION_PATTERN } from "../model/fields.ts";
import { KNOWN_VERSION_PATTERN, knownVersion } from "../profiles/index.ts";
import { inputProblem, invalid, type Problem } from "./problem.ts";

/** The form of decision and snapshot ids. */
export const ID = /^[0-9a-f]{32}$/;
export const isId = (text: string): boolean => ID.test(text);
/** The form of an id. `fault`: the message for other texts. */
export const idText = (fault: string) => z.string(fault).regex(ID, fault);
/** The form of a kubelet version. */
export const versionText = z.string(VERSION_FORM).regex(new RegExp(VERSION_PATTERN), VERSION_FORM);
/** The form of a version that this program must know; otherwise another version's rules would be used unnoticed. */
export const knownVersionText = z
  .string(VERSION_FORM)
  .superRefine((text, ctx) => {
    const known = knownVersion("", text);
    if (!known.ok) ctx.addIssue({ code: "custom", message: known.error.message });
  })
  .meta({ pattern: KNOWN_VERSION_PATTERN });

/**
 * Validates a request's body; each member has its own messages, and null counts as absent. `example`: a valid body. Errors: the
 * body is no object, the first unknown field, or the first fault of each member.
 */
export function readBody<S extends z.ZodRawShape>(
  form: z.ZodObject<S>,
  body: unknown,
  example: string,
): Result<z.output<z.ZodObject<S>>, Problem> {
  if (!isObject(body)) return invalid("$", `expected an object such as ${example}`);
  for (const name in body) if (!Object.hasOwn(form.shape, name)) return unknownField(name, Object.keys(form.shape));
  const given = Object.fromEntries(Object.entries(body).filter(([, member]) => member !== null));
  const read = form.safeParse(given);
  if (read.success) return ok(read.data);
  const issues = issuesOf(read.error, given, "");
  return err(inputProblem(issues.filter(({ path }, i) => issues.findIndex((one) => one.path === path) === i)));
}

/** A misspelt field would change the meaning of a request, so it is an error. */
const unknownField = (name: string, fields: readonly string[]): Result<never, Problem> =>
  invalid(name.slice(0, 64), `there is no such field; the fields are ${fields.join(", ")}`);
