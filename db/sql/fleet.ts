import { and, asc, eq, getTableColumns, gte, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { HOUR_MS } from "../../api/base/duration.ts";
import { byText } from "../../api/base/order.ts";
import { ok } from "../../api/base/result.ts";
import { isKind, type Kind } from "../../api/model/decision.ts";
import { OUTCOME_KINDS, OUTCOME_TRAITS, type OutcomeKind } from "../../api/model/outcome.ts";
import type { Counted, FleetRow, KubeletCounts, LatestRow, NodeRow, RefusalCount, Tally } from "../rows.ts";
import type { Store } from "../store.ts";
import type { Driver } from "./driver.ts";
import { hours, latest, nodes, results } from "./schema.ts";

export const hourOf = (ms: number): number => Math.floor(ms / HOUR_MS) * HOUR_MS;

const total = (column: (typeof hours)[keyof Tally]) => sql<number>`sum(${column})`;
// over 500 nodes and a week each sum more is 10 ms
const COUNTED = { decisions: total(hours.decisions), refused: total(hours.refused), evicted: total(hours.evicted) };
const TALLY = { ...COUNTED, pressured: total(hours.pressured), removed: total(hours.removed) };
const NOTHING: Counted = { decisions: 0, refused: 0, evicted: 0 };
const NOTHING_DONE: KubeletCounts = {
  ...{ kubeletReported: false, kubeletRefused: 0, kubeletRefusals: [], kubeletEvicted: 0 },
};
const NONE: Tally = { ...NOTHING, pressured: 0, removed: 0 };

const only = (node: string | undefined): SQL => (node === undefined ? sql`` : sql`AND node = ${node}`);

async function refusalsByNode(
  { all }: Driver,
  sinceMs: number,
  node: string | undefined,
): Promise<Map<string, RefusalCount[]>> {
  const rows = await all<RefusalCount & { readonly node: string }>(sql`SELECT node, reason, sum(count) AS count
    FROM refusals WHERE hour_ms >= ${hourOf(sinceMs)} ${only(node)} GROUP BY node, reason`);
  const byNode = new Map<string, RefusalCount[]>();
  for (const { node: name, ...one } of rows) byNode.set(name, [...(byNode.get(name) ?? []), one]);
  for (const counts of byNode.values()) counts.sort((a, b) => b.count - a.count || byText(a.reason, b.reason));
  return byNode;
}

const COUNTED_OUTCOMES = sql.raw(
  `(${OUTCOME_KINDS.filter((kind) => OUTCOME_TRAITS[kind].countedAs !== null)
    .map((kind) => `'${kind}'`)
    .join(", ")})`,
);

/** The kubelets' outcomes that the fleet shows. */
async function ofKubelets(
  { all }: Driver,
  sinceMs: number,
  node: string | undefined,
): Promise<Map<string, KubeletCounts>> {
  const rows = await all<RefusalCount & { readonly node: string; readonly kind: OutcomeKind }>(sql`SELECT node, kind,
    reason, sum(count) AS count FROM outcome_hours WHERE hour_ms >= ${hourOf(sinceMs)} ${only(node)}
    AND kind IN ${COUNTED_OUTCOMES} GROUP BY node, kind, reason ORDER BY count DESC, reason`);
  const reporting = await all<{ readonly node: string }>(
    sql`SELECT node FROM row_counts WHERE kind = 'outcomes' AND rows > 0 ${only(node)}`,
  );
  const byNode = new Map(
    reporting.map((one): [string, KubeletCounts] => [one.node, { ...NOTHING_DONE, kubeletReported: true }]),
  );
  for (const { node: name, kind, reason, count } of rows) {
    const known = byNode.get(name) ?? NOTHING_DONE;
    const { kubeletRefused, kubeletRefusals, kubeletEvicted } = known;
    const refusals = [...kubeletRefusals, { reason, count }];
    const more =
      OUTCOME_TRAITS[kind].countedAs === "evicted"
        ? { kubeletEvicted: kubeletEvicted + count }
        : { kubeletRefused: kubeletRefused + count, kubeletRefusals: refusals };
    byNode.set(name, { ...known, ...more });
  }
  return byNode;
}

/** Columns or sums under the names of their fields, for raw rows. */
const named = (fields: Readonly<Record<string, SQLWrapper>>): SQL =>
  sql.join(
    Object.entries(fields).map(([field, of]) => sql`${of} AS ${sql.identifier(field)}`),
    sql`, `,
  );

/**
 * Walks over small tables, none over decisions: rows are joined here, by the node's name. What has rows of every node is read as raw
 * rows, which take half the time.
 */
export function fleetOf(driver: Driver): Pick<Store, "listFleet" | "listHours" | "tallyOf"> {
  const { db, attempt } = driver;
  const counted = (sinceMs: number, node: string | undefined) =>
    and(gte(hours.hourMs, hourOf(sinceMs)), node === undefined ? undefined : eq(hours.node, node));
  const newest = (node: string | undefined) =>
    driver.all<LatestRow & { readonly node: string; readonly kind: string }>(
      sql`SELECT ${named(getTableColumns(latest))} FROM ${latest} WHERE true ${only(node)}`,
    );
  const reports = (node: string | undefined) =>
    db
      .select({ node: latest.node, okCount: results.okCount, failedCount: results.failedCount, atMs: results.atMs })
      .from(latest)
      .innerJoin(results, eq(results.decisionId, latest.decisionId))
      .where(and(eq(latest.kind, "cgroups"), node === undefined ? undefined : eq(latest.node, node)))
      .orderBy(asc(results.seq));

  const fleet = async (sinceMs: number, node: string | undefined): Promise<readonly FleetRow[]> => {
    const rows = await driver.all<NodeRow>(
      sql`SELECT ${named(getTableColumns(nodes))} FROM ${nodes}
        WHERE ${node === undefined ? sql`true` : eq(nodes.name, node)} ORDER BY ${nodes.name}`,
    );
    const tallies = await driver.all<Counted & { readonly node: string }>(
      sql`SELECT ${named({ node: hours.node, ...COUNTED })} FROM ${hours} WHERE ${counted(sinceMs, node)} GROUP BY ${hours.node}`,
    );
    const countedOf = new Map(tallies.map((tally) => [tally.node, tally]));
    const latestOf = new Map<string, Partial<Record<Kind, LatestRow>>>();
    for (const row of await newest(node)) {
      // another version may have more kinds
      if (!isKind(row.kind)) continue;
      const { decisionId, verdict, decidedAtMs, policyVersion, reason, summary } = row;
      const known = latestOf.get(row.node) ?? {};
      known[row.kind] = { decisionId, verdict, decidedAtMs, policyVersion, reason, summary };
      latestOf.set(row.node, known);
    }
    const refusalsOf = await refusalsByNode(driver, sinceMs, node);
    const doneBy = await ofKubelets(driver, sinceMs, node);
    const reportOf = new Map((await reports(node)).map(({ node: name, ...report }) => [name, report]));
    return rows.map((row) => {
      const { decisions, refused, evicted } = countedOf.get(row.name) ?? NOTHING;
      const { kubeletReported, kubeletRefused, kubeletRefusals, kubeletEvicted } = doneBy.get(row.name) ?? NOTHING_DONE;
      // members one by one: of ten thousand nodes, copies of whole objects would be most of the time
      return {
        ...row,
        decisions,
        refused,
        evicted,
        latest: latestOf.get(row.name) ?? {},
        refusals: refusalsOf.get(row.name) ?? [],
        kubeletReported,
        kubeletRefused,
        kubeletRefusals,
        kubeletEvicted,
        report: reportOf.get(row.name) ?? null,
      };
    });
  };

  return {
    listFleet: (sinceMs, node) => attempt(async () => ok(await fleet(sinceMs, node))),
    listHours: (sinceMs, node) =>
      attempt(async () =>
        ok(
          await db
            .select({ hourMs: hours.hourMs, ...COUNTED })
            .from(hours)
            .where(counted(sinceMs, node))
            .groupBy(hours.hourMs)
            .orderBy(asc(hours.hourMs)),
        ),
      ),
    tallyOf: (node, sinceMs) =>
      attempt(async () => {
        const [row] = await db.select(TALLY).from(hours).where(counted(sinceMs, node)).groupBy(hours.node);
        return ok(row ?? NONE);
      }),
  };
}
