import { corruptRow, type StoreFailure } from "../../db/failure.ts";
import type { DecisionRow, SnapshotRow } from "../../db/store.ts";
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
  corruptRow(`${what}: what is stored of it is ${is}; restore the database from a backup`);

/** A stored snapshot's own text as what was posted. Errors: it cannot be read, and is named. */
export const postedSnapshot = ({ id, body }: Pick<SnapshotRow, "id" | "body">): ReturnType<typeof parsedObject> =>
  parsedObject(`snapshot \`${id}\``, body);

/** What a decision's body tells. */
export interface Recorded {
  readonly decision: Readonly<Record<string, unknown>>;
  readonly reasons: readonly unknown[];
  readonly needs: readonly unknown[];
}

/** The answer that was recorded. Errors: it cannot be read, and is named. */
export function recordedAnswer({ id, body }: Pick<DecisionRow, "id" | "body">): Result<Recorded, StoreFailure> {
  const what = `decision \`${id}\``;
  const found = parsedObject(what, body);
  if (!found.ok) return found;
  const { decision, reasons, needs } = found.value;
  if (!isObject(decision) || !Array.isArray(reasons) || !Array.isArray(needs)) return broken(what, "no answer");
  return ok({ decision, reasons, needs });
}
