import { err, ok, type Result } from "../../api/base/result.ts";
import type { CgroupLevel, CgroupsDecision } from "../../api/model/cgroups.ts";
import { CPUSET_FILES, controllerOf, ruleOf } from "./cgroup-files.ts";
import { type Change, changesOf, type Write } from "./changes.ts";
import type { CgroupState, ObservedCgroup } from "./state.ts";
import { nearestAncestor, parentOf, parentsFirst, type Step, type StepReason, type WritePlan } from "./step.ts";
import { type Containers, orphansOf, type Target, targetsOf, textBefore } from "./targets.ts";
import { amountOf, type CpuSet, formatCpuset, NONE, overlaps, parseCpuset, shareOf, without } from "./values.ts";

/** Writes of one limit of one cgroup, before they have their place. */
interface Draft {
  /** The object that the ids are numbered under. */
  readonly of: unknown;
  readonly path: string;
  readonly limit: string;
  readonly why: StepReason;
  readonly writes: readonly Write[];
  readonly group: string | null;
  readonly needs: readonly number[];
}

type StepIds = readonly number[];

const depthOf = (draft: Draft): number => draft.path.split("/").length;
const keyOf = (draft: Draft, path = draft.path): string => `${draft.limit} ${path}`;

/** Steps in their final order; each call appends one phase. */
class StepList {
  readonly steps: Step[] = [];
  readonly #state: CgroupState;
  readonly #made = new Map<string, number>();
  readonly #removed = new Map<string, number[]>();
  readonly #text = new Map<string, string>();
  readonly #groups = new Map<string, number[]>();

  constructor(state: CgroupState) {
    this.#state = state;
  }

