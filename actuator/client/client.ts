import * as z from "zod";
import { perObject } from "../../api/base/cache.ts";
import { withoutNulls } from "../../api/base/nulls.ts";
import { type Fields, isObject } from "../../api/base/own.ts";
import { err, ok, type Result } from "../../api/base/result.ts";
import { isVerdict, type Kind } from "../../api/model/decision.ts";
import { decodeFacts } from "../../api/model/decode-ask.ts";
import { REMEMBERING, specOf, traitsOf } from "../../api/model/kinds.ts";
import { container, pod as podSchema } from "../../api/model/pod.ts";
import { withoutSecretSettings } from "../../api/model/redact.ts";
import { faultText } from "../core/error-text.ts";
import type { FactsStore } from "../core/facts-file.ts";
import type { DecisionAnswer, DecisionClient, Problem, ResultsReport } from "../core/interfaces.ts";
import type { Counters } from "../status/counters.ts";
import { STATE_FILES, shapeOf, unsafeOrder } from "./answer-guard.ts";
import { type ApiAccess, type ApiFailure, invalidAnswer, isReady, postJson, type Reply } from "./api-access.ts";
import { type DecisionQuestion, decideWith, persistFacts } from "./local-client.ts";
import type { Outbox, Pending } from "./outbox.ts";
import { TurnClient } from "./turn-client.ts";

/**
 * The snapshot as it is sent to the API: of pods only what decisions read, which is also all that the history stores.
 * So no environment value, command, argument, termination message or annotation of a pod leaves the node, and every id
 * stays the same.
 */
export function redactSnapshot(snapshot: unknown): unknown {
  if (!isObject(snapshot)) return snapshot;
  const { pods, kubeletConfiguration } = snapshot;
  return {
    ...snapshot,
    ...(Array.isArray(pods) && { pods: pods.map(redactedPod) }),
    ...(isObject(kubeletConfiguration) && { kubeletConfiguration: withoutSecretSettings(kubeletConfiguration) }),
  };
}

/** An ask as it is sent: its pod is reduced like those of the snapshot. */
export const redactAsk = <A extends object | undefined>(ask: A): A =>
  ask !== undefined && "pod" in ask ? { ...ask, pod: redactedPod(ask.pod) } : ask;

const redactedPod = (pod: unknown): unknown => (isObject(pod) ? redactedFields(pod) : pod);
const redactedFields = perObject((pod: Fields): unknown => {
  const first = podSchema.safeParse(pod);
  const parsed = first.success ? first : podSchema.safeParse(withoutNulls(pod));
  return parsed.success ? parsed.data : faultyPod(pod);
});

const SPEC_FIELDS = Object.keys(podSchema.shape.spec.shape);
const CONTAINER_FIELDS = Object.keys(container.shape);
const CONTAINER_LISTS = ["containers", "initContainers", "ephemeralContainers"];
const MOUNT_FIELDS = ["bindMountOptions"];

/** A pod that cannot be decoded, reduced to its identity and its fault. */
function faultyPod({ metadata, spec }: Fields): Fields {
  const each = (list: unknown, names: readonly string[]): unknown =>
    Array.isArray(list) ? list.map((one: unknown) => picked(one, names)) : list;
  const withMounts = (one: unknown): unknown =>
    isObject(one) && "volumeMounts" in one ? { ...one, volumeMounts: each(one["volumeMounts"], MOUNT_FIELDS) } : one;
  const containers = (list: unknown): unknown =>
    Array.isArray(list) ? list.map((one: unknown) => withMounts(picked(one, CONTAINER_FIELDS))) : list;
  const own = picked(spec, SPEC_FIELDS);
  const lists = isObject(own) ? CONTAINER_LISTS.filter((name) => name in own) : [];
  return {
    metadata: picked(metadata, ["name", "namespace", "uid"]),
    spec: isObject(own) ? { ...own, ...Object.fromEntries(lists.map((name) => [name, containers(own[name])])) } : own,
  };
}

const picked = (value: unknown, names: readonly string[]): unknown =>
  isObject(value) ? Object.fromEntries(names.flatMap((name) => (name in value ? [[name, value[name]]] : []))) : value;

const LONGEST_ID = 200;
const answerId = z.string().min(1).max(LONGEST_ID).nullable();
const answer = z.looseObject({
  id: answerId,
  verdict: z.string().refine(isVerdict, "is no verdict"),
  reasons: z.array(z.looseObject({ at: z.string(), because: z.array(z.unknown()) })).nullish(),
  needs: z.array(z.string()).nullish(),
});

/**
 * Checks an API's answer before anything of it is applied. INVARIANT: an accepted answer has the shape and the ranges of the
 * local core's answers, and orders nothing that `unsafeOrder` names. Errors: the first violation, in one line.
 */
