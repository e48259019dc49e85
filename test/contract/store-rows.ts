import { hex } from "../../api/base/hex.ts";
import type { Result } from "../../api/base/result.ts";
import type { StoreFailure } from "../../db/failure.ts";
import type { DecisionRow, SnapshotRow } from "../../db/rows.ts";
import type { ResultRow, Store } from "../../db/store.ts";

/** A store under test, which is empty and migrated. */
export interface StoreSubject {
  readonly store: Store;
  readonly backDoor: StoreBackDoor;
  /** A second store, for exports and imports. */
  readonly another: Store;
  readonly dispose: () => Promise<void>;
}

/**
 * Changes to stored rows that the store itself never makes, or makes only after a long time. Each implementation
 * provides them.
 */
export interface StoreBackDoor {
  /** Replaces a decision's body by bytes that cannot be decoded. */
  spoilBody(decisionId: string): Promise<void>;
  /** Stores a fact of the node whose value is not valid JSON. */
  spoilFact(node: string): Promise<void>;
  /** Removes all texts that rows share, but not the rows. */
  loseSharedTexts(): Promise<void>;
  /** Makes the database report that its migrations are missing. */
  loseMigrations(): Promise<void>;
  /** Undoes `loseMigrations`. */
  restoreMigrations(): Promise<void>;
  /** Removes the record of earlier sweeps. */
  forgetSweeps(): Promise<void>;
  /** Runs the statement with which an operator confirms that the clock is right. */
  confirmSweep(): Promise<void>;
  setLastSweep(atMs: number): Promise<void>;
  removeDecisions(node: string): Promise<void>;
  /**
   * Stores `each` snapshots of each of `nodes` nodes, a minute apart, and a decision on each snapshot. Number N is
   * about node `PREFIX-(N modulo nodes)`; the ids are `PREFIX-s-N` and `PREFIX-d-N`.
   */
  insertMany(rows: ManyRows): Promise<void>;
}
export interface ManyRows {
  readonly prefix: string;
  readonly nodes: number;
  readonly each: number;
  readonly fromMs: number;
}

/** The value of a result; a failure throws its message. */
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
  // each row has its own version, since it would otherwise be the same decision again
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

/**
 * The generator's state, and the digits generated so far: generating a megabyte for each row would take a tenth of a
 * second.
 */
let [state, digits] = [0x9e3779b9, ""];
/** JSON that gzip cannot compress below half: hexadecimal digits of a fixed generator. */
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
