import { and, eq, gte, lt, type SQL, sql } from "drizzle-orm";
import { ok, type Result } from "../../api/model/result.ts";
import { failure, type StoreFailure } from "../failure.ts";
import type { RemovalFilter, RemovalRow } from "../rows.ts";
import type { Store } from "../store.ts";
import type { Driver } from "./driver.ts";
import { attempt } from "./failure.ts";
import { newestFirst, pageOf } from "./page.ts";
import { removals } from "./schema.ts";

/** JSON of an image's names. `corrupt`: it is none. */
export function namesOf(id: string, text: string): Result<readonly string[], StoreFailure> {
  try {
    return ok(JSON.parse(text));
  } catch {
    return failure("corrupt", `removal of \`${id}\`: its names are not JSON; restore the database from a backup`);
  }
}

function decode(row: typeof removals.$inferSelect): Result<RemovalRow, StoreFailure> {
  const { seq: _, node: _node, objectId: id, podNamespace, podName, podUid, containerName, ...rest } = row;
  const names = namesOf(id, rest.names);
  if (!names.ok) return names;
  const pod = podName === null ? null : { namespace: podNamespace ?? "", name: podName, uid: podUid ?? "" };
  return ok({ ...rest, id, names: names.value, pod, container: containerName });
}

/** Not LIKE, whose pattern D1 keeps shorter than a digest. */
const contains = (text: SQL, part: string): SQL => sql`instr(lower(${text}), lower(${part})) > 0`;
const naming = (part: string): SQL => sql`(${contains(sql`${removals.objectId}`, part)}
  OR EXISTS (SELECT 1 FROM json_each(${removals.names}) WHERE ${contains(sql`value`, part)})
  OR ${contains(sql`${removals.podNamespace} || '/' || ${removals.podName}`, part)}
  OR ${contains(sql`${removals.containerName}`, part)})`;

const conditionOf = ({ node, kind, target, end, search, sinceMs, untilMs }: RemovalFilter): SQL | undefined =>
  and(
    eq(removals.node, node),
    kind === undefined ? undefined : eq(removals.kind, kind),
    target === undefined ? undefined : eq(removals.target, target),
    end === undefined ? undefined : eq(removals.end, end),
    sinceMs === undefined ? undefined : gte(removals.atMs, sinceMs),
    untilMs === undefined ? undefined : lt(removals.atMs, untilMs),
    search === undefined ? undefined : naming(search),
  );

export function removalsOf({ db }: Driver): Pick<Store, "listRemovals"> {
  return {
    listRemovals: ({ limit, pageToken, ...filter }) =>
      attempt(() =>
        pageOf({ limit, pageToken }, removals, {
          read: (before, most) =>
            db
              .select()
              .from(removals)
              .where(and(conditionOf(filter), before))
              .orderBy(...newestFirst(removals))
              .limit(most),
          placeOf: (row) => row,
          itemOf: decode,
        }),
      ),
  };
}
