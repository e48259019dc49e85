import type { Kind } from "../api/model/decision.ts";
import { err, type Result } from "../api/model/result.ts";
import { checkId } from "./answer-check.ts";
import { type ApiAccess, type ApiFailure, isReady, postJson } from "./api-access.ts";
import type { Outbox, Pending } from "./outbox.ts";
import type { Problem, ResultsReport } from "./ports.ts";
import { toldAsk, toldSnapshot } from "./told-snapshot.ts";

/** A pass reports once on its decision, and a report that is sent again must be the same one. */
const ONLY_REPORT = 1;
/** Entries sent in one pass, so that a long absence does not hold up the present. */
const DRAIN_PER_PASS = 50;
/** How often one entry is sent to an API that has no answer to it. */
const MOST_TRIES = 5;

/** What came of a decision that the API knows. */
export function sendReport(
  access: ApiAccess,
  decisionId: string,
  report: Omit<ResultsReport, "decisionId" | "seq">,
): Promise<Result<unknown, ApiFailure>> {
  const body = { ...report, decisionId, seq: ONLY_REPORT } satisfies ResultsReport;
  return postJson(access, "/v1/results", body);
}

/** A decision that is not carried out. The next version of that API may answer better. */
export function nonsense({ url }: ApiAccess, kind: Kind, fault: string): Result<never, ApiFailure> {
  return err({
    message: `${url}/v1/decisions/${kind} answered what is no decision of this node: ${fault}`,
    final: false,
  });
}

/** Sends what an outbox kept while the API was away. */
export class Backlog {
  readonly #access: ApiAccess;
  readonly #outbox: Outbox;
  readonly #onProblem: (problem: Problem) => void;
  /** Of the oldest entry, in a row, without an answer. */
  #tries = 0;

  constructor(access: ApiAccess, outbox: Outbox, onProblem: (problem: Problem) => void) {
    this.#access = access;
    this.#outbox = outbox;
    this.#onProblem = onProblem;
  }

  /** Oldest first; an entry that the API will never take is dropped and named. Answers why the API is away; null: it is not. */
  async drain(): Promise<ApiFailure | null> {
    for (let i = 0; i < DRAIN_PER_PASS; i++) {
      const pending = this.#outbox.first();
      if (pending === undefined) return null;
      const sent = await this.#send(pending);
      if (!sent.ok && !sent.error.final && !(await this.#isStuck(sent.error))) return sent.error;
      if (!sent.ok)
        this.#onProblem({ from: "api", message: `a decision made earlier is not taken: ${sent.error.message}` });
      this.#tries = 0;
      this.#outbox.shift();
    }
    return null;
  }

  /** One entry must not keep all others back for ever, where the API is well and has no answer to this one. */
  async #isStuck({ isStuck }: ApiFailure): Promise<boolean> {
    this.#tries = isStuck === true ? this.#tries + 1 : 0;
    if (this.#tries < MOST_TRIES) return false;
    this.#tries = 0;
    return isReady(this.#access);
  }

  async #send({ kind, snapshot, ask, report }: Pending): Promise<Result<unknown, ApiFailure>> {
    // an older daemon kept them whole
    const told = toldSnapshot(snapshot);
    const body = ask === undefined ? { snapshot: told } : { snapshot: told, ask: toldAsk(ask) };
    const reply = await postJson(this.#access, `/v1/decisions/${kind}`, body);
    if (!reply.ok) return reply;
    // what was decided then was carried out then: only the record's name is wanted
    const id = checkId(reply.value);
    if (!id.ok) return nonsense(this.#access, kind, id.error);
    if (id.value === null || report === null) return id;
    return sendReport(this.#access, id.value, report);
  }
}
