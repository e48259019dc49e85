import { REMEMBERING } from "../model/asks.ts";
import type { AskOf, Kind } from "../model/decision.ts";
import { type ImageGcFacts, knowsLess } from "../model/image-gc.ts";
import { type DecisionRequest, withFacts } from "./decision-request.ts";
import type { Job } from "./evaluation.ts";
import type { Recollection } from "./remembered.ts";

/** A request with all that the kind needs to know of the node's past. */
export interface FullRequest extends DecisionRequest {
  /** The history goes on from its answer. */
  readonly remembers?: boolean;
  /** The ask as it is kept where the decision did not come to look at the images' records, which are long. */
  readonly askWithoutImages?: string | null;
}

/**
 * Kinds whose posted facts are adopted: a node's daemon may know more of images than a new or emptied history, which goes on
 * from facts that are no less than its own.
 */
const ADOPTS: ReadonlySet<Kind> = new Set<Kind>(["image-gc"]);

/** Null: the history must be asked first. */
export function recollected(request: DecisionRequest, { recollection }: Job): FullRequest | null {
  const { kind, facts } = request;
  if (!REMEMBERING.has(kind) || (facts !== null && !ADOPTS.has(kind))) return request;
  if (recollection === undefined) return null;
  if (facts === null) return fromHistory(request, recollection);
  const known = recollection.facts as ImageGcFacts | null;
  const isEnough = known === null || !knowsLess(facts[kind] as ImageGcFacts, known);
  return { ...request, remembers: recollection.remembers && isEnough };
}

function fromHistory(request: DecisionRequest, { facts, remembers, images }: Recollection): FullRequest {
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
