import type { Refusal } from "../../model/decision.ts";
import { podUid } from "../../model/pod.ts";
import { err, ok, type Result } from "../../model/result.ts";
import type { Runtime, RuntimeContainer, RuntimeSandbox } from "../../model/runtime.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { podsOfNode } from "../cgroups/node-pods.ts";
import { goDurationText } from "../go/duration.ts";
import { nanosOf } from "./unix-nanos.ts";

export interface GcInput {
  readonly now: bigint;
  readonly runtime: Runtime;
  readonly containers: readonly RuntimeContainer[];
  readonly sandboxes: readonly RuntimeSandbox[];
  readonly sandboxIds: ReadonlySet<string>;
  readonly minAgeMs: number;
  readonly maxPerPodContainer: number;
  readonly maxContainers: number;
}

interface WithId {
  readonly id: string;
}
const NOTHING_LISTED: Pick<Snapshot, "runtime" | "pods"> = { runtime: { containers: [], sandboxes: [] }, pods: [] };

/** What no pass can do without; half of the runtime's lists decides nothing. Flags have the kubelet's defaults. */
export function inputOf(snapshot: Snapshot, isListed = true): Result<GcInput, Refusal> {
  const { observedAt, kubelet } = snapshot;
  const { runtime, pods } = isListed ? snapshot : NOTHING_LISTED;
  const { containers, sandboxes } = runtime ?? {};
  const needs: string[] = [];
  if (observedAt === undefined) needs.push("observedAt");
  if (pods === undefined) needs.push("pods");
  if (containers === undefined) needs.push("runtime.containers");
  if (sandboxes === undefined) needs.push("runtime.sandboxes");
  const nameless = podsOfNode({ ...snapshot, pods }).find((p) => podUid(p) === undefined);
  if (nameless !== undefined) needs.push(`pods[${pods?.indexOf(nameless)}].metadata.uid`);
  if (
    observedAt === undefined ||
    runtime === undefined ||
    containers === undefined ||
    sandboxes === undefined ||
    needs.length > 0
  ) {
    return err({ code: "needs_input", message: `a pass over containers needs ${needs.join(", ")}`, needs });
  }
  const sandboxIds = new Set(sandboxes.map(({ id }) => id));
  const twin =
    repeated("containers", containers, differentIds(containers)) ?? repeated("sandboxes", sandboxes, sandboxIds.size);
  if (twin !== undefined) return err({ code: "invalid_state", message: twin, needs: [] });
  const minAgeMs = kubelet?.minimumContainerTTLMs ?? 0;
  if (minAgeMs < 0) {
    // kubelet 1.36: NewContainerGC
    const message = `invalid minimum garbage collection age: ${goDurationText(BigInt(minAgeMs) * 1_000_000n)}`;
    return err({ code: "invalid_configuration", message, needs: [] });
  }
  return ok({
    now: nanosOf(observedAt),
    runtime,
    containers,
    sandboxes,
    sandboxIds,
    minAgeMs,
    maxPerPodContainer: kubelet?.maximumDeadContainersPerContainer ?? 1,
    maxContainers: kubelet?.maximumDeadContainers ?? -1,
  });
}

function repeated(list: string, entries: readonly WithId[], count: number): string | undefined {
  if (count === entries.length) return undefined;
  const seen = new Map<string, number>();
  for (const [i, { id }] of entries.entries()) {
    const first = seen.get(id);
    if (first !== undefined) return `runtime.${list}[${i}].id \`${id}\` is also that of runtime.${list}[${first}]`;
    seen.set(id, i);
  }
  return undefined;
}

/** How many different ids. A number made of each tells most often that all are, sooner than a set of ten thousand texts. */
function differentIds(entries: readonly WithId[]): number {
  const prints = new Int32Array(entries.length);
  for (let i = 0; i < prints.length; i++) prints[i] = printOf((entries[i] as WithId).id);
  prints.sort();
  for (let i = 1; i < prints.length; i++) {
    if (prints[i] === prints[i - 1]) return new Set(entries.map(({ id }) => id)).size;
  }
  return entries.length;
}
/** FNV-1a of its end. */
function printOf(id: string): number {
  let print = 0x811c9dc5;
  for (let i = Math.max(0, id.length - PRINTED); i < id.length; i++) {
    print = Math.imul(print ^ id.charCodeAt(i), 0x01000193);
  }
  return print;
}
const PRINTED = 24;
