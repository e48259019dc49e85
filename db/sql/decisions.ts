import { type AnyColumn, and, eq, gte, lt, type SQL, sql } from "drizzle-orm";
import { ok, type Result } from "../../api/base/result.ts";
import { decodeBody, type Packing } from "../body.ts";
import type { StoreFailure } from "../failure.ts";
import type { DecisionHead, DecisionRow } from "../rows.ts";
import type { DecisionFilter, Store } from "../store.ts";
import { type Driver, prepared } from "./driver.ts";
import { newestFirst, ofPod, pageOf } from "./page.ts";
import { bodyReader, grouped, withSlices } from "./parts.ts";
import { decisions, idempotency, rareVerdictCondition, series, texts } from "./schema.ts";

/** All columns but the ask and the body, which may be long. */
const HEAD = {
  seq: decisions.seq,
  id: decisions.id,
  kind: decisions.kind,
  node: decisions.node,
  snapshotId: decisions.snapshotId,
  policyVersion: decisions.policyVersion,
  verdict: decisions.verdict,
  reason: decisions.reason,
  explain: decisions.explain,
  decidedAtMs: decisions.decidedAtMs,
  podNamespace: decisions.podNamespace,
  podName: decisions.podName,
  podUid: decisions.podUid,
} as const;
type HeadColumns = Pick<typeof decisions.$inferSelect, keyof typeof HEAD>;
type SeriesRow = typeof series.$inferSelect;

export function headOf(row: HeadColumns, repeated: SeriesRow | null): DecisionHead {
  const { podNamespace, podName, podUid, id, kind, node, snapshotId, policyVersion } = row;
  const { verdict, reason, explain, decidedAtMs } = row;
  const pod =
    podUid === null || podName === null ? null : { namespace: podNamespace ?? "", name: podName, uid: podUid };
  const head = { id, kind, node, snapshotId, policyVersion, verdict, reason, explain, decidedAtMs, pod };
  if (repeated === null) return head;
  const { times, lastAtMs, lastSnapshotId } = repeated;
  return { ...head, series: { times, lastAtMs, lastSnapshotId } };
}

/** The series of a decision, which it is read with. */
export const ofDecision = eq(series.seq, decisions.seq);

interface DecisionWithTexts {
  readonly row: typeof decisions.$inferSelect;
  readonly series: SeriesRow | null;
  readonly texts: readonly (typeof texts.$inferSelect)[];
}

/** Row and its texts -> decision with its body decoded. */
export function decisionReader(
  packing: Packing,
): (found: DecisionWithTexts) => Promise<Result<DecisionRow, StoreFailure>> {
  const wholeBody = bodyReader(packing);
  return async ({ row, texts: shared, series: repeated }) => {
    const what = `decision \`${row.id}\``;
    const body = await wholeBody(what, row, shared);
    if (!body.ok) return body;
    const ask = await readAsk(`ask of ${what}`, row, shared, packing);
    return ask.ok ? ok({ ...headOf(row, repeated), ask: ask.value, body: body.value }) : ask;
  };
}

/** Reads the ask of a decision, with its slices. */
export async function readAsk(
  what: string,
  { ask, parts }: DecisionWithTexts["row"],
  shared: DecisionWithTexts["texts"],
  packing: Packing,
): Promise<Result<string | null, StoreFailure>> {
  if (ask === null || typeof ask === "string") return ok(ask);
  // JSON never begins with these bytes, and an empty ask continues in slices
  const isPacked = ask.byteLength === 0 || (ask[0] === 0x1f && ask[1] === 0x8b);
  const stored = { encoding: isPacked ? "gzip" : "json", bytes: ask.byteLength, body: ask } as const;
  const whole = withSlices(what, stored, parts, shared, "ask");
  return whole.ok ? decodeBody(what, whole.value, packing) : whole;
}

/** Conditions that match fewer decisions than a kubelet version does are looked up in their own index, not in the version's. */
const isNarrow = ({ node, reason, pod, verdict }: DecisionFilter): boolean =>
  [node, reason, pod].some((one) => one !== undefined) ||
  (verdict !== undefined && rareVerdictCondition(verdict) !== null);

/** A filter without its times. `hasIndex`: each condition may use its index; otherwise `+` prevents SQLite from that. */
function namedBy(filter: DecisionFilter, hasIndex: boolean): SQL | undefined {
  const { node, kind, verdict, reason, kubelet, pod } = filter;
  const equal = (column: AnyColumn, value: string | undefined, has = true): SQL | undefined =>
    value === undefined ? undefined : has && hasIndex ? eq(column, value) : sql`+${column} = ${value}`;
  return and(
    equal(decisions.node, node),
    equal(decisions.kind, kind),
    equal(decisions.verdict, verdict),
    verdict === undefined || !hasIndex ? undefined : (rareVerdictCondition(verdict) ?? undefined),
    equal(decisions.reason, reason),
    equal(decisions.kubelet, kubelet, !isNarrow(filter)),
    pod === undefined ? undefined : ofPod(decisions, pod),
  );
}

