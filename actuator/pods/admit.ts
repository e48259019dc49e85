import type { AdmissionDecision } from "../../api/model/admission.ts";
import type { Victim } from "../../api/model/preemption.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import type { RunnablePod } from "../lifecycle/pod.ts";
import type { DecisionAnswer, DecisionClient, Problem } from "../ports.ts";

/** What the node answers to a pod that wants to come in. */
export type Admitted =
  | { readonly kind: "in"; readonly answer: DecisionAnswer }
  /** It comes in once these are gone. */
  | { readonly kind: "after"; readonly victims: readonly Victim[]; readonly answer: DecisionAnswer }
  | { readonly kind: "refused"; readonly reason: string; readonly message: string; readonly answer: DecisionAnswer };

/** The kubelet does not say who has a host port that is taken. */
function portHolders(reasons: DecisionAnswer["reasons"]): string {
  const taken = reasons.flatMap(({ because }) => because.filter(({ code }) => code === "host_port_taken"));
  return taken
    .map(({ numbers: n = {} }) => `; ${n["by"]} has ${n["protocol"]} port ${n["port"]} of ${n["ip"]}`)
    .join("");
}

/** Asks `admission`, and keeps that it was decided. Errors: no answer at all, so nothing is known and the pod waits. */
export async function admit(
  client: DecisionClient,
  snapshot: unknown,
  pod: RunnablePod,
): Promise<Result<Admitted, Problem>> {
  const asked = await client.decide("admission", snapshot, { pod: pod.object });
  if (!asked.ok) return err(asked.error);
  const answer = asked.value;
  // what is carried out lies in the history, or will: a crash right after it loses nothing
  await client.settle(answer);
  const { admit: isIn, preempt, reason, message, startErrors } = answer.decision as AdmissionDecision;
  if (startErrors.length > 0) {
    return ok({ kind: "refused", reason: "KubeletDoesNotStart", message: startErrors.join("; "), answer });
  }
  if (!isIn) return ok({ kind: "refused", reason, message: `${message}${portHolders(answer.reasons)}`, answer });
  return ok(preempt.length === 0 ? { kind: "in", answer } : { kind: "after", victims: preempt, answer });
}
