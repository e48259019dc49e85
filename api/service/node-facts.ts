import type { Store } from "../../db/store.ts";
import type { AskOf, Kind } from "../model/decision.ts";
import type { ImageGcFacts } from "../model/image-gc.ts";
import { IMAGE_RECORDS, specOf } from "../model/kinds.ts";
import { orderOf, type PassTime, passTimeOf } from "../model/pass-time.ts";
import { ok, type Result } from "../model/result.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { NO_NODE } from "./canonical.ts";
import { type DecisionRequest, withFacts } from "./decision-request.ts";
import { historyProblem, type Problem } from "./problem.ts";

/** The history's memory of a node for one kind. */
export interface NodeFacts {
  /** The `next` of its last answer. */
  readonly next: unknown;
  /** The time of the snapshot that it was an answer to. */
  readonly atMs: number | null;
  /** The boot id of that snapshot: what was remembered of another boot is forgotten. */
  readonly bootId: string | null;
}
/** Beside it, because both together may be more than a row takes: what that answer was given, for a request that comes again. */
export const beforeKey = (kind: Kind): string => `${kind} before`;
/** The pass of a node that needs the facts. */
export interface Pass {
  readonly kind: Kind;
  readonly node: string;
  /** The time of the pass; null: not known. */
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
  /** The facts; null: nothing is remembered. */
  readonly facts: unknown;
  /** False: its answer is not the node's last, or its node is not known, so it is not remembered. */
  readonly remembers: boolean;
  /** The `next` of the node's last image-gc, for a pass that reads it. */
  readonly images?: unknown;
}

/**
 * Reads the facts for a pass: a repeated pass gets the same facts as before, a late one those from before the last
 * pass.
 */
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

/** A request with all that the kind needs to know of the node's past. */
export interface FullRequest extends DecisionRequest {
  /** True: the history stores its `next`. */
  readonly remembers?: boolean;
  /** The ask as it is kept where the decision did not come to look at the images' records, which are long. */
  readonly askWithoutImages?: string | null;
}

/** `recollection`: absent, where the history was not asked. */
interface Asking {
  readonly recollection?: FactsBefore;
}
/** The request with its facts; null: the history must be asked first. */
export function recollected(request: DecisionRequest, { recollection }: Asking): FullRequest | null {
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
  // the history's own, checked when it was decided
  const knowing = { ...ask, images: images as ImageGcFacts };
  const complete = withFacts(kind, { ask: knowing }, facts);
  return { ...request, ...complete, remembers, askWithoutImages: asked.askText };
}
const lacksImages = (ask: AskOf[Kind]): ask is AskOf["eviction"] =>
  ask !== undefined && "images" in ask && ask.images === null;
