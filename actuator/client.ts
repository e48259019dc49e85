import type { Kind } from "../api/model/decision.ts";
import { err, ok, type Result } from "../api/model/result.ts";
import { decideHere } from "./decide-here.ts";
import type { Outbox } from "./outbox.ts";
import type { DecisionAnswer, DecisionClient, Problem, ResultsReport } from "./ports.ts";

export interface ApiAccess {
  /** Where the API is, without a trailing slash. */
  readonly url: string;
  readonly token: string | undefined;
  readonly timeoutMs: number;
  /** The platform's `fetch`, or an app's own in the same process. */
  readonly fetch: (request: Request) => Promise<Response>;
}

/** A pass reports once on its decision, and a report that is sent again must be the same one. */
const ONLY_REPORT = 1;
/** Entries sent in one pass, so that a long absence does not hold up the present. */
const DRAIN_PER_PASS = 50;

/** Without an API every decision is made here and nothing is kept for later. */
export const localClient: DecisionClient = {
  decide: async (kind, snapshot) => decideHere(kind, snapshot),
  report: async () => {},
};

/** Asks the API; when it does not answer, decides here with the same core and sends both later. */
export class ApiClient implements DecisionClient {
  readonly #access: ApiAccess;
  readonly #outbox: Outbox;
  readonly #onProblem: (problem: Problem) => void;
  /** Snapshots of answers that were decided here, to be sent with their report. */
  readonly #unsent = new WeakMap<DecisionAnswer, { kind: Kind; snapshot: unknown }>();

  constructor(access: ApiAccess, outbox: Outbox, onProblem: (problem: Problem) => void) {
    this.#access = access;
    this.#outbox = outbox;
    this.#onProblem = onProblem;
  }

  async decide(kind: Kind, snapshot: unknown): Promise<Result<DecisionAnswer, Problem>> {
    const asked = await this.#ask(kind, snapshot);
    if (asked.ok) {
      await this.#drain();
      return asked;
    }
    if (asked.error.final) return err({ from: "decision", message: asked.error.message });
    this.#onProblem({ from: "api", message: `${asked.error.message}: deciding here` });
    const here = decideHere(kind, snapshot);
    if (here.ok) this.#unsent.set(here.value, { kind, snapshot });
    return here;
  }

  async report(report: Omit<ResultsReport, "decisionId" | "seq">, answer: DecisionAnswer): Promise<void> {
    const unsent = this.#unsent.get(answer);
    if (unsent !== undefined) return this.#outbox.add({ ...unsent, report });
    if (answer.id === null) return;
    const sent = await this.#send(answer.id, report);
    if (!sent.ok) this.#onProblem({ from: "api", message: `results of ${answer.id}: ${sent.error.message}` });
  }

  async #ask(kind: Kind, snapshot: unknown): Promise<Result<DecisionAnswer, ApiFailure>> {
    const reply = await this.#post(`/v1/decisions/${kind}`, { snapshot });
    if (!reply.ok) return reply;
    const { id, decision, needs } = reply.value as { id: string; decision: unknown; needs?: string[] };
    return ok({ id, decidedBy: "api", decision, needs: needs ?? [] });
  }

  async #send(
    decisionId: string,
    report: Omit<ResultsReport, "decisionId" | "seq">,
  ): Promise<Result<unknown, ApiFailure>> {
    return this.#post("/v1/results", { ...report, decisionId, seq: ONLY_REPORT } satisfies ResultsReport);
  }

  /** Sends what was kept, oldest first; an entry that the API will never take is dropped and named. */
  async #drain(): Promise<void> {
    for (let i = 0; i < DRAIN_PER_PASS; i++) {
      const pending = this.#outbox.first();
      if (pending === undefined) return;
      const asked = await this.#ask(pending.kind, pending.snapshot);
      if (!asked.ok && !asked.error.final) return;
      if (asked.ok && asked.value.id !== null && pending.report !== null) {
        const sent = await this.#send(asked.value.id, pending.report);
        if (!sent.ok && !sent.error.final) return;
      }
      if (!asked.ok)
        this.#onProblem({ from: "api", message: `a decision made earlier is not taken: ${asked.error.message}` });
      this.#outbox.shift();
    }
  }

  async #post(path: string, body: unknown): Promise<Result<unknown, ApiFailure>> {
    const { url, token, timeoutMs, fetch } = this.#access;
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
    try {
      const signal = AbortSignal.timeout(timeoutMs);
      const response = await fetch(
        new Request(url + path, { method: "POST", headers, body: JSON.stringify(body), signal }),
      );
      const reply = (await response.json().catch(() => ({}))) as Record<string, unknown>;
      if (response.ok) return ok(reply);
      const message =
        `${url}${path} answered ${response.status} ${String(reply["code"] ?? "")} ${String(reply["detail"] ?? "")}`.trimEnd();
      return err({ message, final: isFinal(response.status) });
    } catch (e) {
      return err({ message: `${url}${path} does not answer (${reason(e)})`, final: false });
    }
  }
}

interface ApiFailure {
  readonly message: string;
  /** Asking again with the same input gives the same answer. */
  readonly final: boolean;
}
/** A wrong or missing token is mended by a person, and too many requests by time: those are asked again. */
const isFinal = (status: number): boolean => status >= 400 && status < 500 && ![401, 403, 408, 429].includes(status);
function reason(e: unknown): string {
  const cause = (e as { cause?: { code?: string } }).cause?.code;
  return cause ?? (e as Error).name;
}
