import type { Pool, PoolClient, QueryResult } from "pg";
import type { Classify } from "../failure.ts";
import type { Driver, ExclusiveNames, Outcome, Statement, Value } from "../sql/driver.ts";
import { NAME, WRITING } from "./locks.ts";
import { inPostgres } from "./translate.ts";

/** The maximum number of writers whose statements share one transaction. */
const MAX_JOBS = 64;
/** Concurrent transactions. Writes of one node go through the same lane, one after the other. */
const LANES = 4;
/** Two transactions may deadlock on a text that both use. */
const ATTEMPTS = 4;

interface Job {
  readonly statements: readonly Statement[];
  readonly exclusive: ExclusiveNames;
  readonly resolve: (outcomes: readonly Outcome[]) => void;
  readonly reject: (error: unknown) => void;
}

const SHARE = { name: "share", text: `SELECT pg_advisory_xact_lock_shared(${WRITING})` };
const EXCLUDE = { name: "exclude", text: `SELECT pg_advisory_xact_lock(${WRITING})` };
/** Locks names in the order of their hashes, so that two transactions with the same names cannot deadlock. */
const LOCK_NAMES = `SELECT pg_advisory_xact_lock(${NAME}, one.hash) FROM
  (SELECT DISTINCT hashtext(name) AS hash FROM unnest(CAST($1 AS text[])) AS name ORDER BY hash) AS one`;

/** Postgres cannot store a NUL character in a text. */
const storable = (value: Value): Value =>
  typeof value === "string" && value.includes("\0") ? value.replaceAll("\0", "\uFFFD") : value;

/** Names of prepared statements; each is prepared once per connection. */
const names = new Map<string, string>();
export function named(text: string): { readonly name: string; readonly text: string } {
  let name = names.get(text);
  if (name === undefined) {
    name = `s${names.size}`;
    names.set(text, name);
  }
  return { name, text };
}

const outcomeOf = ({ rowCount, rows }: QueryResult): Outcome => ({ changes: rowCount ?? 0, rows });
const stateOf = (error: unknown): string => String((error as { code?: unknown } | null)?.code ?? "");
/** The error of all statements after a failed one in the same transaction. */
const IN_FAILED_TRANSACTION = "25P02";
/** The server has become a standby: a new connection may reach the primary. */
export const READ_ONLY = "25006";
const isConflict = (error: unknown): boolean => ["40001", "40P01"].includes(stateOf(error));

/**
 * Runs jobs as one transaction. All statements are sent at once: the server runs them in order, and after a failed one the
 * rest have no effect.
 */
async function transact(client: PoolClient, jobs: readonly Job[]): Promise<readonly (readonly Outcome[])[]> {
  const exclusive = jobs.map((job) => job.exclusive);
  const locked = exclusive.flatMap((one) => (one === "everything" ? [] : one));
  const sent: Promise<QueryResult>[] = [
    client.query("BEGIN"),
    client.query(exclusive.includes("everything") ? EXCLUDE : SHARE),
    ...(locked.length === 0 ? [] : [client.query({ ...named(LOCK_NAMES), values: [locked] })]),
  ];
  const begun = sent.length;
  for (const { statements } of jobs)
    for (const { sql, params, ofMany } of statements) {
      const text = inPostgres(sql);
      sent.push(client.query({ ...(ofMany === true ? { text } : named(text)), values: params.map(storable) }));
    }
  sent.push(client.query("COMMIT"));
  const settled = await Promise.allSettled(sent);
  const failed = settled.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
  if (failed.length > 0) throw failed.find((error) => stateOf(error) !== IN_FAILED_TRANSACTION) ?? failed[0];
  const results = settled.map((one) => outcomeOf((one as PromiseFulfilledResult<QueryResult>).value));
  let end = begun;
  return jobs.map(({ statements }) => {
    end += statements.length;
    return results.slice(end - statements.length, end);
  });
}

/**
 * Writes that wait share a transaction, and so one wait for the disk; a promise resolves after the commit. INVARIANT: writes of one
 * `atomic` are all there or none, and one that fails by itself does not make others fail.
 */
export function groupedWrites(
  pool: Pool,
  failureOf: Classify,
): Pick<Driver, "atomic"> & { readonly drained: () => Promise<void> } {
  const lanes = Array.from({ length: LANES }, () => ({ waiting: [] as Job[], isBusy: false }));
  type WriteQueue = (typeof lanes)[number];
  const underWay = new Set<Promise<void>>();

  const attempt = async (jobs: readonly Job[]): Promise<readonly (readonly Outcome[])[]> => {
    for (let again = 1; ; again++) {
      const client = await pool.connect();
      let fault: unknown;
      try {
        return await transact(client, jobs);
      } catch (error) {
        fault = error;
        if (!isConflict(error) || again === ATTEMPTS) throw error;
      } finally {
        // a transaction that failed has ended by its COMMIT; a connection that failed is of no use
        const isUseless = fault !== undefined && (!("severity" in (fault as object)) || stateOf(fault) === READ_ONLY);
        client.release(isUseless);
      }
    }
  };
  const settle = async (jobs: readonly Job[]): Promise<void> => {
    try {
      const outcomes = await attempt(jobs);
      jobs.forEach((job, i) => {
        job.resolve(outcomes[i] ?? []);
      });
    } catch (error) {
      if (jobs.length > 1 && failureOf(error)?.code !== "unavailable") {
        for (const job of jobs) await settle([job]);
        return;
      }
      for (const job of jobs) job.reject(error);
    }
  };
  /** The first jobs that may share a transaction. */
  const take = ({ waiting }: WriteQueue): readonly Job[] => {
    const end = waiting.findIndex(({ exclusive }) => exclusive === "everything");
    return waiting.splice(0, Math.min(MAX_JOBS, end === -1 ? waiting.length : Math.max(end, 1)));
  };
  const work = async (lane: WriteQueue): Promise<void> => {
    lane.isBusy = true;
    // also takes the other writes of this turn of the event loop
    await new Promise((resolve) => setImmediate(resolve));
    while (lane.waiting.length > 0) await settle(take(lane));
    lane.isBusy = false;
  };
  const laneOf = (exclusive: ExclusiveNames): WriteQueue => {
    const name = exclusive === "everything" ? "" : (exclusive[0] ?? "");
    let hash = 0;
    for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) >>> 0;
    return lanes[hash % LANES] as WriteQueue;
  };
  return {
    atomic: (statements, exclusive) =>
      new Promise((resolve, reject) => {
        if (statements.length === 0) return resolve([]);
        const lane = laneOf(exclusive);
        lane.waiting.push({ statements, exclusive, resolve, reject });
        if (lane.isBusy) return;
        const done = work(lane).finally(() => underWay.delete(done));
        underWay.add(done);
      }),
    drained: async () => {
      // waits one turn for writes whose rows are still being prepared
      await new Promise((resolve) => setImmediate(resolve));
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
}
