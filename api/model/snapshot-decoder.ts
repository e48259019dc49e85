import { decodeSnapshot } from "./decode.ts";
import type { InputIssue } from "./input-issue.ts";
import { ok, type Result } from "./result.ts";
import { type Snapshot, snapshot as snapshotSchema } from "./snapshot.ts";

type Members = Readonly<Record<string, unknown>>;
const NAMES = Object.keys(snapshotSchema.shape) as readonly (keyof Snapshot)[];

/**
 * `decodeSnapshot` for one snapshot after the other: a member that is the very object it was in an earlier one is not
 * checked again. INVARIANT: each member is checked by itself, so that all are right when each is.
 */
export function snapshotDecoder(): typeof decodeSnapshot {
  const known = new WeakMap<object, { readonly name: string; readonly decoded: unknown }>();
  return (input, at): Result<Snapshot, readonly InputIssue[]> => {
    if (!isObject(input) || Array.isArray(input)) return decodeSnapshot(input, at);
    const posted = input as Members;
    const anew: Record<string, unknown> = {};
    const snapshot: Record<string, unknown> = {};
    for (const name of NAMES) {
      if (!Object.hasOwn(posted, name)) continue;
      const member = posted[name];
      const found = isObject(member) ? known.get(member) : undefined;
      if (found?.name !== name) anew[name] = member;
      // its place in the order is the same in any case
      snapshot[name] = found?.decoded;
    }
    const decoded = decodeSnapshot(anew, at);
    // its issues are told as those of the whole are
    if (!decoded.ok) return decodeSnapshot(input, at);
    for (const name in anew) {
      const member = posted[name];
      const value = decoded.value[name as keyof Snapshot];
      snapshot[name] = value;
      if (value === undefined) delete snapshot[name];
      else if (isObject(member)) known.set(member, { name, decoded: value });
    }
    return ok(snapshot);
  };
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;
