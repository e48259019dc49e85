import { REMEMBERING } from "../api/model/asks.ts";
import type { Kind } from "../api/model/decision.ts";
import type { ImageGcFacts } from "../api/model/image-gc-facts.ts";
import { knowsLess } from "../api/model/knows-less.ts";
import { err, type Result } from "../api/model/result.ts";
import { checkAnswer } from "./answer-check.ts";
import { type ApiAccess, type ApiFailure, postJson } from "./api-access.ts";
import { Backlog, nonsense, sendReport } from "./backlog.ts";
import { type Asked, decideWith, keepNext } from "./local-client.ts";
import type { Memory } from "./memory.ts";
import type { Outbox, Pending } from "./outbox.ts";
import type { DecisionAnswer, DecisionClient, Problem, ResultsReport } from "./ports.ts";
import { toldAsk, toldSnapshot } from "./told-snapshot.ts";

/** An API that gave no answer in time is left alone for so many times that time: decisions do not wait for it each time. */
const REST_TIMES = 3;

/** Asks the API; when it does not answer, decides here with the same core and sends both later. One call at a time. */
export class ApiClient implements DecisionClient {
  readonly #access: ApiAccess;
  readonly #outbox: Outbox;
  readonly #backlog: Backlog;
  readonly #memory: Memory;
  readonly #onProblem: (problem: Problem) => void;
  /** Of the last request that failed, until one does not. */
  fault: Problem | null = null;
  /** Answers with what they answer. */
  readonly #asked = new WeakMap<DecisionAnswer, Asked>();
  /** Kinds of which the API missed something for good: it is told what is remembered of them. */
  readonly #unrecorded = new Set<Kind>();
  /** Until then it is not asked. */
  #restsUntilMs = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(access: ApiAccess, outbox: Outbox, memory: Memory, onProblem: (problem: Problem) => void) {
    this.#access = access;
    this.#outbox = outbox;
    this.#backlog = new Backlog(access, outbox, onProblem);
    this.#memory = memory;
    this.#onProblem = onProblem;
  }

  get waiting(): number {
    return this.#outbox.size;
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
      const sent = await sendReport(this.#access, answer.id, report);
      if (sent.ok) return;
      this.#fail(`results of ${answer.id}: ${sent.error.message}`);
      // asked again it is the same decision, and so the same record
      if (!sent.error.final && asked !== undefined) this.#keep(asked, report);
    });
  }

  #fail(message: string): void {
    this.fault = { from: "api", message };
    this.#onProblem(this.fault);
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
      const { kind, snapshot, ask } = asked;
      this.#outbox.add({
        kind,
        snapshot: toldSnapshot(snapshot),
        ...(ask === undefined ? {} : { ask: toldAsk(ask) }),
        report,
      });
    } catch (e) {
      this.#onProblem({ from: "api", message: `what is to be sent later cannot be kept: ${(e as Error).message}` });
    }
  }

  /** INVARIANT: a kind that remembers is asked only when the API knows all that was before. */
  async #decide(kind: Kind, snapshot: unknown, ask: object | undefined): Promise<Result<DecisionAnswer, Problem>> {
    if (performance.now() < this.#restsUntilMs)
      return this.#noted(decideWith(this.#memory, kind, snapshot, ask), kind, snapshot, ask);
    const away = await this.#backlog.drain();
    const isBehind = this.#outbox.size > 0 && REMEMBERING.has(kind);
    const asked = away === null && !isBehind ? await this.#askKnowing(kind, snapshot, ask) : null;
    if (asked?.ok) {
      this.fault = null;
      return this.#noted(asked, kind, snapshot, ask);
    }
    const failure = asked?.error ?? away;
    if (failure?.tooLargeBytes !== undefined) return this.#decideUnrecorded(failure, kind, snapshot, ask);
    if (failure?.final === true) return err({ from: "decision", message: failure.message });
    if (failure?.isSlow === true) this.#restsUntilMs = performance.now() + REST_TIMES * this.#access.timeoutMs;
    if (failure !== null) this.#fail(`${failure.message}: deciding here`);
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
    this.#fail(`${message}: ${words}`);
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
    const told = toldSnapshot(snapshot);
    const body = ask === undefined ? { snapshot: told } : { snapshot: told, ask: toldAsk(ask) };
    const reply = await postJson(this.#access, `/v1/decisions/${kind}`, body);
    if (!reply.ok) return reply;
    const answer = checkAnswer(kind, snapshot, reply.value, ask);
    return answer.ok ? answer : nonsense(this.#access, kind, answer.error);
  }
}
