import { and, asc, eq, gte, sql } from "drizzle-orm";
import { isKind, type Kind } from "../api/model/decision.ts";
import { ok } from "../api/model/result.ts";
import type { Driver } from "./driver.ts";
import { attempt } from "./failure.ts";
import type { Counted, FleetRow, LatestRow, Tally } from "./fleet-row.ts";
import { hours, latest, nodes, results } from "./schema.ts";
import type { Store } from "./store.ts";

const HOUR_MS = 3_600_000;
const hourOf = (ms: number): number => Math.floor(ms / HOUR_MS) * HOUR_MS;

const total = (column: (typeof hours)[keyof Tally]) => sql<number>`sum(${column})`;
// over 500 nodes and a week each sum more is 10 ms
const COUNTED = { decisions: total(hours.decisions), refused: total(hours.refused), evicted: total(hours.evicted) };
const TALLY = { ...COUNTED, pressured: total(hours.pressured), removed: total(hours.removed) };
const NOTHING: Counted = { decisions: 0, refused: 0, evicted: 0 };
const NONE: Tally = { ...NOTHING, pressured: 0, removed: 0 };

/** Three walks over small tables, none over decisions: rows are joined here, by the node's name. */
export function fleetOf({ db }: Driver): Pick<Store, "listFleet" | "listHours" | "tallyOf"> {
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
      .select({ node: hours.node, ...COUNTED })
      .from(hours)
      .where(counted(sinceMs, node))
      .groupBy(hours.node);
    const countedOf = new Map(tallies.map(({ node: name, ...tally }) => [name, tally]));
    const latestOf = new Map<string, Partial<Record<Kind, LatestRow>>>();
    for (const { node: name, kind, ...row } of await newest(node)) {
      // another version may know more of them
      if (!isKind(kind)) continue;
      const known = latestOf.get(name) ?? {};
      known[kind] = row;
      latestOf.set(name, known);
    }
    const reportOf = new Map((await reports(node)).map(({ node: name, ...report }) => [name, report]));
    return rows.map((row) => ({
      ...row,
      ...(countedOf.get(row.name) ?? NOTHING),
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
