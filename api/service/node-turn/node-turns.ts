import type { StoreFailure } from "../../../db/failure.ts";
import type { SnapshotRow } from "../../../db/rows.ts";
import type { Repetition, Store } from "../../../db/store.ts";
import { Lru, PerOwnerCache } from "../../base/cache.ts";
import type { JsonPatch } from "../../base/json-patch.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { type EpochMs, epochMs } from "../../model/units.ts";
import type { Metrics } from "../../observe/plain-metrics.ts";
import { type Ids, idsOf, type Sha256OfPieces } from "../canonical.ts";
import type { Decision } from "../evaluation.ts";
import { inputProblem, invalid, type Problem, problem } from "../problem.ts";
import { factsOf, type NotRecorded, recordingOf, rowInPieces } from "../recording.ts";
import { changedSnapshot } from "./changes.ts";
import { asKeyframe, piecesOf } from "./keyframe.ts";
import {
  bytesOf,
  fromHistory,
  fromPosted,
  frozenConfiguration,
  hasUnwritten,
  isAsItWas,
  isInUse,
  type KnownSnapshot,
  knownSnapshot,
  type LastAnswer,
  type NodeState,
  type SegmentedSnapshot,
  segmentedSnapshot,
  storedForm,
  type TurnInput,
  unusedBuffers,
  wholeSnapshot,
  withKnownParts,
} from "./node-state.ts";
import type { TurnRequest } from "./request.ts";
import { StatsBuffers } from "./stats-bytes.ts";
import {
  counted,
  countOf,
  decideAsk,
  isCount,
  overlaid,
  patchOf,
  type Refused,
  rowOf,
  type TurnDecision,
} from "./turn-decision.ts";

interface NodeTurnsDeps {
  readonly store: Pick<Store, "getSnapshot" | "getDecision" | "readFacts" | "recordTurn">;
  readonly now: () => EpochMs;
  readonly sha256: Sha256OfPieces;
  /** Makes ids; if absent, ids are hashes of the text alone. */
  readonly ids?: Ids;
  readonly metrics: Pick<Metrics, "decided" | "refused" | "recorded" | "historyFailed">;
  /** Called for each failed write. */
  readonly onFailure: (failure: StoreFailure, node: string) => void;
  /** False: nothing is written. */
  readonly record: boolean;
  /**
   * How long repeated decisions and snapshots that nothing else refers to may wait before they are written; the history then has
   * the first and the last of them. Ms; 0 for no waiting, if a process may end without notice.
   */
  readonly holdMs: number;
  /** The most bytes of all nodes' states together, an estimate. */
  readonly maxBytes: number;
}

interface TurnOutcome {
  readonly snapshotId: string;
  readonly answers: readonly TurnAnswer[];
}
/** One decision of a turn. */
export type TurnAnswer =
  | Refused
  | {
      readonly decision: Decision;
      /** The id in the response: that of the row on which repetitions are counted, if any. */
      readonly id: string;
      readonly decidedAtMs: EpochMs;
      readonly notRecorded: NotRecorded | null;
      /** How often the decision was made, if it repeats a row; else null. */
      readonly again: Repetition | null;
      /** The patch from the caller's last answer to this one; null if that answer is not known here, or the whole answer is shorter. */
      readonly patch: JsonPatch | null;
      /** The id of the caller's last answer. */
      readonly holds: string | null;
    };

/** A turn that is decided but not recorded yet. */
interface Decided extends Pick<NodeState, "kept"> {
  readonly current: KnownSnapshot;
  readonly posted: SegmentedSnapshot;
  readonly taken: readonly (TurnDecision | Refused)[];
}

/** The most that the data of a reader of all nodes may be out of date, ms. */
const STALE_MS = 60_000;
/** The number of nodes above which readers do not wait for writes. */
const QUICKLY_SETTLED = 100;
const FLUSHED_AT_ONCE = 100;
/** Pages of a large fleet are read while its turns are written. */
const PAUSE_MS = 100;
/** The most answers per node: a node has one question of each kind, or one per pod. */
const MAX_ANSWERS = 64;

