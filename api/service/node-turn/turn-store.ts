import type { SnapshotRow } from "../../../db/rows.ts";
import type { Recorded, Recording, Store } from "../../../db/store.ts";
import { ok } from "../../model/result.ts";
export interface CountedAgain {
  readonly kind: string;
  readonly decisionId: string;
  readonly times: number;
  readonly lastAtMs: number;
  readonly lastSnapshotId: string | null;
}
export interface Turn {
  readonly node: string;
  readonly atMs: number;
  readonly snapshots: readonly SnapshotRow[];
  readonly decisions: readonly Omit<Recording, "snapshot">[];
  readonly again: readonly CountedAgain[];
}
export interface TurnRecorded {
  readonly decisions: readonly Recorded[];
  readonly again: readonly boolean[];
}
export const recordTurnBy = (store: Pick<Store, "record" | "putSnapshot">) => async (turn: Turn) => {
  for (const s of turn.snapshots) {
    const r = await store.putSnapshot(s);
    if (!r.ok) return r;
  }
  const decisions: Recorded[] = [];
  for (const d of turn.decisions) {
    const r = await store.record(d);
    if (!r.ok) return r;
    decisions.push(r.value);
  }
  const value: TurnRecorded = { decisions, again: turn.again.map(() => true) };
  return ok(value);
};
