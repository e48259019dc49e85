import { REMEMBERING } from "../api/model/asks.ts";
import type { Kind } from "../api/model/decision.ts";
import type { ImageGcFacts } from "../api/model/image-gc.ts";
import { knowsLess } from "../api/model/knows-less.ts";
import { err, map, ok, type Result } from "../api/model/result.ts";
import { type ApiAccess, type ApiFailure, postJson } from "./api-access.ts";
import { decideHere } from "./decide-here.ts";
import { factsOf, type Memory } from "./memory.ts";
import type { Outbox, Pending } from "./outbox.ts";
import type { DecisionAnswer, DecisionClient, Problem, ResultsReport } from "./ports.ts";

/** A pass reports once on its decision, and a report that is sent again must be the same one. */
const ONLY_REPORT = 1;
/** Entries sent in one pass, so that a long absence does not hold up the present. */
const DRAIN_PER_PASS = 50;

/** Without an API every decision is made here and nothing is kept for later but what the next one is to be told. */
export function localClient(memory: Memory): DecisionClient {
  const asked = new WeakMap<DecisionAnswer, Asked>();
  return {
    decide: async (kind, snapshot, ask) => {
      const here = decideWith(memory, kind, snapshot, ask);
      if (here.ok) asked.set(here.value, { kind, snapshot });
      return here;
    },
    settle: async (answer) => keepNext(memory, answer, asked.get(answer)),
    report: async () => {},
  };
}

type Asked = Omit<Pending, "report"> & {
  /** The API takes no body of that size, now or later. */
  readonly isTooLarge?: boolean;
};

function decideWith(memory: Memory, kind: Kind, snapshot: unknown, ask: object | undefined) {
  const facts = factsOf(kind, memory.factsFor(kind, snapshot));
  // what the API looks up for it as well: which images are old enough to be reclaimed
  const images = kind === "eviction" ? memory.factsFor("image-gc", snapshot) : undefined;
  return decideHere(kind, snapshot, { ask: images === undefined ? ask : { ...ask, images }, facts });
}

function keepNext(memory: Memory, { next }: DecisionAnswer, asked: Asked | undefined): void {
  if (asked !== undefined) memory.keep(asked.kind, asked.snapshot, next);
}

