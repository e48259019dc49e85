import type Sqlite from "better-sqlite3";
import type { Driver, Outcome, Statement } from "./driver.ts";
import { failureOf } from "./failure.ts";

/** One transaction takes at most this many writers, so that it does not hold the event loop for long. */
const MAX_JOBS = 512;

interface Job {
  readonly statements: readonly Statement[];
  readonly resolve: (outcomes: readonly Outcome[]) => void;
  readonly reject: (error: unknown) => void;
}

function runner(client: Sqlite.Database): (statement: Statement) => Outcome {
  const prepared = new Map<string, Sqlite.Statement<unknown[], Record<string, unknown>>>();
  return ({ sql, params }) => {
    let statement = prepared.get(sql);
    if (statement === undefined) {
      statement = client.prepare(sql);
      prepared.set(sql, statement);
    }
    if (!statement.reader) return { changes: statement.run(...params).changes, rows: [] };
    const rows = statement.all(...params);
    return { changes: rows.length, rows };
  };
}

/**
 * All writes that arrive in one turn of the event loop share a transaction, and so one fsync; a promise resolves after the commit.
 * INVARIANT: writes of one `atomic` are all there or none, and one that fails by itself does not take its neighbours with it.
 */
export function groupCommit(client: Sqlite.Database): Pick<Driver, "atomic" | "close"> {
  const run = runner(client);
  const commit = client.transaction((jobs: readonly Job[]) => jobs.map((job) => job.statements.map(run))).immediate;
  let waiting: Job[] = [];

  const settle = (jobs: readonly Job[]): void => {
    let outcomes: Outcome[][];
    try {
      outcomes = commit(jobs);
    } catch (error) {
      if (jobs.length > 1 && failureOf(error)?.code !== "unavailable") {
        for (const job of jobs) settle([job]);
        return;
      }
      for (const job of jobs) job.reject(error);
      return;
    }
    jobs.forEach((job, i) => {
      job.resolve(outcomes[i] ?? []);
    });
  };
  const flush = (): void => {
    const jobs = waiting.slice(0, MAX_JOBS);
    if (jobs.length === 0) return;
    waiting = waiting.slice(MAX_JOBS);
    if (waiting.length > 0) setImmediate(flush);
    settle(jobs);
  };

  return {
    atomic: (statements) =>
      new Promise((resolve, reject) => {
        waiting.push({ statements, resolve, reject });
        if (waiting.length === 1) setImmediate(flush);
      }),
    close: async () => {
      // One turn for the writes whose rows are still being put together.
      await new Promise((resolve) => setImmediate(resolve));
      while (waiting.length > 0) flush();
      client.close();
    },
  };
}