export function checkAnswer(kind: Kind, snapshot: unknown, reply: Reply, ask?: object): Result<DecisionAnswer, string> {
  const fault =
    faultIn(answer, reply, "") ??
    faultIn(shapeOf(kind), reply["decision"], "decision") ??
    faultOfNext(kind, reply["next"]) ??
    unsafeOrder({ kind, snapshot, ask, decision: reply["decision"] });
  if (fault !== null) return err(fault);
  const { id, decision, verdict, reasons, needs, next } = reply as unknown as DecisionAnswer;
  return ok({ id, decidedBy: "api", decision, verdict, reasons: reasons ?? [], needs: needs ?? [], next });
}

/** Checks only what names the answer in the history. Errors: the answer has no id. */
function checkId(reply: Reply): Result<string | null, string> {
  const fault = faultIn(answerId, reply["id"], "id");
  return fault === null ? ok(reply["id"] as string | null) : err(fault);
}

function faultIn(shape: z.ZodType, value: unknown, at: string): string | null {
  const parsed = shape.safeParse(value);
  // a newer API may know more fields
  const issue = parsed.error?.issues.find(({ code }) => code !== "unrecognized_keys");
  if (issue === undefined) return null;
  const path = [at, ...issue.path].filter((part) => part !== "").join(".");
  return `${path || "the answer"}: ${issue.message}`;
}

function faultOfNext(kind: Kind, next: unknown): string | null {
  if (traitsOf(kind).managers !== "none") return next === null ? null : faultIn(STATE_FILES, next, "next");
  if (!REMEMBERING.has(kind)) return null;
  const facts = decodeFacts(kind, next, "next");
  if (facts.ok) return next === null || next === undefined ? "next: is missing" : null;
  const [issue] = facts.error;
  return `${issue?.path ?? "next"}: ${issue?.message ?? ""}`;
}

/** The maximum number of waiting entries sent in one pass, so that a long outage does not delay new decisions. */
const DRAIN_PER_PASS = 50;
/** Tries to send one entry to an API that has no answer to it. */
const MAX_TRIES = 5;

/** Reports the outcome of a decision that the API knows. */
function sendReport(
  access: ApiAccess,
  decisionId: string,
  report: Omit<ResultsReport, "decisionId" | "seq">,
): Promise<Result<unknown, ApiFailure>> {
  // a repeated decision has a report of its own, but a report that is sent again must be the same
  const body = { ...report, decisionId, seq: Date.parse(report.at) } satisfies ResultsReport;
  return postJson(access, "/v1/results", body);
}

/** Sends the outbox's entries once the API is back. */
class OutboxSender {
  readonly #access: ApiAccess;
  readonly #outbox: Outbox;
  readonly #onProblem: (problem: Problem) => void;
  /** Attempts at the oldest entry that got no answer, in a row. */
  #tries = 0;

  constructor(access: ApiAccess, outbox: Outbox, onProblem: (problem: Problem) => void) {
    this.#access = access;
    this.#outbox = outbox;
    this.#onProblem = onProblem;
  }

  /** Sends the oldest entry first; an entry that the API refuses for good is dropped and reported. Returns why the API is away; null: it is not. */
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

  /** Whether an entry blocks the others: the API is ready, but gives no response to this one. */
  async #isStuck({ isStuck }: ApiFailure): Promise<boolean> {
    this.#tries = isStuck === true ? this.#tries + 1 : 0;
    if (this.#tries < MAX_TRIES) return false;
    this.#tries = 0;
    return isReady(this.#access);
  }

  async #send({ kind, snapshot, ask, report }: Pending): Promise<Result<unknown, ApiFailure>> {
    // an older daemon stored snapshots without redaction
    const redacted = redactSnapshot(snapshot);
    const body = ask === undefined ? { snapshot: redacted } : { snapshot: redacted, ask: redactAsk(ask) };
    const path = `/v1/decisions/${kind}`;
    const reply = await postJson(this.#access, path, body);
    if (!reply.ok) return reply;
    // the decision was carried out at its time: only the record's name is wanted
    const id = checkId(reply.value);
    if (!id.ok) return err(invalidAnswer(this.#access.url + path, id.error));
    if (id.value === null || report === null) return id;
    return sendReport(this.#access, id.value, report);
  }
}

/** After a timeout the API is not asked for this many timeouts, so that not every decision waits for it. */
const REST_TIMES = 3;

/** Asks the API; if it does not answer, decides locally with the same core and sends both later. One call at a time. */
export class ApiClient implements DecisionClient {
  readonly #access: ApiAccess;
  readonly #turnClient: TurnClient;
  readonly #outbox: Outbox;
  readonly #outboxSender: OutboxSender;
  readonly #factsStore: FactsStore;
  readonly #onProblem: (problem: Problem) => void;
  /** The fault of the last request, until one succeeds. */
  fault: Problem | null = null;
  /** The question that belongs to each answer. */
  readonly #asked = new WeakMap<DecisionAnswer, DecisionQuestion>();
  /** Kinds of which the API missed a decision for good: it is sent the node's facts. */
  readonly #unrecorded = new Set<Kind>();
  /** The API is not asked before this time. */
  #restsUntilMs = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(access: ApiAccess, outbox: Outbox, factsStore: FactsStore, onProblem: (problem: Problem) => void) {
    this.#access = access;
    this.#turnClient = new TurnClient(access);
    this.#outbox = outbox;
    this.#outboxSender = new OutboxSender(access, outbox, onProblem);
    this.#factsStore = factsStore;
    this.#onProblem = onProblem;
  }

  get waiting(): number {
    return this.#outbox.size;
  }

  decide(kind: Kind, snapshot: unknown, ask?: object): Promise<Result<DecisionAnswer, Problem>> {
    return this.#serialize(() => this.#decide(kind, snapshot, ask));
  }

  commit(answer: DecisionAnswer, isNews = true): Promise<void> {
    return this.#serialize(async () => {
      const asked = this.#asked.get(answer);
      // in this order, so that the API knows the remembered facts, now or later
      if (asked !== undefined && answer.decidedBy === "here") this.#persist(asked, null, isNews);
      persistFacts(this.#factsStore, answer, asked);
    });
  }

  report(report: Omit<ResultsReport, "decisionId" | "seq">, answer: DecisionAnswer): Promise<void> {
    return this.#serialize(async () => {
      const asked = this.#asked.get(answer);
      if (asked !== undefined && answer.decidedBy === "here") return this.#persist(asked, report);
      if (answer.id === null) return;
      const sent = await sendReport(this.#access, answer.id, report);
      if (sent.ok) return;
      this.#fail(`results of ${answer.id}: ${sent.error.message}`);
      // a repeated question gives the same decision and the same record
      if (!sent.error.final && asked !== undefined) this.#persist(asked, report);
    });
  }

  #fail(message: string): void {
    this.fault = { from: "api", message };
    this.#onProblem(this.fault);
  }

