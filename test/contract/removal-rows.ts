import type { DecisionRow, Removal, RemovalQuery, RemovalRow, Removals, ReturnedImage } from "../../db/rows.ts";
import type { Recording, Store } from "../../db/store.ts";
import { decisionRow, fresh, T0, value } from "./store-rows.ts";

export const imageRemoval = (id: string, over: Partial<Removal> = {}): Removal => ({
  target: "image",
  id,
  runtimeHandler: "",
  names: [`registry.example/${id}:1`],
  sizeBytes: 100,
  why: "space",
  end: "removed",
  message: null,
  pod: null,
  container: null,
  ...over,
});
export const containerRemoval = (id: string, over: Partial<Removal> = {}): Removal => ({
  ...imageRemoval(id),
  target: "container",
  names: [],
  sizeBytes: null,
  why: "per-container-limit",
  pod: { namespace: "shop", name: "web-0", uid: "u-web" },
  container: "server",
  ...over,
});
export const cameBack = (id: string, againAtMs: number, runtimeHandler = ""): ReturnedImage => ({
  id,
  runtimeHandler,
  againAtMs,
});

export const pass = (atMs: number, list: readonly Removal[], over: Partial<Removals> = {}): Removals => ({
  kind: "image-gc",
  operation: "garbage-collect",
  atMs,
  removals: list,
  returns: [],
  ...over,
});
export const containerPass = (atMs: number, list: readonly Removal[]): Removals =>
  pass(atMs, list, { kind: "container-gc" });

/** Records a decision of the node that reports a pass, and returns the decision. */
export async function recordPass(
  store: Store,
  node: string,
  reported: Removals,
  over: Partial<Recording> = {},
): Promise<DecisionRow> {
  const decision = decisionRow({ id: fresh("decision"), kind: reported.kind, node, decidedAtMs: reported.atMs });
  value(await store.record({ decision, removals: reported, ...over }));
  return decision;
}

export const rowsOf = async (store: Store, query: Partial<RemovalQuery> & { node: string }): Promise<RemovalRow[]> => [
  ...value(await store.listRemovals({ limit: 500, ...query })).items,
];
export const idsOf = async (store: Store, query: Partial<RemovalQuery> & { node: string }): Promise<string[]> =>
  (await rowsOf(store, query)).map(({ id }) => id);
export const MINUTE = 60_000;
export const timeOf = (minutes: number): number => T0 + minutes * MINUTE;
