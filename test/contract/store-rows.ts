import { hex } from "../../api/base/hex.ts";
import type { Result } from "../../api/base/result.ts";
import type { StoreFailure } from "../../db/failure.ts";
import type { DecisionRow, SnapshotRow } from "../../db/rows.ts";
import type { ResultRow, Store } from "../../db/store.ts";

/** A store under test: empty and migrated. */
export interface StoreSubject {
  readonly store: Store;
  readonly backDoor: StoreBackDoor;
  /** A second one, to and from which histories move. */
  readonly another: Store;
  readonly dispose: () => Promise<void>;
}

/** Changes of the stored rows that the store itself would never make, or would need long for. Each implementation says how it makes them. */
export interface StoreBackDoor {
  /** Puts bytes in the place of a decision's body from which no body can be read. */
  spoilBody(decisionId: string): Promise<void>;
  /** Stores a fact of the node whose value is not JSON. */
  spoilFact(node: string): Promise<void>;
  /** Removes all texts that rows share, and leaves the rows. */
  loseSharedTexts(): Promise<void>;
  /** Makes the database say that it lacks the migrations that it has. */
  loseMigrations(): Promise<void>;
  /** Undoes `loseMigrations`. */
  restoreMigrations(): Promise<void>;
  /** Removes what is known of earlier sweeps. */
  forgetSweeps(): Promise<void>;
  /** Runs the statement by which an operator says that the clock is right. */
  confirmSweep(): Promise<void>;
  setLastSweep(atMs: number): Promise<void>;
  removeDecisions(node: string): Promise<void>;
  /**
   * Stores `each` snapshots of each of so many nodes, a minute apart, and a decision on each. Number N is about node
   * `PREFIX-(N modulo nodes)`; the ids are `PREFIX-s-N` and `PREFIX-d-N`.
   */
  insertMany(rows: ManyRows): Promise<void>;
}
export interface ManyRows {
  readonly prefix: string;
  readonly nodes: number;
  readonly each: number;
  readonly fromMs: number;
}

/** The value of an answer; fails the test with the failure's message otherwise. */
export function value<T>(answer: Result<T, StoreFailure>): T {
  if (!answer.ok) throw new Error(`${answer.error.code}: ${answer.error.message}`);
  return answer.value;
}

export const T0 = 1_790_000_000_000;

let counter = 0;
/** A name that no other test of the process uses, so that tests can share a database. */
export const fresh = (prefix: string): string => `${prefix}-${++counter}`;

export const decisionRow = (over: Partial<DecisionRow> = {}): DecisionRow => ({
  id: fresh("decision"),
  kind: "cgroups",
  node: "node-of-nobody",
  snapshotId: null,
  // each its own, else it would be the same decision again
  policyVersion: `kubelet-1.36.3+${++counter}`,
  verdict: "planned",
  reason: null,
  explain: "reasons",
  decidedAtMs: T0,
  pod: null,
  ask: null,
  body: '{"decision":{},"reasons":[],"needs":[],"next":null}',
  ...over,
});
export const snapshotRow = (over: Partial<SnapshotRow> = {}): SnapshotRow => ({
  id: fresh("snapshot"),
  node: "node-of-nobody",
  observedAtMs: T0,
  sequence: 1,
  bootId: "boot-a",
  storedAtMs: T0,
  body: '{"node":{}}',
  ...over,
});
export const resultRow = (over: Partial<ResultRow> = {}): ResultRow => ({
  id: fresh("result"),
  seq: 1,
  okCount: 3,
  failedCount: 0,
  atMs: T0,
  body: '[{"path":"cpu.shares","ok":true}]',
  ...over,
});

/** The eight hexadecimal digits of a 32-bit word. */
export const hex32 = (word: number): string => hex([24, 16, 8, 0].map((bits) => (word >>> bits) & 0xff));

/** The generator, and what it has made so far: making a megabyte anew for each row takes a tenth of a second. */
let [state, digits] = [0x9e3779b9, ""];
/** JSON that gzip can do nothing with: hexadecimal digits of a fixed generator, half of whose entropy stays. */
export function noise(bytes: number): string {
  const words = [digits];
  for (let left = bytes - digits.length; left > 0; left -= 8) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words.push(hex32(state));
  }
  digits = words.join("");
  return JSON.stringify(digits.slice(0, 8 * Math.ceil(bytes / 8)));
}
