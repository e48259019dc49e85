import type { Change } from "./changes.ts";
import { type CpuSet, overlaps } from "./cpuset.ts";
import type { Move } from "./cpuset-moves.ts";
import type { CgroupState, ObservedCgroup } from "./state.ts";
import type { Step } from "./step.ts";
import { type Draft, StepList } from "./step-list.ts";
import type { Target } from "./targets.ts";

export interface Unordered {
  /** Leaves first. */
  readonly remove: readonly ObservedCgroup[];
  /** Parents first; so are the next two. */
  readonly targets: readonly Target[];
  readonly changes: readonly Change[];
  readonly moves: readonly Move[];
}

/**
 * Puts everything into one order that the kernel accepts, and says for each step which others it cannot do without:
 * orphans go, leaves first; new cgroups come, parents first; cpusets are released from the bottom and claimed from the
 * top; what grows is written from the top; what shrinks from the bottom.
 */
export function orderSteps(work: Unordered, state: CgroupState): readonly Step[] {
  const list = new StepList(state);
  for (const cgroup of work.remove) list.remove(cgroup);
  for (const target of work.targets) list.create(target);

  const released = list.bottomUp(work.moves.flatMap(releaseOf));
  const givers = work.moves.filter((move) => released.has(move));
  const claimed = list.topDown(work.moves.flatMap((move) => claimOf(move, givers, released)));

  list.topDown(work.changes.filter((change) => change.way !== "narrow").map(draftOf));
  const narrow = work.changes.filter((change) => change.way === "narrow").map(draftOf);
  // v1: the memory limit comes down before memsw, the reverse of the way up; v2: swap first, as always.
  list.bottomUp(state.version === 1 ? narrow.toReversed() : narrow);
  list.bottomUp(work.moves.map((move) => settleOf(move, claimed.get(move) ?? released.get(move) ?? [])));
  return list.steps;
}

type Ids = ReadonlyMap<unknown, readonly number[]>;

const draftOf = (change: Change): Draft => ({ ...change, of: change, why: change.way, needs: [] });

const moveDraft = (move: Move, why: Draft["why"], to: string | null, needs: readonly number[]): Draft => ({
  of: move,
  path: move.path,
  knob: move.file,
  why,
  writes: to === null ? [] : [{ file: move.file, to }],
  group: null,
  needs,
});

const releaseOf = (move: Move): Draft[] =>
  move.release === null ? [] : [moveDraft(move, "release", move.release, [])];

function claimOf(move: Move, givers: readonly Move[], released: Ids): Draft[] {
  if (move.claim === null) return [];
  const needs = [...(released.get(move) ?? [])];
  for (const giver of givers) {
    if (giver !== move && givesTo(giver, move.file, move.takes)) needs.push(...(released.get(giver) ?? []));
  }
  return [moveDraft(move, "claim", move.claim, needs)];
}

const givesTo = (giver: Move, file: string, takes: CpuSet): boolean =>
  giver.file === file && overlaps(giver.gives, takes);

/** Also without a write of its own a move passes on its last step: the parent may only settle after it. */
const settleOf = (move: Move, last: readonly number[]): Draft => moveDraft(move, "settle", move.settle, last);
