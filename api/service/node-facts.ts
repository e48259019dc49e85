import type { Store } from "../../db/store.ts";
import { ok, type Result } from "../base/result.ts";
import type { AskOf, Kind } from "../model/decision.ts";
import type { ImageGcFacts } from "../model/image-gc.ts";
import { IMAGE_RECORDS, specOf } from "../model/kinds.ts";
import { orderOf, type PassTime, passTimeOf } from "../model/pass-time.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { NO_NODE } from "./canonical.ts";
import { type DecisionRequest, withFacts } from "./decision-request.ts";
import { historyProblem, type Problem } from "./problem.ts";

/** The facts that the history stores of a node for one kind. */
export interface NodeFacts {
  /** The `next` of the node's last answer. */
  readonly next: unknown;
  /** The time of the snapshot that the answer was for. */
  readonly atMs: number | null;
  /** The boot id of that snapshot: facts from another boot are discarded. */
  readonly bootId: string | null;
}
/**
 * The key of the facts that the last answer was given, for a repeated request. A separate row, because both together may exceed a
 * row's size.
 */
export const beforeKey = (kind: Kind): string => `${kind} before`;
/** The pass of a node that needs the facts. */
export interface Pass {
  readonly kind: Kind;
  readonly node: string;
  /** The time of the pass; null if unknown. */
  readonly time: PassTime | null;
  readonly bootId: string | null;
  /** True: the pass may read the images' records. */
  readonly readsImages: boolean;
}
export const passOf = (kind: Kind, node: string, snapshot: Snapshot): Pass => ({
  kind,
  node,
  time: passTimeOf(snapshot),
  bootId: snapshot.bootId ?? null,
  readsImages: specOf(kind).facts?.readsImages === true && snapshot.runtime !== undefined,
});
/** The facts for a pass. */
export interface FactsBefore {
  /** The facts; null if there are none. */
  readonly facts: unknown;
  /** False: the answer is not the node's newest, or the node is unknown, so its facts are not stored. */
  readonly remembers: boolean;
  /** The `next` of the node's last image-gc decision, for a pass that reads it. */
  readonly images?: unknown;
}

/** Reads the facts for a pass: a repeated pass gets the same facts as before, a late one those from before the last pass. */
export async function readFactsBefore(
  store: Pick<Store, "readFacts">,
  pass: Pass,
): Promise<Result<FactsBefore, Problem>> {
  const { kind, node, readsImages } = pass;
  if (node === NO_NODE) return ok({ facts: null, remembers: false });
  const all = await store.readFacts(node, [kind, beforeKey(kind), ...(readsImages ? [IMAGE_RECORDS] : [])]);
  if (!all.ok) return historyProblem(all.error);
  const own = ownPart(pass, all.value[kind] as NodeFacts | undefined, all.value[beforeKey(kind)]);
  const images = (all.value[IMAGE_RECORDS] as NodeFacts | undefined)?.next;
  return ok(readsImages && images !== undefined ? { ...own, images } : own);
}

function ownPart({ kind, time, bootId }: Pass, known: NodeFacts | undefined, before: unknown): FactsBefore {
  if (known === undefined) return { facts: null, remembers: true };
  const isOtherBoot = bootId !== null && known.bootId !== null && bootId !== known.bootId;
  if (isOtherBoot && specOf(kind).facts?.forgottenAtBoot === true) return { facts: null, remembers: true };
  const order = known.atMs === null || time === null ? "later" : orderOf(time, known.atMs);
  return order === "later"
    ? { facts: known.next, remembers: true }
    : { facts: before ?? null, remembers: order === "again" };
}

/** A request with all the facts about the node that the kind needs. */
export interface FullRequest extends DecisionRequest {
  /** True: the history stores its `next`. */
  readonly remembers?: boolean;
  /** The ask to store if the decision did not read the image records, which are long. */
  readonly askWithoutImages?: string | null;
}

/** `recollection`: absent if the history was not read. */
interface FactsContext {
  readonly recollection?: FactsBefore;
}
/** The request with its facts; null if the history must be read first. */
export function requestWithFacts(request: DecisionRequest, { recollection }: FactsContext): FullRequest | null {
  const { kind, facts } = request;
  const spec = specOf(kind).facts;
  if (spec === null || (facts !== null && spec.knowsLess === undefined)) return request;
  if (recollection === undefined) return null;
  if (facts === null) return fromHistory(request, recollection);
  const { facts: known } = recollection;
  const isEnough = known === null || !spec.knowsLess?.(facts[kind], known);
  return { ...request, remembers: recollection.remembers && isEnough };
}

function fromHistory(request: DecisionRequest, { facts, remembers, images }: FactsBefore): FullRequest {
  const { kind, ask } = request;
  const asked = withFacts(kind, request, facts);
  if (images === undefined || !lacksImages(ask)) return { ...request, ...asked, remembers };
  // from the history, checked when the decision was made
  const knowing = { ...ask, images: images as ImageGcFacts };
  const complete = withFacts(kind, { ask: knowing }, facts);
  return { ...request, ...complete, remembers, askWithoutImages: asked.askText };
}
const lacksImages = (ask: AskOf[Kind]): ask is AskOf["eviction"] =>
  ask !== undefined && "images" in ask && ask.images === null;
