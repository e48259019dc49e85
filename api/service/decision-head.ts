import { type DecisionHead, seriesOf } from "../../db/rows.ts";
import { rfc3339 } from "./timestamp.ts";

/** The fields of a recorded decision that lists show and that its record begins with. */
export function headOf(row: DecisionHead) {
  const { times, lastAtMs, lastSnapshotId } = seriesOf(row);
  return {
    id: row.id,
    kind: row.kind,
    node: row.node,
    policyVersion: row.policyVersion,
    snapshotId: row.snapshotId,
    decidedAt: rfc3339(row.decidedAtMs),
    times,
    lastDecidedAt: rfc3339(lastAtMs),
    lastSnapshotId,
    verdict: row.verdict,
    reason: row.reason,
    explain: row.explain,
    pod: row.pod,
  };
}
