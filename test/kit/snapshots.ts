import type { InputIssue } from "../../api/base/input-issue.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import type { Snapshot } from "../../api/model/snapshot.ts";
import { node } from "./nodes.ts";

export type Json = Record<string, unknown>;

/** The decoded form; throws with the issues if the input is invalid. */
export function decoded(input: unknown): Snapshot {
  const result = decodeSnapshot(input);
  if (!result.ok) throw new Error(JSON.stringify(result.error));
  return result.value;
}
/** An input in its stored form. */
export const stored = (input: unknown): string => JSON.stringify(decoded(input));

/** The issues of an invalid input; throws if the input is valid. */
export function issues(input: unknown, at?: string): readonly InputIssue[] {
  const result = decodeSnapshot(input, at);
  if (result.ok) throw new Error(`taken: ${JSON.stringify(result.value).slice(0, 300)}`);
  return result.error;
}
export const issuePaths = (input: unknown): readonly string[] => issues(input).map((i) => i.path);

/** Parses a text as YAML or kubectl does, including own `__proto__` keys. */
export const fromJson = (text: string): unknown => JSON.parse(text) as unknown;

export const many = <T>(n: number, of: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => of(i));

/** A node with 4 CPUs, 8 GiB, cgroup v2 and no pods, and the parts that a test adds. */
export const snapshot = (parts: Json = {}, capacity: Json = {}): Json => ({
  cgroup: { version: 2, driver: "cgroupfs" },
  node: node({ capacity: { cpu: "4", memory: "8Gi", ...capacity } }),
  pods: [],
  ...parts,
});
export const configured = (kubeletConfiguration: Json, parts: Json = {}): Json =>
  snapshot({ kubeletConfiguration, ...parts });
