import type * as z from "zod";
import { ROUTES } from "../../api/http/index.ts";
import { ANSWERS, type AnswerName } from "../../api/http/openapi/answers.ts";
import { openApi } from "../../api/http/openapi/contract.ts";
import { problemAnswer } from "../../api/http/openapi/decision-answers.ts";
import { OPERATIONS } from "../../api/http/openapi/operations.ts";
import { PROBLEM_TYPE } from "../../api/http/problem.ts";
import type { FuzzRequest } from "./requests.ts";

export interface FuzzAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly text: string;
}

const DOCUMENTED = ROUTES.map(({ method, path }) => ({
  method,
  path,
  pattern: new RegExp(`^${path.replace(/:\w+/g, "[^/]+")}$`),
}));
const { paths } = (await openApi(ROUTES)).document;

/** One line about the fault of an answer; null: no fault. */
export function faultOf({ method, target }: Pick<FuzzRequest, "method" | "target">, answer: FuzzAnswer): string | null {
  const { status, headers, text } = answer;
  if (status >= 500) return `status ${status}: ${text.slice(0, 300)}`;
  if (text.includes('"code":"internal"')) return "an internal fault inside of the answer";
  for (const [name, wanted] of Object.entries(ALWAYS))
    if (headers[name] !== wanted) return `${name}: ${String(headers[name])} instead of ${wanted}`;
  // parsing the target as a URL removes `.` and `..`
  const path = new URL(target, "http://localhost").pathname;
  const [type = ""] = String(headers["content-type"] ?? "").split(";");
  const route = DOCUMENTED.find((one) => one.method === (method === "HEAD" ? "GET" : method) && one.pattern.test(path));
  if (route !== undefined) return undocumented(route, method, status, type, text);
  if (type === PROBLEM_TYPE && method !== "HEAD") return malformed(problemAnswer, text, "the problem");
  return null;
}
const ALWAYS = { "x-content-type-options": "nosniff", "cross-origin-resource-policy": "same-origin" };

function undocumented(
  route: { readonly method: string; readonly path: string },
  method: string,
  status: number,
  type: string,
  text: string,
): string | null {
  const name = `${route.method} ${route.path}`;
  const operation = paths[route.path.replace(/:(\w+)/g, "{$1}")]?.[route.method.toLowerCase()];
  const responses = operation?.["responses"] as Record<string, { content?: Record<string, unknown> }>;
  const described = responses[status];
  if (described === undefined) return `${name} answers ${status}, which its contract lacks: ${text.slice(0, 300)}`;
  const types = described.content === undefined ? [""] : Object.keys(described.content);
  // a browser gets the same content as a page
  if (!types.includes(type)) return `${name} answers ${status} as \`${type}\`, its contract says ${types.join(", ")}`;
  if (method === "HEAD" || status === 304) return text === "" ? null : `${name}: a body where none may be`;
  if (type === PROBLEM_TYPE) return malformed(problemAnswer, text, `${name} ${status}`);
  const answered = OPERATIONS[name]?.answers[status];
  if (type === "text/csv") return null;
  const schema = typeof answered === "string" ? answered : answered?.of;
  if (schema === undefined) return null;
  const documents = type === "application/x-ndjson" ? text.split("\n").filter((line) => line !== "") : [text];
  return (
    documents
      .map((one) => malformed(ANSWERS[schema as AnswerName], one, `${name} ${status}`))
      .find((fault) => fault !== null) ?? null
  );
}

function malformed(schema: z.ZodType, text: string, what: string): string | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return `${what} is no JSON: ${text.slice(0, 200)}`;
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return null;
  const [issue] = parsed.error.issues;
  return `${what} is not as its schema: ${issue?.path.join(".")}: ${issue?.message}`;
}
