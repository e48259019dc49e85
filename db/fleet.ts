import { and, asc, eq, gte, sql } from "drizzle-orm";
import type { Kind } from "../api/model/decision.ts";
import { ok } from "../api/model/result.ts";
import type { Driver } from "./driver.ts";
import { attempt } from "./failure.ts";
import type { FleetRow, LatestRow, Tally } from "./fleet-row.ts";
import { hours, latest, nodes, results } from "./schema.ts";
import type { Store } from "./store.ts";

const HOUR_MS = 3_600_000;
const hourOf = (ms: number): number => Math.floor(ms / HOUR_MS) * HOUR_MS;

const total = (column: (typeof hours)[keyof Tally]) => sql<number>`sum(${column})`;
const TOTALS = {
  decisions: total(hours.decisions),
  refused: total(hours.refused),
  pressured: total(hours.pressured),
  evicted: total(hours.evicted),
  removed: total(hours.removed),
};
const NONE: Tally = { decisions: 0, refused: 0, pressured: 0, evicted: 0, removed: 0 };

/** Three walks over small tables, none over decisions: rows are joined here, by the node's name. */
export function fleetOf({ db }: Driver): Pick<Store, "listFleet" | "listHours"> {
  const counted = (sinceMs: number, node: string | undefined) =>
    and(gte(hours.hourMs, hourOf(sinceMs)), node === undefined ? undefined : eq(hours.node, node));
  const newest = (node: string | undefined) =>
    db
      .select()
      .from(latest)
      .where(node === undefined ? undefined : eq(latest.node, node));
  const reports = (node: string | undefined) =>
    db
      .select({ node: latest.node, okCount: results.okCount, failedCount: results.failedCount, atMs: results.atMs })
      .from(latest)
      .innerJoin(results, eq(results.decisionId, latest.decisionId))
      .where(and(eq(latest.kind, "cgroups"), node === undefined ? undefined : eq(latest.node, node)))
      .orderBy(asc(results.seq));

  const fleet = async (sinceMs: number, node: string | undefined): Promise<readonly FleetRow[]> => {
    const rows = await db
      .select()
      .from(nodes)
      .where(node === undefined ? undefined : eq(nodes.name, node))
      .orderBy(asc(nodes.name));
    const tallies = await db
      .select({ node: hours.node, ...TOTALS })
      .from(hours)
      .where(counted(sinceMs, node))
      .groupBy(hours.node);
    const tallyOf = new Map(tallies.map(({ node: name, ...tally }) => [name, tally]));
    const latestOf = new Map<string, Partial<Record<Kind, LatestRow>>>();
    for (const { node: name, kind, ...row } of await newest(node)) {
      const known = latestOf.get(name) ?? {};
      known[kind] = row;
      latestOf.set(name, known);
    }
    const reportOf = new Map((await reports(node)).map(({ node: name, ...report }) => [name, report]));
    return rows.map((row) => ({
      ...row,
      ...(tallyOf.get(row.name) ?? NONE),
      latest: latestOf.get(row.name) ?? {},
      report: reportOf.get(row.name) ?? null,
    }));
  };

  return {
    listFleet: (sinceMs, node) => attempt(async () => ok(await fleet(sinceMs, node))),
    listHours: (sinceMs, node) =>
      attempt(async () =>
        ok(
          await db
            .select({ hourMs: hours.hourMs, ...TOTALS })
            .from(hours)
            .where(counted(sinceMs, node))
            .groupBy(hours.hourMs)
            .orderBy(asc(hours.hourMs)),
        ),
      ),
  };
}
