import type { Result } from "../model/result.ts";
import { parseJson } from "../service/json.ts";
import type { Problem } from "../service/problem.ts";
import { readJsonBody } from "./body.ts";
import { type Exchange, queryOf } from "./route.ts";

/** The value that was posted to a route without parameters. Errors: as its query, its body and its JSON have them. */
export async function postedValue(exchange: Exchange): Promise<Result<unknown, Problem>> {
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const bytes = await readJsonBody(exchange);
  return bytes.ok ? parseJson(bytes.value) : bytes;
}
