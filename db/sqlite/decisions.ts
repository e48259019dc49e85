import { and, eq, gte, lt, type SQL, sql } from "drizzle-orm";
import { ok, type Result } from "../../api/model/result.ts";
import { decodeBody, type Packing } from "../body.ts";
import type { StoreFailure } from "../failure.ts";
import type { DecisionHead, DecisionRow } from "../rows.ts";
import type { DecisionFilter, Store } from "../store.ts";
import { type Driver, once } from "./driver.ts";
import { attempt } from "./failure.ts";
import { newestFirst, ofPod, pageOf } from "./page.ts";
import { bodyReader, grouped, textsIn, withSlices } from "./parts.ts";
import { decisions, idempotency, texts, unusual } from "./schema.ts";

/** Everything but the ask and the body, which may be long. */
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

export function headOf(row: HeadColumns): DecisionHead {
  const { podNamespace, podName, podUid, id, kind, node, snapshotId, policyVersion } = row;
  const { verdict, reason, explain, decidedAtMs } = row;
  const pod =
    podUid === null || podName === null ? null : { namespace: podNamespace ?? "", name: podName, uid: podUid };
  return { id, kind, node, snapshotId, policyVersion, verdict, reason, explain, decidedAtMs, pod };
}

type Found = ReturnType<typeof grouped<typeof decisions.$inferSelect>>[number];

/** Row and its texts -> decision, its body readable again. */
export function decisionReader(packing: Packing): (found: Found) => Promise<Result<DecisionRow, StoreFailure>> {
  const wholeBody = bodyReader(packing);
  return async ({ row, texts: shared }) => {
    const what = `decision \`${row.id}\``;
    const body = await wholeBody(what, row, shared);
    if (!body.ok) return body;
    const ask = await readAsk(`ask of ${what}`, row, shared, packing);
    return ask.ok ? ok({ ...headOf(row), ask: ask.value, body: body.value }) : ask;
  };
}

async function readAsk(
  what: string,
  { ask, parts }: Found["row"],
  shared: Found["texts"],
  packing: Packing,
): Promise<Result<string | null, StoreFailure>> {
  if (ask === null || typeof ask === "string") return ok(ask);
  const stored = { encoding: "gzip", bytes: ask.byteLength, body: ask } as const;
  const whole = withSlices(what, stored, parts, shared, "ask");
  return whole.ok ? decodeBody(what, whole.value, packing) : whole;
}

/** Whatever names fewer decisions than a version does is looked up in its own index, not in the version's: `+` keeps SQLite off that. */
function ofKubelet(version: string, { node, reason, pod, verdict }: DecisionFilter): SQL {
  const isNarrow = [node, reason, pod].some((one) => one !== undefined) || (verdict && unusual(verdict));
  return isNarrow ? sql`+${decisions.kubelet} = ${version}` : eq(decisions.kubelet, version);
}

/** A filter as one condition; undefined when it lets everything through. */
export function conditionOf(filter: DecisionFilter): SQL | undefined {
  return and(
    filter.node === undefined ? undefined : eq(decisions.node, filter.node),
    filter.kind === undefined ? undefined : eq(decisions.kind, filter.kind),
    filter.verdict === undefined
      ? undefined
      : and(eq(decisions.verdict, filter.verdict), unusual(filter.verdict) ?? undefined),
    filter.reason === undefined ? undefined : eq(decisions.reason, filter.reason),
    filter.kubelet === undefined ? undefined : ofKubelet(filter.kubelet, filter),
    filter.sinceMs === undefined ? undefined : gte(decisions.decidedAtMs, filter.sinceMs),
    filter.untilMs === undefined ? undefined : lt(decisions.decidedAtMs, filter.untilMs),
    filter.pod === undefined ? undefined : ofPod(decisions, filter.pod),
  );
}

const ORDER = { atMs: decisions.decidedAtMs, seq: decisions.seq };

export function decisionsOf({ db, packing }: Driver): Pick<Store, "getDecision" | "listDecisions" | "findIdempotency"> {
  const decodeDecision = decisionReader(packing);
  const byId = once(() =>
    db
      .select({ row: decisions, text: texts })
      .from(decisions)
      .leftJoin(texts, textsIn(decisions.parts))
      .where(eq(decisions.id, sql.placeholder("id")))
      .prepare(),
  );
  const byKey = once(() =>
    db
      .select()
      .from(idempotency)
      .where(and(eq(idempotency.key, sql.placeholder("key")), eq(idempotency.scope, sql.placeholder("scope"))))
      .prepare(),
  );
  return {
    getDecision: (id) =>
      attempt(async () => {
        const [found] = grouped(await byId().all({ id }));
        return found === undefined ? ok(null) : decodeDecision(found);
      }),
    listDecisions: ({ limit, pageToken, ...filter }) =>
      attempt(() =>
        pageOf({ limit, pageToken }, ORDER, {
          read: (before, most) =>
            db
              .select(HEAD)
              .from(decisions)
              .where(and(conditionOf(filter), before))
              .orderBy(...newestFirst(ORDER))
              .limit(most),
          placeOf: ({ decidedAtMs, seq }) => ({ atMs: decidedAtMs, seq }),
          itemOf: (row) => ok(headOf(row)),
        }),
      ),
    findIdempotency: (key, scope) =>
      attempt(async () => {
        const [row] = await byKey().all({ key, scope });
        if (row === undefined) return ok(null);
        return ok({ key, scope, requestHash: row.requestHash, decisionId: row.decisionId });
      }),
  };
}
