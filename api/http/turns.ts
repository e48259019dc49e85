import type { StoreFailure } from "../../db/failure.ts";
import type { Store } from "../../db/store.ts";
import { err, ok, type Result } from "../base/result.ts";
import type { ApiDeps, Reply } from "../dependencies.ts";
import { parseJson } from "../service/json.ts";
import { encodedAnswer } from "../service/node-turn/decision-pieces.ts";
import { NodeTurns, type TurnAnswer } from "../service/node-turn/node-turns.ts";
import { type PostedTurn, type TurnRequest, turnRequest } from "../service/node-turn/request.ts";
import type { Refused } from "../service/node-turn/turn-decision.ts";
import type { Problem } from "../service/problem.ts";
import { requireNode } from "./auth/authorize.ts";
import { readJsonBody } from "./body.ts";
import { answerHead, historyFailed, spliced } from "./decide.ts";
import { lineProblemText } from "./problem.ts";
import { type Exchange, jsonText, param, queryOf } from "./route.ts";

/** Nodes of a process that may end at any time. */
const FEW_BYTES = 16 * 1024 * 1024;

type TurnDeps = Pick<
  ApiDeps,
  "store" | "now" | "sha256" | "ids" | "metrics" | "log" | "recordDecisions" | "nodeStates"
>;
/** The turns of nodes, over HTTP. */
export function nodeTurns(deps: TurnDeps): NodeTurns {
  const { store, now, sha256, ids, metrics, recordDecisions, nodeStates } = deps;
  const turns = new NodeTurns({
    store,
    now,
    sha256,
    ...(ids === undefined ? {} : { ids }),
    metrics,
    onFailure: (failure, node) => historyFailed(deps, failure, { node }),
    record: recordDecisions,
    holdMs: nodeStates?.holdMs ?? 0,
    maxBytes: nodeStates?.maxBytes ?? FEW_BYTES,
  });
  nodeStates?.atEnd(() => turns.flush());
  return turns;
}

/** The store; it also finds snapshots from answers to turns that still wait to be written. */
export function withWaiting(store: Store, turns: NodeTurns): Store {
  const again = async <T>(id: string, read: () => Promise<Result<T | null, StoreFailure>>) => {
    const found = await read();
    return found.ok && found.value === null && (await turns.flushSnapshot(id)) ? read() : found;
  };
  return {
    ...store,
    getSnapshot: (id) => again(id, () => store.getSnapshot(id)),
    snapshotBytes: (id) => again(id, () => store.snapshotBytes(id)),
  };
}

/** POST /v1/nodes/{node}/turns */
export async function postTurn(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const node = param(exchange, "node");
  const allowed = requireNode(exchange.caller, node);
  if (!allowed.ok) return allowed;
  const bytes = await readJsonBody(exchange);
  if (!bytes.ok) return bytes;
  const { turns, turnElsewhere } = exchange.deps;
  if (turns === undefined) throw new Error("turns are taken by the server alone");
  const taken = await (turnElsewhere?.(node, bytes.value) ?? takeTurn(turns, node, bytes.value, exchange.span));
  return taken.ok ? jsonText(taken.value) : taken;
}

/** The posted bytes of a node's turn -> the JSON text of the answer. `span`: of the request, where it is traced. */
export async function takeTurn(
  turns: NodeTurns,
  node: string,
  bytes: Uint8Array,
  span?: Exchange["span"],
): Promise<Result<string, Problem>> {
  const posted = parseJson(bytes);
  if (!posted.ok) return posted;
  const request = turnRequest(posted.value);
  if (!request.ok) return request;
  const taken = await takeTraced(span, turns, node, request.value);
  if (!taken.ok) return taken;
  const { snapshotId, answers } = taken.value;
  const head = JSON.stringify({ node, snapshotId });
  return ok(spliced(head, `{"decisions":[${answers.map(answerText).join(",")}]}`));
}

/** Decides about a whole snapshot as a turn of its node; the answer is that of a decision. */
export async function decideInTurn(
  { caller, deps: { turns }, span }: Exchange,
  { node, request }: PostedTurn,
): Promise<Result<Reply, Problem>> {
  const allowed = requireNode(caller, node);
  if (!allowed.ok) return allowed;
  if (turns === undefined) throw new Error("turns are taken by the server alone");
  const taken = await takeTraced(span, turns, node, request);
  if (!taken.ok) return taken;
  const [answer] = taken.value.answers;
  if (answer === undefined) throw new Error("a turn with one question has no answer");
  if ("problem" in answer) return err(answer.problem);
  return jsonText(encodedAnswer(headText(answer), answer.decision));
}

/** Takes the turn, with one span for its decisions and one for its recording. */
async function takeTraced(span: Exchange["span"], turns: NodeTurns, node: string, request: TurnRequest) {
  if (span === undefined) return turns.take(node, request);
  let started = performance.now();
  const taken = await turns.take(node, request, (kinds) => {
    span.child("decide", started, { "nodewise.node": node, "nodewise.kinds": kinds });
    started = performance.now();
  });
  if (taken.ok) {
    const ids = taken.value.answers.flatMap((one) => ("problem" in one ? [] : [one.id]));
    span.child("record", started, { "nodewise.node": node, "nodewise.decision.ids": ids });
  }
  return taken;
}

function answerText(answer: TurnAnswer): string {
  if ("problem" in answer)
    return `{"kind":${JSON.stringify(answer.kind)},"problem":${lineProblemText(answer.problem)}}`;
  const { decision, patch, holds } = answer;
  return spliced(headText(answer), patch === null ? decision.body : JSON.stringify({ holds, patch }));
}

function headText({ decision, id, decidedAtMs, notRecorded, again }: Exclude<TurnAnswer, Refused>): string {
  const { kind, node, policyVersion, snapshotId, verdict, assumed, leftOut, profile } = decision;
  const fields = { id, kind, node, policyVersion, snapshotId, decidedAtMs, verdict, assumed, leftOut, profile };
  return answerHead(again === null ? fields : { ...fields, again }, notRecorded);
}
