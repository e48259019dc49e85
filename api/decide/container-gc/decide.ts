import type { ContainerGcAsk, ContainerGcDecision } from "../../model/container-gc.ts";
import type { Asked, Decided, Refusal } from "../../model/decision.ts";
import { err, type Result } from "../../model/result.ts";

export function decideContainerGc(_asked: Asked<ContainerGcAsk>): Result<Decided<ContainerGcDecision>, Refusal> {
  return err({ code: "needs_input", message: "not built yet", needs: [] });
}
