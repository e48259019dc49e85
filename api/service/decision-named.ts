import type { StoreFailure } from "../../db/failure.ts";
import type { DecisionRow } from "../../db/rows.ts";
import type { Store } from "../../db/store.ts";
import { ok, type Result } from "../base/result.ts";

/** The start of an id, as lists show it. */
const BEGINNING = /^[0-9a-f]{8,31}$/;
/** The most ids listed if several have the same start. */
const FEW = 4;

/** A decision, or why there is none: no id has this start, or several have. */
type FoundDecision =
  | { readonly row: DecisionRow }
  | { readonly row: null /** Empty if no decision matches. */; readonly ids: readonly string[] };

/** The decision with an id, or with a unique start of at least 8 characters among the decisions whose node `isSeen` accepts. */
export async function decisionNamed(
  store: Pick<Store, "getDecision" | "decisionsBeginning">,
  id: string,
  isSeen: (node: string) => boolean = () => true,
): Promise<Result<FoundDecision, StoreFailure>> {
  const whole = await store.getDecision(id);
  if (!whole.ok) return whole;
  if (whole.value !== null) return ok(isSeen(whole.value.node) ? { row: whole.value } : { row: null, ids: [] });
  if (!BEGINNING.test(id)) return ok({ row: null, ids: [] });
  const found = await store.decisionsBeginning(id);
  if (!found.ok) return found;
  const ids = found.value.filter(({ node }) => isSeen(node)).map((one) => one.id);
  const [only, another] = ids;
  if (only === undefined || another !== undefined) return ok({ row: null, ids: ids.slice(0, FEW) });
  const row = await store.getDecision(only);
  return row.ok ? ok(row.value === null ? { row: null, ids: [] } : { row: row.value }) : row;
}

/** The message if there is not exactly one. */
export const notFoundText = (id: string, ids: readonly string[]): string =>
  ids.length === 0
    ? `there is no decision \`${id.slice(0, 64)}\``
    : `several decisions begin with \`${id}\`: ${ids.join(", ")}; give more of the id`;
