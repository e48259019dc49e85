import { failure, type StoreFailure } from "../../db/failure.ts";
import { ok, type Result } from "../model/result.ts";
import { isObject } from "./change.ts";

/** JSON text of the history -> value. Errors: what is none is `corrupt`; `what` names its row. */
export function parsed(what: string, text: string): Result<unknown, StoreFailure> {
  try {
    return ok(JSON.parse(text) as unknown);
  } catch {
    return broken(what, "not JSON");
  }
}

/** The same of what can only be an object. */
export function parsedObject(what: string, text: string): Result<Readonly<Record<string, unknown>>, StoreFailure> {
  const found = parsed(what, text);
  if (!found.ok) return found;
  return isObject(found.value) ? ok(found.value) : broken(what, "no object");
}

const broken = (what: string, is: string): Result<never, StoreFailure> =>
  failure("corrupt", `${what}: what is stored of it is ${is}; restore the database from a backup`);