  /** Runs work in order, since two passes may overlap but the API must receive them in order. */
  #serialize<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => {});
    return turn;
  }

  #persist({ isTooLarge = false, ...asked }: DecisionQuestion, report: Pending["report"], isNews = true): void {
    // a problem was reported when it was refused, and it would be refused again
    if (isTooLarge) return;
    try {
      const { kind, snapshot, ask } = asked;
      this.#outbox.add({
        kind,
        snapshot: redactSnapshot(snapshot),
        ...(ask === undefined ? {} : { ask: redactAsk(ask) }),
        report,
        ...(isNews ? {} : { isCalm: true }),
      });
    } catch (e) {
      this.#onProblem({ from: "api", message: `what is to be sent later cannot be kept: ${faultText(e, "write")}` });
    }
  }

  /** Asks the API. INVARIANT: a kind with remembered facts is asked only when the API knows all earlier decisions. */
  async #decide(kind: Kind, snapshot: unknown, ask: object | undefined): Promise<Result<DecisionAnswer, Problem>> {
    if (performance.now() < this.#restsUntilMs)
      return this.#noted(decideWith(this.#factsStore, kind, snapshot, ask), kind, snapshot, ask);
    const away = await this.#outboxSender.drain();
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
    return this.#noted(decideWith(this.#factsStore, kind, snapshot, ask), kind, snapshot, ask);
  }

  /** Decides without recording. INVARIANT: a snapshot that is too large to send does not prevent the decision. */
  #decideUnrecorded(
    { message, tooLargeBytes }: ApiFailure,
    kind: Kind,
    snapshot: unknown,
    ask: object | undefined,
  ): Result<DecisionAnswer, Problem> {
    const words = `the body of ${tooLargeBytes} bytes is too large for the API: deciding here, and it is recorded nowhere; raise its limit (nodewise api --max-body-bytes)`;
    this.#fail(`${message}: ${words}`);
    this.#unrecorded.add(kind);
    const here = decideWith(this.#factsStore, kind, snapshot, ask);
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

  /** Asks with this node's facts, because the API's are incomplete. */
  async #askKnowing(
    kind: Kind,
    snapshot: unknown,
    ask: object | undefined,
  ): Promise<Result<DecisionAnswer, ApiFailure>> {
    const facts = REMEMBERING.has(kind) ? this.#factsStore.factsFor(kind, snapshot) : undefined;
    if (facts !== undefined && this.#unrecorded.has(kind)) {
      const answer = await this.#ask(kind, snapshot, { ...ask, facts });
      if (answer.ok) this.#unrecorded.delete(kind);
      return answer;
    }
    const asked = await this.#ask(kind, snapshot, ask);
    if (!asked.ok || facts === undefined) return asked;
    const isForgetful = specOf(kind).facts?.knowsLess?.(asked.value.next, facts);
    return isForgetful === true ? this.#ask(kind, snapshot, { ...ask, facts }) : asked;
  }

  #ask(kind: Kind, snapshot: unknown, ask: object | undefined): Promise<Result<DecisionAnswer, ApiFailure>> {
    const question = { kind, snapshot: redactSnapshot(snapshot), ask: redactAsk(ask) };
    return this.#turnClient.ask(question, (reply) => checkAnswer(kind, snapshot, reply, ask));
  }
}

/** A client that reports and counts its answers and its waiting entries. */
export function redactingClient(
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
    commit: (answer, isNews) => client.commit(answer, isNews).then(noteWaiting),
    report: (report, answer) => client.report(report, answer).then(noteWaiting),
  };
}