/** Asks the API; when it does not answer, decides here with the same core and sends both later. One call at a time. */
export class ApiClient implements DecisionClient {
  readonly #access: ApiAccess;
  readonly #outbox: Outbox;
  readonly #memory: Memory;
  readonly #onProblem: (problem: Problem) => void;
  /** Answers with what they answer. */
  readonly #asked = new WeakMap<DecisionAnswer, Asked>();
  /** Kinds of which the API missed something for good: it is told what is remembered of them. */
  readonly #unrecorded = new Set<Kind>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(access: ApiAccess, outbox: Outbox, memory: Memory, onProblem: (problem: Problem) => void) {
    this.#access = access;
    this.#outbox = outbox;
    this.#memory = memory;
    this.#onProblem = onProblem;
  }

  decide(kind: Kind, snapshot: unknown, ask?: object): Promise<Result<DecisionAnswer, Problem>> {
    return this.#inTurn(() => this.#decide(kind, snapshot, ask));
  }

  settle(answer: DecisionAnswer, isTold = true): Promise<void> {
    return this.#inTurn(async () => {
      const asked = this.#asked.get(answer);
      // in this order: what is remembered here is known to the API, or will be
      if (asked !== undefined && answer.decidedBy === "here" && isTold) this.#keep(asked, null);
      keepNext(this.#memory, answer, asked);
    });
  }

  report(report: Omit<ResultsReport, "decisionId" | "seq">, answer: DecisionAnswer): Promise<void> {
    return this.#inTurn(async () => {
      const asked = this.#asked.get(answer);
      if (asked !== undefined && answer.decidedBy === "here") return this.#keep(asked, report);
      if (answer.id === null) return;
      const sent = await this.#send(answer.id, report);
      if (!sent.ok) this.#onProblem({ from: "api", message: `results of ${answer.id}: ${sent.error.message}` });
    });
  }

  /** Two passes may run side by side; what the API is told of them has one order. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => {});
    return turn;
  }

  #keep({ isTooLarge = false, ...asked }: Asked, report: Pending["report"]): void {
    // told as a problem when it was refused; it would only be refused again
    if (isTooLarge) return;
    try {
      this.#outbox.add({ ...asked, report });
    } catch (e) {
      this.#onProblem({ from: "api", message: `what is to be sent later cannot be kept: ${(e as Error).message}` });
    }
  }

  /** INVARIANT: a kind that remembers is asked only when the API knows all that was before. */
  async #decide(kind: Kind, snapshot: unknown, ask: object | undefined): Promise<Result<DecisionAnswer, Problem>> {
    const away = await this.#drain();
    const isBehind = this.#outbox.size > 0 && REMEMBERING.has(kind);
    const asked = away === null && !isBehind ? await this.#askKnowing(kind, snapshot, ask) : null;
    if (asked?.ok) return this.#noted(asked, kind, snapshot, ask);
    const failure = asked?.error ?? away;
    if (failure?.tooLargeBytes !== undefined) return this.#decideUnrecorded(failure, kind, snapshot, ask);
    if (failure?.final === true) return err({ from: "decision", message: failure.message });
    if (failure !== null) this.#onProblem({ from: "api", message: `${failure.message}: deciding here` });
    return this.#noted(decideWith(this.#memory, kind, snapshot, ask), kind, snapshot, ask);
  }

  /** INVARIANT: what is too large to be told never keeps the node from deciding. */
  #decideUnrecorded(
    { message, tooLargeBytes }: ApiFailure,
    kind: Kind,
    snapshot: unknown,
    ask: object | undefined,
  ): Result<DecisionAnswer, Problem> {
    const words = `the body of ${tooLargeBytes} bytes is too large for the API: deciding here, and it is recorded nowhere; raise its limit (nodewise serve --max-body-bytes)`;
    this.#onProblem({ from: "api", message: `${message}: ${words}` });
    this.#unrecorded.add(kind);
    const here = decideWith(this.#memory, kind, snapshot, ask);
    if (here.ok) this.#asked.set(here.value, { kind, snapshot, isTooLarge: true });
    return here;
  }

  #noted(
    answer: Result<DecisionAnswer, Problem>,
    kind: Kind,
    snapshot: unknown,
    ask: object | undefined,
  ): Result<DecisionAnswer, Problem> {
    if (answer.ok) this.#asked.set(answer.value, { kind, snapshot, ...(ask === undefined ? {} : { ask }) });
    return answer;
  }

  /** An API that remembers less than this node is told what the node remembers. */
  async #askKnowing(
    kind: Kind,
    snapshot: unknown,
    ask: object | undefined,
  ): Promise<Result<DecisionAnswer, ApiFailure>> {
    const facts = REMEMBERING.has(kind) ? this.#memory.factsFor(kind, snapshot) : undefined;
    if (facts !== undefined && this.#unrecorded.has(kind)) {
      const told = await this.#ask(kind, snapshot, { ...ask, facts });
      if (told.ok) this.#unrecorded.delete(kind);
      return told;
    }
    const asked = await this.#ask(kind, snapshot, ask);
    if (!asked.ok || facts === undefined || kind !== "image-gc") return asked;
    const isForgetful = knowsLess(asked.value.next as ImageGcFacts, facts as ImageGcFacts);
    return isForgetful ? this.#ask(kind, snapshot, { ...ask, facts }) : asked;
  }

  async #ask(kind: Kind, snapshot: unknown, ask: object | undefined): Promise<Result<DecisionAnswer, ApiFailure>> {
    const body = ask === undefined ? { snapshot } : { snapshot, ask };
    const reply = await postJson(this.#access, `/v1/decisions/${kind}`, body);
    return map(reply, (answer) => {
      const { id, decision, verdict, reasons, needs, next } = answer as unknown as DecisionAnswer;
      return { id, decidedBy: "api", decision, verdict, reasons: reasons ?? [], needs: needs ?? [], next };
    });
  }

  #send(decisionId: string, report: Omit<ResultsReport, "decisionId" | "seq">): Promise<Result<unknown, ApiFailure>> {
    const body = { ...report, decisionId, seq: ONLY_REPORT } satisfies ResultsReport;
    return postJson(this.#access, "/v1/results", body);
  }

  /** Sends what was kept, oldest first; an entry that the API will never take is dropped and named. Answers why it is away. */
  async #drain(): Promise<ApiFailure | null> {
    for (let i = 0; i < DRAIN_PER_PASS; i++) {
      const pending = this.#outbox.first();
      if (pending === undefined) return null;
      const sent = await this.#sendPending(pending);
      if (!sent.ok && !sent.error.final) return sent.error;
      if (!sent.ok)
        this.#onProblem({ from: "api", message: `a decision made earlier is not taken: ${sent.error.message}` });
      this.#outbox.shift();
    }
    return null;
  }

  async #sendPending({ kind, snapshot, ask, report }: Pending): Promise<Result<unknown, ApiFailure>> {
    const asked = await this.#ask(kind, snapshot, ask);
    if (!asked.ok || asked.value.id === null || report === null) return asked;
    const sent = await this.#send(asked.value.id, report);
    return sent.ok || sent.error.final ? ok(null) : sent;
  }
}
