import type { SnapshotRow } from "../../../db/rows.ts";
import { decideKind } from "../../decide/kinds/index.ts";
import { decodeAsk, decodeFacts } from "../../model/asks.ts";
import { Lru, perObject } from "../../model/cache.ts";
import type { Decided, DecisionOf, Explain, Kind, Refusal } from "../../model/decision.ts";
import { decodeStored } from "../../model/decode.ts";
import type { InputIssue } from "../../model/input-issue.ts";
import type { Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { effectiveSnapshot } from "../../profiles/effective.ts";

type Answer<K extends Kind> = Result<Decided<DecisionOf[K]>, Refusal>;

/** Kinds of the page whose answer depends on the snapshot alone. */
const FROM_SNAPSHOT = ["allocatable", "cgroups", "cpus", "memory", "devices", "claims"] as const;

/** A snapshot with what the page tells of it. */
export interface Known {
  readonly snapshot: Snapshot;
  readonly decided: { readonly [K in (typeof FROM_SNAPSHOT)[number]]: Answer<K> };
}
/** Why nothing can be drawn of a node. */
export type Seen =
  | { readonly state: "known"; readonly row: SnapshotRow; readonly known: Known }
  | { readonly state: "never" }
  | { readonly state: "gone"; readonly snapshotId: string }
  /** In the history. */
  | { readonly state: "damaged"; readonly fault: string }
  | { readonly state: "unreadable"; readonly row: SnapshotRow; readonly issues: readonly InputIssue[] };

/** Kinds whose part of the page prints reasons. */
const REASONED: ReadonlySet<Kind> = new Set(["eviction"]);

/** A decision of a kind on the snapshot; `remembered` is what the history has of the node for it. */
export function decideOn<K extends Kind>(
  kind: K,
  snapshot: Snapshot,
  remembered: unknown = null,
  explain: Explain = REASONED.has(kind) ? "reasons" : "off",
): Answer<K> {
  const ask = decodeAsk(kind, undefined);
  const facts = decodeFacts(kind, remembered, "facts");
  if (!ask.ok) throw new Error(`${kind} cannot be asked nothing`);
  const known = facts.ok && facts.value !== undefined ? { [kind]: facts.value } : {};
  return decideKind(kind, { snapshot, facts: known, ask: ask.value, explain }) as Answer<K>;
}

function know(text: string): Result<Known, readonly InputIssue[]> {
  const decoded = decodeStored(parsed(text));
  if (!decoded.ok) return decoded;
  const snapshot = decoded.value;
  const effective = effectiveSnapshot(snapshot);
  const decided = Object.fromEntries(FROM_SNAPSHOT.map((kind) => [kind, decideOn(kind, effective)]));
  return { ok: true, value: { snapshot, decided: decided as Known["decided"] } };
}

/** Parses JSON. A text that is no JSON is no snapshot either, and is reported in the same way. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Each takes the time of a few requests to work out, and the memory of some megabytes on a large node. */
const MAX_KNOWN = 8;
const knownOf = perObject((_owner: object) => new Lru<string, Result<Known, readonly InputIssue[]>>(MAX_KNOWN));

/**
 * The page's knowledge of a stored snapshot. It is worked out once as long as the snapshot is among the last of this app
 * (`owner`).
 */
export function knowSnapshot(owner: object, { id, body }: Pick<SnapshotRow, "id" | "body">): ReturnType<typeof know> {
  const kept = knownOf(owner);
  const found = kept.get(id) ?? know(body);
  kept.set(id, found);
  return found;
}
