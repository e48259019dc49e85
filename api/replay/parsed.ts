import { corruptRow, type StoreFailure } from "../../db/failure.ts";
import type { DecisionHead, DecisionRow, SnapshotRow } from "../../db/store.ts";
import { isKind, type Kind } from "../model/decision.ts";
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

/** Characters of a name that is damaged. */
const MOST_NAMED = 64;

/** Of which kind a decision is. Errors: of one that only another version knows, or none; it is named. */
export const knownKind = ({ id, kind }: Pick<DecisionHead, "id" | "kind">): Result<Kind, StoreFailure> =>
  isKind(kind)
    ? ok(kind)
    : corruptRow(
        `decision \`${id}\` is of a kind that this version does not know: \`${kind.slice(0, MOST_NAMED)}\`; read it with the version that wrote it, or restore the database from a backup`,
      );

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
