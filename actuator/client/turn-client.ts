import * as z from "zod";
import { jsonPatch, patched } from "../../api/base/json-patch.ts";
import { fieldsOf, isObject } from "../../api/base/own.ts";
import { err, type Result } from "../../api/base/result.ts";
import type { Kind } from "../../api/model/decision.ts";
import { changesBetween, lengthOf } from "../../api/model/snapshot-difference.ts";
import { RETRY_TURNS_MS, turnRefusal } from "../../api/model/turn.ts";
import type { DecisionAnswer } from "../core/interfaces.ts";
import { type ApiAccess, type ApiFailure, failureOf, invalidAnswer, postJson, type Reply } from "./api-access.ts";

/** The question to the API, redacted. */
interface Question {
  readonly kind: Kind;
  readonly snapshot: unknown;
  readonly ask: object | undefined;
}
/** Checks whether a whole answer may be carried out. */
type Check = (reply: Reply) => Result<DecisionAnswer, string>;

/** A snapshot that the API took. */
interface Base {
  readonly id: string;
  readonly snapshot: unknown;
}
/** An answer that the API may refer to. */
interface HeldAnswer {
  readonly id: string;
  /** The ask as JSON text. */
  readonly ask: string;
  /** `HELD_MEMBERS` of the answer. */
  readonly content: Reply;
}
const HELD_MEMBERS = ["decision", "reasons", "needs", "next"];

/** The HTTP status of a refused decision, which has no status of its own in a turn. */
const REFUSED = 422;

/** The answer to a turn with one question. */
const turnAnswer = z.looseObject({
  snapshotId: z.string().min(1).max(200),
  decisions: z.tuple([z.looseObject({})]),
});

/**
 * Asks the API by turns: it sends the changes since the last snapshot that the API accepted, and receives the changes
 * since the last answer to the same question. If the API no longer has the base snapshot, the whole snapshot is sent
 * and whole answers are requested; if it has no turns, `POST /v1/decisions/KIND` is used. One question at a time.
 */
export class TurnClient {
  readonly #access: ApiAccess;
  #base: Base | null = null;
  /** The last answer of each kind. */
  readonly #held = new Map<Kind, HeldAnswer>();
  #noTurnsUntilMs = Number.NEGATIVE_INFINITY;

  constructor(access: ApiAccess) {
    this.#access = access;
  }

  /** INVARIANT: every returned answer has passed `check` as a whole. */
  async ask(question: Question, check: Check): Promise<Result<DecisionAnswer, ApiFailure>> {
    const node = nodeOf(question.snapshot);
    if (node === null || performance.now() < this.#noTurnsUntilMs) return this.#askWhole(question, check);
    const path = `/v1/nodes/${encodeURIComponent(node)}/turns`;
    const first = await this.#turn(path, question, check);
    if (typeof first === "object") return first;
    this.#base = null;
    this.#held.delete(question.kind);
    const second = first === "send whole" ? await this.#turn(path, question, check) : first;
    if (typeof second === "object") return second;
    this.#noTurnsUntilMs = performance.now() + RETRY_TURNS_MS;
    return this.#askWhole(question, check);
  }

  async #askWhole({ kind, snapshot, ask }: Question, check: Check): Promise<Result<DecisionAnswer, ApiFailure>> {
    const path = `/v1/decisions/${kind}`;
    const reply = await postJson(this.#access, path, { snapshot, ...(ask && { ask }) });
    if (!reply.ok) {
      // after a restart the API may have another version
      if (reply.error.status === undefined) this.#noTurnsUntilMs = Number.NEGATIVE_INFINITY;
      return reply;
    }
    const answer = check(reply.value);
    return answer.ok ? answer : err(invalidAnswer(this.#access.url + path, answer.error));
  }

  /** Takes a turn. Error `send whole`: the API does not know the base, or its answer does not fit. */
  async #turn(
    path: string,
    { kind, snapshot, ask }: Question,
    check: Check,
  ): Promise<Result<DecisionAnswer, ApiFailure> | "send whole" | "no turns"> {
    // a partial snapshot is small, and does not replace the whole one as a base
    const isOfAll = "pods" in fieldsOf(snapshot);
    const base = isOfAll ? this.#base : null;
    const changes = base === null ? null : changesBetween(base.snapshot, snapshot);
    const askText = JSON.stringify(ask ?? null);
    const kept = this.#held.get(kind);
    const held = kept?.ask === askText ? kept : undefined;
    const body = {
      ...(base === null || changes === null ? { snapshot } : { base: base.id, changes }),
      decisions: [{ kind, ...(ask && { ask }), ...(held && { holds: held.id }) }],
    };
    const posted = await postJson(this.#access, path, body, lengthOf(snapshot));
    if (!posted.ok) {
      const refusal = turnRefusal(posted.error.status, changes !== null || held !== undefined);
      return refusal === "refused" ? posted : refusal;
    }
    const turn = turnAnswer.safeParse(posted.value);
    if (!turn.success) return "no turns";
    const { snapshotId, decisions } = turn.data;
    const [entry] = decisions;
    if (isOfAll) this.#base = { id: snapshotId, snapshot };
    const place = this.#access.url + path;
    const { problem } = entry;
    if (isObject(problem)) return err(failureOf(place, REFUSED, problem));
    const reply = wholeOf(entry, held);
    if (reply === null) return "send whole";
    const answer = check(reply);
    if (answer.ok) this.#storeAnswer(kind, ask, askText, reply);
    else if ("holds" in entry) return "send whole";
    return answer.ok ? answer : err(invalidAnswer(place, answer.error));
  }

  /** Stores an answer as a base; questions about one pod are too rare to be worth the memory. */
  #storeAnswer(kind: Kind, ask: object | undefined, askText: string, reply: Reply): void {
    const { id } = reply;
    if (typeof id !== "string" || (ask !== undefined && "pod" in ask)) return;
    const content = Object.fromEntries(HELD_MEMBERS.flatMap((name) => (name in reply ? [[name, reply[name]]] : [])));
    this.#held.set(kind, { id, ask: askText, content });
  }
}

/**
 * The whole answer, rebuilt from the stored one and the changes. Null: the base is another one, or the changes do not
 * fit.
 */
function wholeOf(entry: Reply, held: HeldAnswer | undefined): Reply | null {
  if (!("holds" in entry)) return entry;
  const patch = jsonPatch.safeParse(entry["patch"]);
  if (held === undefined || entry["holds"] !== held.id || !patch.success) return null;
  const content = patched(held.content, patch.data);
  return content.ok && isObject(content.value) ? { ...entry, ...content.value } : null;
}

/** The snapshot's node; null: it names none, so there are no turns. */
function nodeOf(snapshot: unknown): string | null {
  const { name } = fieldsOf(fieldsOf(fieldsOf(snapshot)["node"])["metadata"]);
  return typeof name === "string" && name !== "" ? name : null;
}
