import type { Kind } from "../api/model/decision.ts";
import type { DecisionAnswer, DecisionClient } from "./ports.ts";
import type { Counters } from "./status/counters.ts";

/** A client whose answers are told and counted, and what waits in it for the API. */
export function toldClient(
  client: DecisionClient,
  counters: Pick<Counters, "decided" | "outbox">,
  onDecision: (kind: Kind, answer: DecisionAnswer) => void = () => {},
): DecisionClient {
  const noteWaiting = (): void => counters.outbox(client.waiting ?? 0);
  // an earlier process may have left some
  noteWaiting();
  return {
    get fault() {
      return client.fault ?? null;
    },
    decide: async (kind, snapshot, ask) => {
      const answer = await client.decide(kind, snapshot, ask);
      noteWaiting();
      if (!answer.ok) return answer;
      counters.decided(kind, answer.value.decidedBy);
      onDecision(kind, answer.value);
      return answer;
    },
    settle: (answer, isTold) => client.settle(answer, isTold).then(noteWaiting),
    report: (report, answer) => client.report(report, answer).then(noteWaiting),
  };
}
