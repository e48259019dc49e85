import * as z from "zod";
import type { StoreFailure } from "../../../db/failure.ts";
import type { DecisionRow } from "../../../db/rows.ts";
import type { Store } from "../../../db/store.ts";
import { byText } from "../../base/order.ts";
import { ok, type Result } from "../../base/result.ts";
import { isKind, type Verdict } from "../../model/decision.ts";
import { type Form, placeReasonsForm, recordedReason } from "../../model/forms.ts";
import { specOf } from "../../model/kinds.ts";
import { profileOfPolicy } from "../../profiles/index.ts";
import type { Profile } from "../../profiles/profile.ts";
import { isOther, reasonsOfEffect } from "../changed-pods.ts";
import { type Change, recordedAnswer } from "../replay/parsed.ts";
import { type HistoryRequest, historyReplay, replayAnswer } from "../replay/replay-answer.ts";
import { type Compared, historyReplayer, type Replayer, replayer } from "../replay/replay-one.ts";
import { type ChangedDecision, changedDecision } from "../replay/tally.ts";
import { newReasons } from "./snapshot-decisions.ts";

const integer = z.number();
/**
 * A page of the history as a kubelet of another version decides it; decisions of that version count as unchanged without being
 * decided again.
 */
export const upgradePage = z.strictObject({
  ...historyReplay.shape,
  kernelDefaults: integer.describe(
    "the number of decisions, counted in `same`, that differ only in cgroup files to which one version writes the kernel's default and the other writes nothing",
  ),
  pods: z
    .array(
      z.strictObject({
        node: z.string(),
        pod: z.string().describe("NAMESPACE/NAME"),
        count: integer,
        byKind: z.record(z.string(), integer),
      }),
    )
    .describe(
      "all pods for which decisions of this page differ, with the number of these decisions; the pod with the most first",
    ),
  examples: z
    .array(
      z.strictObject({
        ...changedDecision.shape,
        reasons: z
          .array(placeReasonsForm(recordedReason))
          .describe("the first few reasons that the recorded answer does not have"),
      }),
    )
    .describe("the first changed decisions of each kind, with the reasons of the new decision"),
});
export type UpgradePage = Form<typeof upgradePage>;
export type ChangedPod = UpgradePage["pods"][number];
export type Example = UpgradePage["examples"][number];

/** The most examples of one kind on one page. */
const MAX_EXAMPLES = 3;

type History = Pick<Store, "streamDecisions" | "listDecisions" | "getSnapshot" | "getSnapshotPieces" | "getDecision">;
interface UpgradeContext {
  readonly store: History;
  readonly nowMs: number;
  readonly sha256: (text: string) => string | Promise<string>;
  readonly signal?: AbortSignal;
}
/** Returns pages of one history. Errors: of the history, and a token of another question. */
type UpgradePages = (
  world: Omit<UpgradeContext, "store">,
  request: Omit<HistoryRequest, "change">,
) => Promise<Result<UpgradePage, StoreFailure>>;

/**
 * Creates the pages. `length`: the cache size in characters across pages, as for `historyReplayer`; absent to cache within one
 * page only.
 */
export function upgradePages(store: History, to: Profile, length?: number): UpgradePages {
  const change: Change = { kubeletVersion: to.version, isUpgrade: true };
  const replay = historyReplayer(store, change, length);
  const explain = replayer(store, change);
  return async (world, request) => {
    const pods = new PodCounter();
    let kernelDefaults = 0;
    const others = withEffect(notOfItsOwn(replay, to), () => kernelDefaults++);
    const context = { ...world, store, replay: countingPods(others, pods) };
    const page = await replayAnswer(context, { ...request, change });
    if (!page.ok) return page;
    const examples: Example[] = [];
    for (const one of firstOfEachKind(page.value.changed)) {
      const found = await exampleOf(store, explain, one);
      if (!found.ok) return found;
      if (found.value !== null) examples.push(found.value);
    }
    return ok({ ...page.value, kernelDefaults, pods: pods.list(), examples });
  };
}

/** A replayer that does not decide decisions of the version itself again. */
function notOfItsOwn(replay: Replayer<Compared>, { version: to }: Profile): Replayer<Compared> {
  return (row) =>
    profileOfPolicy(row.policyVersion).version === to ? Promise.resolve(ok(asRecorded(row, to))) : replay(row);
}
const asRecorded = ({ verdict }: DecisionRow, version: string): Compared => ({
  recordedUnder: version,
  replayedUnder: version,
  state: "same",
  verdict: verdict as Verdict,
  differences: [],
  truncated: false,
  pods: [],
  problem: null,
});

/** A replayer that treats answers that differ without an effect as equal; `onEffect` is called for each. */
function withEffect(replay: Replayer<Compared>, onEffect: () => void): Replayer<Compared> {
  return async (row) => {
    const again = await replay(row);
    if (!again.ok || again.value.state !== "differs" || !isKind(row.kind)) return again;
    if (isOther(again.value.differences, specOf(row.kind).hasNoEffect)) return again;
    onEffect();
    return ok({ ...again.value, state: "same", differences: [], truncated: false, pods: [] });
  };
}

function countingPods(replay: Replayer<Compared>, counter: PodCounter): Replayer<Compared> {
  return async (row) => {
    const again = await replay(row);
    if (again.ok) for (const pod of again.value.pods) counter.add({ node: row.node, pod, byKind: { [row.kind]: 1 } });
    return again;
  };
}

/** Counts the changed decisions of each pod. */
export class PodCounter {
  readonly #pods = new Map<string, { node: string; pod: string; count: number; byKind: Record<string, number> }>();

  add({ node, pod, byKind }: Omit<ChangedPod, "count">): void {
    const key = `${pod} ${node}`;
    const known = this.#pods.get(key) ?? { node, pod, count: 0, byKind: {} };
    this.#pods.set(key, known);
    for (const [kind, count] of Object.entries(byKind)) {
      known.count += count;
      known.byKind[kind] = (known.byKind[kind] ?? 0) + count;
    }
  }

  list(): readonly ChangedPod[] {
    const sorted = [...this.#pods].sort(([x, a], [y, b]) => b.count - a.count || byText(x, y));
    return sorted.map(([, pod]) => pod);
  }
}

function firstOfEachKind(changed: readonly ChangedDecision[]): readonly ChangedDecision[] {
  const taken = new Map<string, number>();
  return changed.filter(({ kind }) => {
    const count = taken.get(kind) ?? 0;
    taken.set(kind, count + 1);
    return count < MAX_EXAMPLES;
  });
}

/** Null if the decision was deleted meanwhile. */
async function exampleOf(
  store: Pick<Store, "getDecision">,
  explain: Replayer,
  changed: ChangedDecision,
): Promise<Result<Example | null, StoreFailure>> {
  const row = await store.getDecision(changed.id);
  if (!row.ok) return row;
  if (row.value === null) return ok(null);
  const again = await explain({ ...row.value, explain: "reasons" });
  if (!again.ok) return again;
  const recorded = recordedAnswer(row.value);
  if (!recorded.ok) return recorded;
  const { answer, differences } = again.value;
  const reasons =
    answer === null || !isKind(row.value.kind) ? [] : reasonsOfEffect(row.value.kind, answer.reasons, differences);
  return ok({ ...changed, reasons: newReasons(recorded.value.reasons, reasons) });
}
