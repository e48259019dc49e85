import type { Asked, Refusal } from "../../model/decision.ts";
import type { ImageGcAsk } from "../../model/image-gc.ts";
import { map, ok, type Result } from "../../model/result.ts";
import { decideContainerGc } from "../container-gc/decide.ts";

const NONE: ReadonlySet<string> = new Set();

/** Ids of the containers that a `container-gc` of the same operation would remove first; none, where that is not asked. */
export function containersGone({ snapshot, facts, ask }: Asked<ImageGcAsk>): Result<ReadonlySet<string>, Refusal> {
  if (!ask.afterContainerGc) return ok(NONE);
  const { operation } = ask;
  return map(decideContainerGc({ snapshot, facts, ask: { operation, done: null }, explain: "off" }), ({ decision }) => {
    return new Set(decision.remove.filter((r) => r.target === "container").map((r) => r.id));
  });
}
