import type { AskOf, Kind } from "../model/decision.ts";
import type { ImageGcFacts } from "../model/image-gc.ts";
import { specOf } from "../model/kinds.ts";
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

/** Null: the history must be asked first. */
export function recollected(request: DecisionRequest, { recollection }: Job): FullRequest | null {
  const { kind, facts } = request;
  const spec = specOf(kind).facts;
  if (spec === null || (facts !== null && spec.knowsLess === undefined)) return request;
  if (recollection === undefined) return null;
  if (facts === null) return fromHistory(request, recollection);
  const { facts: known } = recollection;
  const isEnough = known === null || !spec.knowsLess?.(facts[kind], known);
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
