import type { Asked, Decided, Refusal } from "../../model/decision.ts";
import type { ImageGcAsk, ImageGcDecision } from "../../model/image-gc.ts";
import { err, type Result } from "../../model/result.ts";

export function decideImageGc(_asked: Asked<ImageGcAsk>): Result<Decided<ImageGcDecision>, Refusal> {
  return err({ code: "needs_input", message: "not built yet", needs: [] });
}
