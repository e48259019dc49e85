import type { GcOperation } from "../../api/model/garbage-collection.ts";
import type { Unlisted } from "./look.ts";
import type { CollectionReport, GcKind, GcPorts } from "./ports.ts";

/**
 * A pass over a runtime that lists nothing: it has failed, which the history, the next pass and the kubelet's events are to
 * know. Removes nothing. The runtime's fault itself is told by whoever looked.
 */
export async function failUnlisted(
  { client }: GcPorts,
  kind: GcKind,
  operation: GcOperation,
  { at, snapshot, error }: Unlisted,
): Promise<CollectionReport> {
  const answer = await client.decide(kind, snapshot, { operation, done: [], error });
  if (answer.ok) await client.settle(answer.value);
  return {
    at,
    kind,
    operation,
    dryRun: false,
    answer: answer.ok ? answer.value : null,
    removals: [],
    fileSystem: { before: null, after: null },
    complete: false,
    problems: answer.ok ? [] : [answer.error],
  };
}