/** Takes the turns of nodes, each of which starts where the node's last one ended. A node's turns run one after the other. */
export class NodeTurns {
  readonly #deps: NodeTurnsDeps;
  readonly #states: Lru<string, NodeState>;
  readonly #underWay = new Map<string, Promise<void>>();
  /** Nodes with unwritten data, and the id of their unwritten snapshot. */
  readonly #waiting = new Map<string, string>();
  readonly #ids: Ids;
  readonly #buffers = new StatsBuffers();
  #flushedMs = 0;

  constructor(deps: NodeTurnsDeps) {
    this.#deps = deps;
    this.#ids = deps.ids ?? idsOf(deps.sha256);
    this.#states = new Lru(Number.POSITIVE_INFINITY, deps.maxBytes, isInUse);
  }

  /**
   * Decides and records a turn. On an error, an unknown base or an invalid request, the node's state does not change. `onDecided`:
   * called with the kinds once decided, before recording.
   */
  take(
    node: string,
    request: TurnRequest,
    onDecided?: (kinds: readonly string[]) => void,
  ): Promise<Result<TurnOutcome, Problem>> {
    return this.#inOrder(node, async () => {
      const state = this.#states.get(node);
      const decided = await this.#decided(node, state, request);
      if (!decided.ok) return decided;
      onDecided?.(request.asks.map(({ kind }) => kind));
      return ok(await this.#recorded(node, state, decided.value, !("input" in request.from)));
    });
  }

  /** Writes the pending data of some nodes, by default of all. `pauseMs`: the time between two groups of them. */
  async flush(nodes: Iterable<string> = this.#waiting.keys(), pauseMs = 0): Promise<void> {
    const all = [...nodes];
    // all at once would block the turns of other nodes for a second
    for (let i = 0; i < all.length; i += FLUSHED_AT_ONCE) {
      const group = all.slice(i, i + FLUSHED_AT_ONCE);
      const isDue = group.some((node) => this.#waiting.has(node));
      await Promise.all(group.map((node) => this.#flushNode(node)));
      if (isDue && pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  #flushNode(node: string): Promise<void> {
    return this.#inOrder(node, async () => {
      const state = this.#states.get(node);
      if (state !== undefined && hasUnwritten(state)) this.#keep((await this.#written(state)).state);
    });
  }

  /** Writes pending turns before a node or all nodes are read; what is read is at most a minute old, or two with many nodes. */
  async flushForReader(node: string | undefined): Promise<void> {
    if (node !== undefined) return this.#waiting.has(node) || this.#underWay.has(node) ? this.flush([node]) : undefined;
    const now = this.#deps.now();
    if (this.#waiting.size === 0 || now - this.#flushedMs < STALE_MS) return;
    this.#flushedMs = now;
    const isQuick = this.#waiting.size <= QUICKLY_SETTLED;
    const settled = this.flush(this.#waiting.keys(), isQuick ? 0 : PAUSE_MS);
    if (isQuick) await settled;
  }

  /** Writes the pending snapshot with this id, if any; returns whether there was one. */
  async flushSnapshot(id: string): Promise<boolean> {
    for (const [node, waiting] of this.#waiting) {
      if (waiting !== id) continue;
      await this.flush([node]);
      return true;
    }
    return false;
  }

  /** Writes a node's pending data and discards its state; its next turn starts from the history. */
  forget(node: string): Promise<void> {
    return this.#inOrder(node, async () => {
      const state = this.#states.get(node);
      this.#states.delete(node);
      if (this.#waiting.delete(node) && state !== undefined) await this.#written(state);
    });
  }

  #inOrder<T>(node: string, work: () => Promise<T>): Promise<T> {
    const before = this.#underWay.get(node);
    const own = before === undefined ? work() : before.then(work);
    // without the result: what an outgrown table of a map refers to, V8 keeps until the next full collection
    const ended = own.then(
      () => {},
      () => {},
    );
    this.#underWay.set(node, ended);
    void ended.then(() => {
      if (this.#underWay.get(node) === ended) this.#underWay.delete(node);
    });
    return own;
  }

  /** Stores a node's state. States that find no place in memory are written. */
  #keep(state: NodeState): void {
    if (hasUnwritten(state)) this.#waiting.set(state.node, (state.unstored ?? state.current).id);
    else this.#waiting.delete(state.node);
    for (const gone of this.#states.set(state.node, state, bytesOf(state))) {
      if (!this.#waiting.delete(gone.node)) continue;
      void this.#inOrder(gone.node, () => this.#written(gone));
    }
  }

  async #decided(
    node: string,
    state: NodeState | undefined,
    { from, asks }: TurnRequest,
  ): Promise<Result<Decided, Problem>> {
    const { store, sha256, metrics } = this.#deps;
    const ids = this.#ids;
    const begun =
      "input" in from
        ? ok(state === undefined ? from.input : withKnownParts(from.input, state.current))
        : "snapshot" in from
          ? fromPosted(from.snapshot)
          : await this.#changed(node, state, from);
    if (!begun.ok) return begun;
    const posted = await segmentedSnapshot(begun.value.snapshot, ids);
    if (posted.node !== node) {
      const at = "snapshot" in from ? "snapshot.node.metadata.name" : "changes.set.node.metadata.name";
      const [asPath, found] = [node, posted.node].map((name) => `\`${name.slice(0, 253)}\``);
      return invalid(at, `must be ${asPath} as in the path, found ${found}`);
    }
    const facts = overlaid(store);
    const kept = state?.kept ?? new PerOwnerCache();
    const taken: (TurnDecision | Refused)[] = [];
    for (const ask of asks) {
      const last = state?.answers.get(ask.key);
      const one = await decideAsk(ask, { ...begun.value, kept }, posted, last, {
        store: facts.store,
        ids,
        sha256,
        metrics,
      });
      if (!one.ok) return one;
      taken.push(one.value);
      if ("next" in one.value && ask.record) facts.add(factsOf(one.value.decision).facts);
    }
    return ok({ current: knownSnapshot(begun.value, posted, this.#buffers), kept, posted, taken });
  }

  /** The node's snapshot after changes to a base that is in memory or in the history. */
  async #changed(
    node: string,
    state: NodeState | undefined,
    { base, changes }: Extract<TurnRequest["from"], { readonly base: string }>,
  ): Promise<Result<TurnInput, Problem>> {
    const begun = state?.current.id === base ? ok(state.current) : await this.#stored(node, base);
    if (!begun.ok) return begun;
    const before = "stats" in (changes.set ?? {}) ? begun.value.withoutStats : wholeSnapshot(begun.value);
    const changed = changedSnapshot(before, changes, { node, configuration: begun.value.configuration });
    if (!changed.ok) return err(inputProblem(changed.error));
    const { snapshot } = changed.value;
    const isSet = "configuration" in changed.value;
    const configuration = isSet ? frozenConfiguration(changed.value.configuration) : begun.value.configuration;
    return ok({ snapshot, configuration: snapshot.kubeletConfiguration === undefined ? undefined : configuration });
  }

  async #stored(node: string, id: string): Promise<Result<KnownSnapshot, Problem>> {
    const stored = await this.#deps.store.getSnapshot(id);
    // after a failed read, the caller sends the whole snapshot and gets an answer, recorded or not
    if (!stored.ok) return problem("unknown_base", `snapshot \`${id}\` cannot be read now: ${stored.error.message}`);
    if (stored.value?.node === node) return fromHistory({ id, node, text: stored.value.body });
    return problem("unknown_base", `no snapshot \`${id}\` of node \`${node.slice(0, 253)}\` is known`);
  }

  /** Writes the turn's results or holds them back, and returns the answers. */
  async #recorded(
    node: string,
    state: NodeState | undefined,
    { current, kept, posted, taken }: Decided,
    mayHold: boolean,
  ): Promise<TurnOutcome> {
    const now = this.#deps.now();
    const isNew = current.id !== state?.current.id;
    const decided = taken.filter((one) => "next" in one);
    const recorded = this.#deps.record ? decided.filter(({ ask }) => ask.record) : [];
    const isKept = this.#deps.record && (taken.length === 0 || recorded.length > 0);
    const answers = new Map(state?.answers);
    let newest: NodeState["newest"] = state?.newest ?? new Map();
    const fresh: TurnDecision[] = [];
    // answers with unwritten counts that another answer replaces
    const ended: LastAnswer[] = [];
    for (const one of decided) {
      const { ask, last } = one;
      const isRecorded = recorded.includes(one);
      const isCounted = isRecorded && isCount(one) && newest.get(ask.kind) === last?.id;
      if (isRecorded && !isCounted) {
        fresh.push(one);
        newest = new Map([...newest].filter(([kind]) => kind !== ask.kind));
      }
      if (!isCounted && last !== undefined && last.uncounted > 0) ended.push(last);
      const answer = isCounted ? counted(one) : one.next;
      answers.delete(ask.key);
      answers.set(ask.key, { ...answer, decidedAtMs: answer.decidedAtMs ?? now });
    }
    for (const [key, answer] of [...answers].slice(0, Math.max(0, answers.size - MAX_ANSWERS))) {
      answers.delete(key);
      if (answer.uncounted > 0) ended.push(answer);
    }
    // an unrecorded turn, a what-if question, does not change what is pending
    const isPending = isNew || state.unstored !== null || !state.isCurrentKept;
    const unstored = !isKept ? (state?.unstored ?? null) : isPending ? current : null;
    const next: NodeState = {
      node,
      current,
      isCurrentKept: isKept || (!isNew && state.isCurrentKept),
      kept,
      answers,
      newest,
      unstored,
      keyframe: state?.keyframe ?? null,
      writtenMs: state?.writtenMs ?? 0,
      takenMs: now,
    };
    const isHeld = mayHold && fresh.length + ended.length === 0;
    const mayWait = state !== undefined && isHeld && this.#mayWait(state, next, now);
    const written =
      mayWait || !isKept
        ? { state: next, failed: [] }
        : await this.#written(next, { waited: state?.unstored ?? null, posted, ended, fresh, recorded }, now);
    this.#keep(written.state);
    if (state !== undefined) for (const buffer of unusedBuffers(state, written.state)) this.#buffers.release(buffer);
    return {
      snapshotId: current.id,
      answers: taken.map((one) => {
        if (!("next" in one)) return one;
        const { ask, decision } = one;
        const isFailed = written.failed.includes(one) ? "history-failed" : null;
        const notRecorded: NotRecorded | null = !ask.record ? "not-wanted" : this.#deps.record ? isFailed : "off";
        const { id = decision.id, decidedAtMs, made } = written.state.answers.get(ask.key) ?? {};
        const again = made !== undefined && made.times > 1 && notRecorded === null ? made : null;
        const of = { decision, id, decidedAtMs: again === null ? (decidedAtMs ?? now) : now, notRecorded, again };
        return { ...of, patch: patchOf(one), holds: ask.holds };
      }),
    };
  }

  /** Whether writing may wait. INVARIANT: the pending snapshot is the last one of each pending count. */
  #mayWait(state: NodeState, next: NodeState, now: number): boolean {
    if (now - state.writtenMs >= this.#deps.holdMs) return false;
    if (!isAsItWas(state.current.withoutStats, next.current.withoutStats)) return false;
    return Array.from(next.answers.values()).every(
      ({ uncounted, snapshotId }) => uncounted === 0 || snapshotId === next.current.id,
    );
  }

  /** Writes the pending data of a state with a turn's results. `failed`: the decisions of the turn that are not recorded. */
  async #written(
    state: NodeState,
    additions: TurnAdditions = NOTHING,
    atMs: EpochMs = this.#deps.now(),
  ): Promise<{ readonly state: NodeState; readonly failed: readonly TurnDecision[] }> {
    const { store, onFailure, metrics } = this.#deps;
    const { ended, fresh, recorded: ofTurn, isWhole = false } = additions;
    const { rows, keyframe } = await this.#rows(state, additions, atMs);
    const countedOn = [...state.answers].filter(([, { uncounted }]) => uncounted > 0);
    const written = await store.recordTurn({
      node: state.node,
      atMs,
      snapshots: rows,
      decisions: fresh.map(({ decision, inPieces }) =>
        recordingOf(decision, atMs, isWhole ? undefined : inPieces?.pieces),
      ),
      again: [...countedOn.map(([, answer]) => answer), ...ended].map((answer) => countOf(answer, atMs)),
    });
    if (!written.ok) {
      metrics.historyFailed(written.error.code);
      onFailure(written.error, state.node);
      return { state, failed: ofTurn };
    }
    // texts that the store no longer has are sent again
    if (written.value.missing.length > 0)
      return this.#written({ ...state, keyframe: null }, { ...additions, isWhole: true }, atMs);
    const answers = new Map(state.answers);
    const newest = new Map(state.newest);
    for (const [i, [key, answer]] of countedOn.entries()) {
      // other processes count on the same row
      const times = written.value.again[i] ?? null;
      const made = times === null ? answer.made : { ...answer.made, times };
      answers.set(key, { ...answer, made, uncounted: 0, isRow: times !== null });
    }
    for (const [i, { ask, next, inPieces }] of fresh.entries()) {
      const recorded = written.value.decisions[i];
      if (recorded?.fresh === true) metrics.recorded("decisions", 1);
      if (recorded === undefined) continue;
      const keyframe = isWhole ? null : (inPieces?.keyframe ?? null);
      const isRepeated = !recorded.fresh && recorded.again === undefined;
      const earlier = isRepeated ? await store.getDecision(recorded.decisionId) : ok(null);
      const answer = answers.get(ask.key) ?? next;
      const decidedAtMs =
        earlier.ok && earlier.value !== null ? epochMs(earlier.value.decidedAtMs) : answer.decidedAtMs;
      answers.set(ask.key, { ...rowOf({ ...answer, decidedAtMs }, recorded), keyframe });
      // otherwise the decision was recorded before and may no longer be the newest
      if (recorded.fresh || recorded.again !== undefined) newest.set(ask.kind, recorded.decisionId);
    }
    const after = { ...state, answers, newest, unstored: null, keyframe, writtenMs: atMs };
    // another process recorded a decision of the kind meanwhile, so this one is not a repetition
    const lost = ofTurn.filter(({ ask }) => answers.get(ask.key)?.isRow === false);
    if (lost.length === 0) return { state: after, failed: [] };
    return this.#written(after, { ...NOTHING, fresh: lost, recorded: lost }, atMs);
  }

  /** The rows of the pending snapshots, as ranges of texts of the node that the history already has. */
  async #rows({ unstored, keyframe: last }: NodeState, { waited, posted }: TurnAdditions, atMs: EpochMs) {
    const { sha256 } = this.#deps;
    const rows: SnapshotRow[] = [];
    let keyframe = last;
    const waiting = new Map([waited, unstored].flatMap((one) => (one === null ? [] : [[one.id, one]])));
    for (const one of waiting.values()) {
      const own = posted?.id === one.id ? posted : storedForm(one);
      const stored = (keyframe === null ? null : piecesOf(own, keyframe)) ?? (await asKeyframe(own, sha256));
      keyframe = stored.keyframe;
      rows.push(rowInPieces(own, stored.pieces, atMs));
    }
    return { rows, keyframe };
  }
}

/** What a turn adds to the history in addition to its state. */
interface TurnAdditions {
  /** The state's snapshot, if this turn brought it. */
  readonly posted: SegmentedSnapshot | null;
  /** The pending snapshot before the state's. */
  readonly waited: KnownSnapshot | null;
  /** Answers that are no longer the node's last and have an unwritten count. */
  readonly ended: readonly LastAnswer[];
  /** Decisions that are not repetitions. */
  readonly fresh: readonly TurnDecision[];
  /** The recorded decisions among them. */
  readonly recorded: readonly TurnDecision[];
  /** True: texts that ranges refer to are no longer stored, so all texts are whole. */
  readonly isWhole?: boolean;
}
const NOTHING: TurnAdditions = { posted: null, waited: null, ended: [], fresh: [], recorded: [] };
