import type { StoreFailure } from "../../../db/failure.ts";
import type { DecisionRow } from "../../../db/rows.ts";
import type { Store } from "../../../db/store.ts";
import type { Verdict } from "../../model/decision.ts";
import type { PlaceReasons } from "../../model/forms.ts";
import { ok, type Result } from "../../model/result.ts";
import { profileOfPolicy } from "../../profiles/index.ts";
import type { Profile } from "../../profiles/profile.ts";
import { type Change, recordedAnswer } from "../replay/parsed.ts";
import { type HistoryRequest, type ReplayAnswer, replayAnswer } from "../replay/replay-answer.ts";
import { type Compared, historyReplayer, type Replayer, replayer } from "../replay/replay-one.ts";
import type { ChangedDecision } from "../replay/tally.ts";
import { newReasons } from "./snapshot-decisions.ts";

/** A changed decision with why it is another one now. */
export interface Example extends ChangedDecision {
  /** The version that it was recorded under. */
  readonly recordedUnder: string;
  /** Those that the recorded answer does not have, the first few; a decision that was recorded without reasons has all of them. */
  readonly reasons: readonly PlaceReasons[];
}

/** A page of the history as a kubelet of another version decides it. */
export interface UpgradePage extends ReplayAnswer {
  /** Decisions of this page by the version that they were recorded under; those of `to` are counted as the same, unasked. */
  readonly recordedUnder: Readonly<Record<string, number>>;
  /** The first changed ones of each kind. */
  readonly examples: readonly Example[];
}

/** Examples of one kind on one page. */
export const MAX_EXAMPLES = 3;

type History = Pick<Store, "streamDecisions" | "listDecisions" | "getSnapshot" | "getSnapshotPieces" | "getDecision">;
interface UpgradeContext {
  readonly store: History;
  readonly nowMs: number;
  readonly sha256: (text: string) => string | Promise<string>;
  readonly signal?: AbortSignal;
}
/** Answers pages of one history. Errors: those of the history, and a token of another question. */
export type UpgradePages = (
  world: Omit<UpgradeContext, "store">,
  request: Omit<HistoryRequest, "change">,
) => Promise<Result<UpgradePage, StoreFailure>>;

/** `length`: characters of what is kept from page to page, as `historyReplayer` has it; absent: those of one page. */
export function upgradePages(store: History, to: Profile, length?: number): UpgradePages {
  const change: Change = { kubeletVersion: to.version, isUpgrade: true };
  const replay = historyReplayer(store, change, length);
  const explain = replayer(store, change);
  return async (world, request) => {
    const seen = new Map<string, number>();
    const page = await replayAnswer({ ...world, store, replay: notOfItsOwn(replay, to, seen) }, { ...request, change });
    if (!page.ok) return page;
    const examples: Example[] = [];
    for (const one of firstOfEachKind(page.value.changed)) {
      const found = await exampleOf(store, explain, one);
      if (!found.ok) return found;
      if (found.value !== null) examples.push(found.value);
    }
    return ok({ ...page.value, recordedUnder: Object.fromEntries(seen), examples });
  };
}

/** What the version decided itself need not be decided again. `seen` counts whose decisions came by. */
function notOfItsOwn(replay: Replayer<Compared>, to: Profile, seen: Map<string, number>): Replayer<Compared> {
  return (row) => {
    const { version } = profileOfPolicy(row.policyVersion);
    seen.set(version, (seen.get(version) ?? 0) + 1);
    return version === to.version ? Promise.resolve(ok(asRecorded(row))) : replay(row);
  };
}
const asRecorded = ({ verdict }: DecisionRow): Compared => ({
  state: "same",
  verdict: verdict as Verdict,
  differences: [],
  truncated: false,
  problem: null,
});

function firstOfEachKind(changed: readonly ChangedDecision[]): readonly ChangedDecision[] {
  const taken = new Map<string, number>();
  return changed.filter(({ kind }) => {
    const count = taken.get(kind) ?? 0;
    taken.set(kind, count + 1);
    return count < MAX_EXAMPLES;
  });
}

/** Null: it was removed meanwhile. */
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
  const recordedUnder = profileOfPolicy(row.value.policyVersion).version;
  const reasons = newReasons(recorded.value.reasons, again.value.answer?.reasons ?? []);
  return ok({ ...changed, recordedUnder, reasons });
}