  /** Called leaves first. */
  remove({ path, identities }: ObservedCgroup): void {
    const id = this.steps.length;
    this.steps.push({ id, op: "rmdir", path, why: "orphan", identities, needs: this.#removed.get(path) ?? [] });
    const parent = parentOf(path) ?? "";
    this.#removed.set(parent, [...(this.#removed.get(parent) ?? []), id]);
  }

  /** Called parents first. */
  create({ path, observed }: Target): void {
    const controllers = observed === null ? this.#state.controllers : observed.lacks;
    if (observed !== null && controllers.length === 0) return;
    const id = this.steps.length;
    const above = nearestAncestor(path, (up) => this.#made.has(up));
    const needs = above === null ? [] : [this.#made.get(above) ?? id];
    const fresh = observed === null;
    this.steps.push({ id, op: "mkdir", path, why: fresh ? "create" : "complete", controllers, fresh, needs });
    this.#made.set(path, id);
  }

  /** Each write waits for the nearest ancestor's write of the same limit; independent writes do not wait. Input: parents first. */
  topDown(drafts: readonly Draft[]): ReadonlyMap<unknown, StepIds> {
    const ids = new Map<unknown, StepIds>();
    const done = new Map<string, StepIds>();
    for (const draft of drafts) {
      const above = draft.why === "set" ? null : nearestAncestor(draft.path, (up) => done.has(keyOf(draft, up)));
      const needs = above === null ? [] : (done.get(keyOf(draft, above)) ?? []);
      const own = this.#write(draft, needs);
      ids.set(draft.of, own);
      done.set(keyOf(draft), own);
    }
    return ids;
  }

  /** Each write waits for the nearest descendants' writes of the same limit. The order among one depth is kept. */
  bottomUp(drafts: readonly Draft[]): ReadonlyMap<unknown, StepIds> {
    const ids = new Map<unknown, StepIds>();
    const members = new Set(drafts.map((draft) => keyOf(draft)));
    const waiting = new Map<string, number[]>();
    for (const draft of drafts.toSorted((a, b) => depthOf(b) - depthOf(a))) {
      const written = this.#write(draft, waiting.get(keyOf(draft)) ?? []);
      const own = written.length > 0 ? written : [...draft.needs, ...(waiting.get(keyOf(draft)) ?? [])];
      ids.set(draft.of, own);
      const above = nearestAncestor(draft.path, (up) => members.has(keyOf(draft, up)));
      if (above !== null) waiting.set(keyOf(draft, above), [...(waiting.get(keyOf(draft, above)) ?? []), ...own]);
    }
    return ids;
  }

  #write(draft: Draft, others: StepIds): StepIds {
    const ids: number[] = [];
    const observed = this.#state.cgroups[draft.path];
    const made = this.#made.get(draft.path);
    const before = [...(made === undefined ? [] : [made]), ...draft.needs, ...others];
    const inGroup = draft.group === null ? [] : (this.#groups.get(draft.group) ?? []);
    for (const { file, to } of draft.writes) {
      const id = this.steps.length;
      const from = this.#text.get(`${draft.path} ${file}`) ?? observed?.files[file] ?? null;
      const needs = [...new Set([...before, ...inGroup, ...ids])].sort((a, b) => a - b);
      const identity = observed?.identities[controllerOf(file)] ?? null;
      const { path, why, group } = draft;
      this.steps.push({ id, op: "write", path, file, from, to, why, identity, group, needs });
      this.#text.set(`${path} ${file}`, to);
      ids.push(id);
    }
    if (draft.group !== null) this.#groups.set(draft.group, [...inGroup, ...ids]);
    return ids;
  }
}

/**
 * Files whose value depends on all pods together. `sum`: more pods increase it; `rest`: it is what the pods leave, and more
 * pods decrease it. kubelet 1.36: setCPUCgroupConfig, setMemoryReserve, setMemoryQoS.
 */
const FOLLOWS: Partial<Readonly<Record<CgroupLevel, Readonly<Record<string, "sum" | "rest">>>>> = {
  node: { "memory.min": "sum", "memory.low": "sum" },
  qos: {
    "cpu.shares": "sum",
    "cpu.weight": "sum",
    "memory.min": "sum",
    "memory.low": "sum",
    "memory.limit_in_bytes": "rest",
    "memory.max": "rest",
  },
};

interface WithheldValues {
  /** The decision without values that are withheld. */
  readonly decision: CgroupsDecision;
  /** `/kubepods/burstable cpu.shares`, in the decision's order. */
  readonly held: readonly string[];
}

/**
 * Limits what is written while some pods could not be read: a value that depends on all pods changes only in the direction in
 * which the missing pods would change it; otherwise it stays. A new cgroup gets the decided values.
 */
export function withholdValues(decision: CgroupsDecision, state: CgroupState): WithheldValues {
  const held: string[] = [];
  const cgroups = decision.cgroups.map((cgroup) => {
    const follows = FOLLOWS[cgroup.level] ?? {};
    const files = cgroup.files.filter(({ path: file, value }) => {
      const now = state.cgroups[cgroup.path]?.files[file];
      const how = follows[file];
      if (how === undefined || now === undefined || !movesBack(state, file, how, now, value)) return true;
      held.push(`${cgroup.path} ${file}`);
      return false;
    });
    return { ...cgroup, files };
  });
  return { decision: { ...decision, cgroups }, held };
}

function movesBack({ version, pageSize }: CgroupState, file: string, how: "sum" | "rest", now: string, to: string) {
  const rule = ruleOf(version, file);
  if (rule === null) return false;
  const sizeOf = (text: string) => (rule.kind === "share" ? shareOf(rule, text) : amountOf(rule, text, pageSize));
  const [old, next] = [sizeOf(now), sizeOf(to)];
  if (old === null || next === null) return false;
  return how === "sum" ? next < old : next > old;
}

type CpusetFile = (typeof CPUSET_FILES)[number];

/** A cgroup's current and desired CPU set. */
interface CpusetNode {
  readonly path: string;
  readonly old: CpuSet;
  readonly next: CpuSet;
}

/**
 * Every cgroup that affects the order of cpuset writes, parents first: those of the decision, and others that stay
 * beside them. A cgroup that another process made keeps its set, even if that blocks a change.
 */
function cpusetNodes(
  targets: ReadonlyMap<string, Target>,
  state: CgroupState,
  removed: ReadonlySet<string>,
  file: CpusetFile,
): ReadonlyMap<string, CpusetNode> {
  const staying = Object.values(state.cgroups).filter((c) => !removed.has(c.path) && c.files[file] !== undefined);
  const paths = parentsFirst([...targets.keys(), ...staying.map((c) => c.path)]);
  const needed = neededBelow(paths, targets, file);
  const nodes = new Map<string, CpusetNode>();
  for (const path of paths) {
    const old = setBefore(state, path, file);
    const target = targets.get(path);
    const above = nodes.get(parentOf(path) ?? "")?.next;
    const desired = desiredOf(target, file);
    const follows = desired === NONE && target !== undefined && state.version === 1;
    const next = follows ? followed(target, old, above, needed.get(path) ?? NONE) : desired === NONE ? old : desired;
    nodes.set(path, { path, old, next });
  }
  return nodes;
}

/**
 * The set for a v1 cgroup whose decision has none, since v1 cannot inherit: its current part of the parent's set plus
 * what its children need; a new cgroup gets all of the parent's.
 */
function followed(target: Target, old: CpuSet, above: CpuSet | undefined, needed: CpuSet): CpuSet {
  const limit = above ?? old;
  if (target.observed === null) return limit | needed;
  const kept = (old & limit) | needed;
  return kept === NONE ? limit : kept;
}

/** The CPUs that the cgroups below want. */
function neededBelow(paths: readonly string[], targets: ReadonlyMap<string, Target>, file: CpusetFile) {
  const needed = new Map<string, CpuSet>();
  for (const path of paths.toReversed()) {
    const parent = parentOf(path);
    if (parent === null) continue;
    const desired = desiredOf(targets.get(path), file);
    const own = desired === NONE ? (needed.get(path) ?? NONE) : desired;
    needed.set(parent, (needed.get(parent) ?? NONE) | own);
  }
  return needed;
}

const desiredOf = (target: Target | undefined, file: CpusetFile): CpuSet =>
  parseCpuset(target?.desired.get(file) ?? "") ?? NONE;

function setBefore(state: CgroupState, path: string, file: CpusetFile): CpuSet {
  const rule = ruleOf(state.version, file);
  return rule === null ? NONE : (parseCpuset(textBefore(state, path, rule)) ?? NONE);
}

export interface PlanOptions {
  /** Remove the cgroups of pods that the decision does not name, if nothing runs in them. */
  readonly removeOrphans: boolean;
  readonly containers: Containers;
  /** Files that stay as they are, as `path file`; whole knobs only. */
  readonly leave?: ReadonlySet<string>;
}

interface PlanRefusal {
  readonly code: "version_mismatch";
  readonly message: string;
}

/**
 * The steps that turn what was observed into what was decided, in an order that the kernel accepts at every step.
 * Pure. INVARIANT: planned again after all steps were applied, there is nothing left to do.
 */
export function planWrites(
  decision: CgroupsDecision,
  state: CgroupState,
  options: PlanOptions,
): Result<WritePlan, PlanRefusal> {
  if (decision.version !== state.version) return err(mismatch(decision.version, state.version));
  const { targets, skipped } = targetsOf(decision, state, options.containers);
  const orphans = options.removeOrphans ? orphansOf(decision, state, options.containers) : { remove: [], kept: [] };
  const removed = new Set(orphans.remove.map((cgroup) => cgroup.path));
  const stays = ({ path, writes }: Change): boolean =>
    writes.every(({ file }) => options.leave?.has(`${path} ${file}`));
  const steps = orderSteps(
    {
      remove: orphans.remove,
      targets: [...targets.values()],
      changes: [...targets.values()]
        .flatMap((target) => changesOf(target, state, decision.driver))
        .filter((change) => !stays(change)),
      moves: CPUSET_FILES.flatMap((file) => cpusetMoves(targets, state, removed, file)),
    },
    state,
  );
  const { version, bootId, root, pageSize } = state;
  return ok({ version, bootId, root, pageSize, steps, skipped: [...skipped, ...orphans.kept] });
}

const mismatch = (decided: number, observed: number): PlanRefusal => ({
  code: "version_mismatch",
  message: `the decision is for cgroup v${decided}, this machine runs v${observed}: decide again with cgroup.version ${observed}`,
});

interface Unordered {
  /** Leaves first. */
  readonly remove: readonly ObservedCgroup[];
  /** Parents first; so are the next two. */
  readonly targets: readonly Target[];
  readonly changes: readonly Change[];
  readonly moves: readonly Move[];
}

/**
 * Orders all steps so that the kernel accepts them, with each step's prerequisites: orphans are removed, leaves first;
 * new cgroups are created, parents first; cpusets shrink from the bottom and grow from the top; other limits grow from
 * the top and shrink from the bottom.
 */
function orderSteps(work: Unordered, state: CgroupState): readonly Step[] {
  const list = new StepList(state);
  for (const cgroup of work.remove) list.remove(cgroup);
  for (const target of work.targets) list.create(target);

  const released = list.bottomUp(work.moves.flatMap(releaseOf));
  const givers = work.moves.filter((move) => released.has(move));
  const claimed = list.topDown(work.moves.flatMap((move) => claimOf(move, givers, released)));

  list.topDown(work.changes.filter((change) => change.way !== "narrow").map(draftOf));
  const narrow = work.changes.filter((change) => change.way === "narrow").map(draftOf);
  // v1: the memory limit is lowered before memsw, the reverse of raising; v2: swap first, always.
  list.bottomUp(state.version === 1 ? narrow.toReversed() : narrow);
  list.bottomUp(work.moves.map((move) => settleOf(move, claimed.get(move) ?? released.get(move) ?? [])));
  return list.steps;
}

type Ids = ReadonlyMap<unknown, readonly number[]>;

const draftOf = (change: Change): Draft => ({ ...change, of: change, why: change.way, needs: [] });

const moveDraft = (move: Move, why: Draft["why"], to: string | null, needs: readonly number[]): Draft => ({
  of: move,
  path: move.path,
  limit: move.file,
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

/** A settling step without a write passes on the last step, since the parent may only settle after it. */
const settleOf = (move: Move, last: readonly number[]): Draft => moveDraft(move, "settle", move.settle, last);

/** The writes, at most three, that bring a cgroup's cpuset to its desired value; null: the write is not needed. */
interface Move {
  readonly path: string;
  readonly file: CpusetFile;
  /** Bottom-up: down to what old and new have in common. */
  readonly release: string | null;
  /** Written top-down, after every release: the new set, plus what the children still hold. */
  readonly claim: string | null;
  /** Bottom-up: down to exactly the new set. */
  readonly settle: string | null;
  readonly gives: CpuSet;
  readonly takes: CpuSet;
}

/**
 * Release before claim: no cgroup takes a CPU before the cgroup that gives it up has released it, and at every moment a
 * child's set lies within its parent's. A cgroup whose old and new sets share nothing changes in one write.
 * Parents first.
 */
function cpusetMoves(
  targets: ReadonlyMap<string, Target>,
  state: CgroupState,
  removed: ReadonlySet<string>,
  file: CpusetFile,
): readonly Move[] {
  const nodes = cpusetNodes(targets, state, removed, file);
  const held = new Map<string, CpuSet>();
  const heldBelow = new Map<string, CpuSet>();
  for (const node of [...nodes.values()].reverse()) {
    const own = cpusAfterRelease(node, heldBelow.get(node.path) ?? NONE);
    held.set(node.path, own);
    const parent = parentOf(node.path);
    // v2 accepts any set and intersects it with the parent's by itself, so nothing must be held for children there
    if (parent !== null && state.version === 1) heldBelow.set(parent, (heldBelow.get(parent) ?? NONE) | own);
  }
  const moves = [...nodes.values()].map((node) =>
    moveOf(node, held.get(node.path) ?? NONE, heldBelow.get(node.path) ?? NONE, file),
  );
  return moves.filter((move) => move !== null);
}

function cpusAfterRelease({ old, next }: CpusetNode, childrenHold: CpuSet): CpuSet {
  const common = old & (next | childrenHold);
  return common === NONE ? old : common;
}

function moveOf({ path, old, next }: CpusetNode, held: CpuSet, childrenHold: CpuSet, file: CpusetFile): Move | null {
  const claimed = next | childrenHold;
  if (held === old && claimed === held && next === claimed) return null;
  return {
    path,
    file,
    release: held === old ? null : formatCpuset(held),
    claim: claimed === held ? null : formatCpuset(claimed),
    settle: next === claimed ? null : formatCpuset(next),
    gives: without(old, held),
    takes: without(claimed, held),
  };
}
