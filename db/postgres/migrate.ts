import type { Client } from "pg";
import { ok, type Result } from "../../api/base/result.ts";
import { failure, type StoreFailure } from "../failure.ts";
import type { Migration } from "../migrations.ts";
import { MIGRATING } from "./locks.ts";

/** The schema of the database that is ours alone. */
export const SCHEMA = "nodewise";
const OLDEST = 14;

interface DatabaseState {
  readonly version: number;
  /** The schema has a history in it: its tables are made together. */
  readonly isOurs: boolean;
  readonly hasSchema: boolean;
  /** Objects of other programs: `inside` the schema, or tables and views `beside` it. */
  readonly inside: string | null;
  readonly beside: string | null;
}
const STATE_QUERY = `SELECT current_setting('server_version_num')::int AS version,
  (SELECT count(*) = 2 FROM pg_attribute WHERE attrelid = to_regclass('${SCHEMA}.migrations') AND attname = 'applied_at'
    OR attrelid = to_regclass('${SCHEMA}.decisions') AND attname = 'policy_version') AS "isOurs",
  to_regnamespace('${SCHEMA}') IS NOT NULL AS "hasSchema",
  min(nspname || '.' || name) FILTER (WHERE nspname = '${SCHEMA}') AS inside,
  min(nspname || '.' || name) FILTER (WHERE nspname <> '${SCHEMA}' AND kind IN ('r', 'p', 'v', 'm', 'f')) AS beside
FROM (SELECT relname AS name, relnamespace AS namespace, relkind AS kind FROM pg_class WHERE relkind NOT IN ('i', 'I') UNION ALL
  SELECT proname, pronamespace, NULL FROM pg_proc UNION ALL SELECT typname, typnamespace, NULL FROM pg_type WHERE typrelid = 0 AND typelem = 0) AS one
JOIN pg_namespace ON pg_namespace.oid = namespace WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'`;

/**
 * Checks that the database may hold the history, before anything is written. Errors: the server is too old, or it
 * belongs to another program.
 */
function fits(
  { version, isOurs, hasSchema, inside, beside }: DatabaseState,
  label: string,
): Result<null, StoreFailure> {
  if (version < OLDEST * 10_000)
    return failure(
      "unavailable",
      `${label} is served by PostgreSQL ${Math.floor(version / 10_000)}: nodewise needs ${OLDEST} or newer`,
    );
  const others = isOurs ? null : (inside ?? (hasSchema ? null : beside));
  if (others === null) return ok(null);
  const way = inside === null ? `, or an empty schema: \`CREATE SCHEMA ${SCHEMA}\`` : "";
  return failure(
    "unavailable",
    `${label} is the database of another program, which has \`${others}\`: make one for nodewise (\`createdb nodewise\`)${way}`,
  );
}

/**
 * Creates what is missing, completely or not at all. Safe beside another process that does the same. `create` false: a database
 * without a history stays as it is, which is an error. `not_migrated`: the database is of a newer version.
 */
export async function migrate(
  client: Client,
  {
    label,
    migrations,
    create,
  }: { readonly label: string; readonly migrations: readonly Migration[]; readonly create: boolean },
): Promise<Result<null, StoreFailure>> {
  const [found] = (await client.query<DatabaseState>(STATE_QUERY)).rows as [DatabaseState];
  const fit = fits(found, label);
  if (!fit.ok) return fit;
  if (!found.isOurs && !create)
    return failure("unavailable", `there is no history in ${label}: start \`nodewise api\` with it, which makes one`);
  await client.query("BEGIN");
  try {
    await client.query("SELECT pg_advisory_xact_lock($1)", [MIGRATING]);
    if (!found.hasSchema) await client.query(`CREATE SCHEMA IF NOT EXISTS ${SCHEMA}`);
    await client.query(
      "CREATE TABLE IF NOT EXISTS migrations (name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())",
    );
    const { rows } = await client.query<{ name: string }>("SELECT name FROM migrations ORDER BY name");
    const applied = new Set(rows.map(({ name }) => name));
    const newer = [...applied].find((name) => !migrations.some((own) => own.name === name));
    if (newer !== undefined) {
      await client.query("ROLLBACK");
      return failure(
        "not_migrated",
        `${label} is of a newer version: it has migration \`${newer}\`, this one ends at \`${migrations.at(-1)?.name}\`; upgrade nodewise, or use another database`,
      );
    }
    for (const { name, sql } of migrations.filter((one) => !applied.has(one.name))) {
      await client.query(sql);
      await client.query("INSERT INTO migrations (name) VALUES ($1)", [name]);
    }
    await client.query("COMMIT");
    return ok(null);
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  }
}
