import type { Result } from "../../api/model/result.ts";
import type { StoreFailure } from "../../db/failure.ts";
import type { DecisionRow, SnapshotRow } from "../../db/rows.ts";
import type { ResultRow, Store } from "../../db/store.ts";

/** A store under test: empty and migrated, with a back door for damage that the store itself would never do. */
export interface StoreSubject {
  readonly store: Store;
  readonly damage: (sql: string) => Promise<void>;
  readonly dispose: () => Promise<void>;
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
  policyVersion: "kubelet-1.36.3+1",
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

/** JSON that gzip can do nothing with: hexadecimal digits of a fixed generator, half of whose entropy stays. */
export function noise(bytes: number): string {
  let state = 0x9e3779b9;
  const words: string[] = [];
  for (let left = bytes; left > 0; left -= 8) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words.push((state >>> 0).toString(16).padStart(8, "0"));
  }
  return JSON.stringify(words.join(""));
}
