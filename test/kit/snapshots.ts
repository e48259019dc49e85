import type { InputIssue } from "../../api/base/input-issue.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import type { Snapshot } from "../../api/model/snapshot.ts";
import { node } from "./nodes.ts";

export type Json = Record<string, unknown>;

/** The decoded form; an input that is refused fails the test with its issues. */
export function decoded(input: unknown): Snapshot {
  const result = decodeSnapshot(input);
  if (!result.ok) throw new Error(JSON.stringify(result.error));
  return result.value;
}
/** An input as it is stored. */
export const stored = (input: unknown): string => JSON.stringify(decoded(input));

/** The issues of an input that must be refused. */
export function issues(input: unknown, at?: string): readonly InputIssue[] {
  const result = decodeSnapshot(input, at);
  if (result.ok) throw new Error(`taken: ${JSON.stringify(result.value).slice(0, 300)}`);
  return result.error;
}
export const issuePaths = (input: unknown): readonly string[] => issues(input).map((i) => i.path);

/** As YAML or kubectl gives it: own `__proto__` keys and all. */
export const fromJson = (text: string): unknown => JSON.parse(text) as unknown;

export const many = <T>(n: number, of: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => of(i));

/** A node of 4 CPUs and 8 GiB with cgroup v2 and no pods, and what a test adds. */
export const snapshot = (parts: Json = {}, capacity: Json = {}): Json => ({
  cgroup: { version: 2, driver: "cgroupfs" },
  node: node({ capacity: { cpu: "4", memory: "8Gi", ...capacity } }),
  pods: [],
  ...parts,
});
export const configured = (kubeletConfiguration: Json, parts: Json = {}): Json =>
  snapshot({ kubeletConfiguration, ...parts });