/** Decisions that were repeated since then, of a node or of all: about one of each node and kind. */
const madeAgainSince = (sinceMs: number, node: string | undefined): SQL =>
  sql`${decisions.seq} IN (SELECT seq FROM series WHERE ${node === undefined ? sql`` : sql`node = ${node} AND`} last_at_ms >= ${sinceMs})`;

/**
 * Conditions for a filter, to be read one after the other for decisions from newest to oldest; undefined matches everything. The
 * second condition is for decisions that began before `sinceMs` and were repeated since.
 */
export function conditionsOf(filter: DecisionFilter): readonly (SQL | undefined)[] {
  const { sinceMs, untilMs, node } = filter;
  const until = (bound: number | undefined): SQL | undefined =>
    bound === undefined ? undefined : lt(decisions.decidedAtMs, bound);
  const since = sinceMs === undefined ? undefined : gte(decisions.decidedAtMs, sinceMs);
  const own = and(namedBy(filter, true), since, until(untilMs));
  if (sinceMs === undefined) return [own];
  const began = sql`+${decisions.decidedAtMs} < ${Math.min(sinceMs, untilMs ?? sinceMs)}`;
  return [own, and(madeAgainSince(sinceMs, node), namedBy(filter, false), began)];
}

/** Reads the conditions one after the other until there are `most` rows. */
export async function readInTurn<Row>(
  conditions: readonly (SQL | undefined)[],
  most: number,
  read: (condition: SQL | undefined, most: number) => Promise<readonly Row[]>,
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const condition of conditions) if (rows.length < most) rows.push(...(await read(condition, most - rows.length)));
  return rows;
}

const ORDER = { atMs: decisions.decidedAtMs, seq: decisions.seq };

/**
 * Candidates for the newest decision: the newest row, and the row that was repeated last, since the last time counts.
 */
const newestOf = (node: string | undefined): SQL =>
  node === undefined
    ? sql`SELECT id, coalesce(last_at_ms, decided_at_ms) AS "lastAtMs"
        FROM decisions LEFT JOIN series ON series.seq = decisions.seq WHERE decisions.seq IN
        ((SELECT seq FROM decisions ORDER BY decided_at_ms DESC, seq DESC LIMIT 1), (SELECT seq FROM series ORDER BY last_at_ms DESC LIMIT 1))`
    : sql`SELECT decision_id AS id, decided_at_ms AS "lastAtMs" FROM latest WHERE node = ${node}`;

const MAX_BEGINNING = 100;
type Read = Pick<Store, "getDecision" | "decisionsBeginning" | "listDecisions" | "newestDecision" | "findIdempotency">;

export function decisionsOf(driver: Driver): Read {
  const { db, packing, attempt } = driver;
  const decodeDecision = decisionReader(packing);
  const byId = prepared(driver, () =>
    db
      .select({ row: decisions, text: texts, series })
      .from(decisions)
      .leftJoin(series, ofDecision)
      .leftJoin(texts, driver.textsIn(texts.id, decisions.parts))
      .where(eq(decisions.id, sql.placeholder("id"))),
  );
  const byKey = prepared(driver, () =>
    db
      .select()
      .from(idempotency)
      .where(and(eq(idempotency.key, sql.placeholder("key")), eq(idempotency.scope, sql.placeholder("scope")))),
  );
  return {
    getDecision: (id) =>
      attempt(async () => {
        const [found] = grouped(await byId({ id }));
        return found === undefined ? ok(null) : decodeDecision(found);
      }),
    decisionsBeginning: (digits) =>
      attempt(async () =>
        ok(
          await db
            .select({ id: decisions.id, node: decisions.node })
            .from(decisions)
            // a range, so that the index of the ids is used; `g` comes after the last digit
            .where(and(gte(decisions.id, digits), lt(decisions.id, `${digits}g`)))
            .orderBy(decisions.id)
            .limit(MAX_BEGINNING),
        ),
      ),
    listDecisions: ({ limit, pageToken, ...filter }) =>
      attempt(() =>
        pageOf({ limit, pageToken }, ORDER, {
          read: (before, most) =>
            readInTurn(conditionsOf(filter), most, (condition, limit) =>
              db
                .select({ head: HEAD, series })
                .from(decisions)
                .leftJoin(series, ofDecision)
                .where(and(condition, before))
                .orderBy(...newestFirst(ORDER))
                .limit(limit),
            ),
          placeOf: ({ head: { decidedAtMs, seq } }) => ({ atMs: decidedAtMs, seq }),
          itemOf: ({ head, series: repeated }) => ok(headOf(head, repeated)),
        }),
      ),
    newestDecision: (node) =>
      attempt(async () => {
        const found = await driver.all<{ id: string; lastAtMs: number }>(newestOf(node));
        return ok(found.toSorted((a, b) => b.lastAtMs - a.lastAtMs)[0] ?? null);
      }),
    findIdempotency: (key, scope) =>
      attempt(async () => {
        const [row] = await byKey({ key, scope });
        if (row === undefined) return ok(null);
        return ok({ key, scope, requestHash: row.requestHash, decisionId: row.decisionId });
      }),
  };
}
