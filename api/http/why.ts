import { isObject } from "../model/own.ts";
import { ok, type Result } from "../model/result.ts";
import type { Reply } from "../ports.ts";
import { unknownField } from "../service/decision-request.ts";
import { historyProblem, invalid, type Problem, problem } from "../service/problem.ts";
import type { WhyDocument } from "../service/why/evidence.ts";
import { type WhyAnswer, type WhyAsked, type WhyFailure, whyOf, whyOfHistory } from "../service/why/history.ts";
import { postedValue } from "./body.ts";
import { findNode, nodeNamed } from "./nodes.ts";
import { isGiven, type Members } from "./replay.ts";
import { type Exchange, json, param, queryOf } from "./route.ts";

const FIELDS: ReadonlySet<string> = new Set(["pod", "namespace", "node", "documents"]);
/** Documents of one request; a List counts as one. */
export const MAX_DOCUMENTS = 1000;

/** POST /v1/why: the story of a pod, or the pods that have one, from documents, or from the history; records nothing. */
export async function postWhy(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const input = await postedValue(exchange);
  if (!input.ok) return input;
  const body = input.value;
  if (!isObject(body)) return invalid("$", 'expected an object such as {"pod": "default/web", "documents": [...]}');
  for (const name in body) if (!FIELDS.has(name)) return unknownField(name, FIELDS);
  const asked = askedIn(body);
  if (!asked.ok) return asked;
  const documents = documentsIn(body["documents"]);
  if (!documents.ok) return documents;
  const { caller, ports } = exchange;
  if (documents.value !== null && asked.value.node === null) return answered(whyOf(documents.value, asked.value));
  const named = asked.value.node ?? caller.node;
  const node = named === null ? ok(null) : await nodeNamed(exchange, named);
  if (!node.ok) return node;
  const ofNode = { ...asked.value, node: node.value?.name ?? null };
  return answered(await whyOfHistory(ports.store, ofNode, documents.value ?? []));
}

/** GET /v1/nodes/{node}/pods/{namespace}/{name}/why: the story that the history has of a pod. */
export async function getWhy(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const answer = await getWhyAnswer(exchange);
  return answer.ok ? json(answer.value) : answer;
}

/** The same, for a page too. */
export async function getWhyAnswer(exchange: Exchange): Promise<Result<WhyAnswer, Problem>> {
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const node = await findNode(exchange);
  if (!node.ok) return node;
  const pod = `${param(exchange, "namespace")}/${param(exchange, "name")}`;
  return told(await whyOfHistory(exchange.ports.store, { pod, namespace: null, node: node.value.name }));
}

function askedIn(body: Members): Result<WhyAsked, Problem> {
  for (const name of ["pod", "namespace", "node"]) {
    const value = body[name];
    if (isGiven(value) && (typeof value !== "string" || value === "")) return invalid(name, "expected a name");
  }
  const textOf = (name: string): string | null => (typeof body[name] === "string" ? body[name] : null);
  return ok({ pod: textOf("pod"), namespace: textOf("namespace"), node: textOf("node") });
}

/** Each is a document as it is, or one with its origin: `{"origin": "c/cpu.stat", "value": "nr_periods 10..."}`. */
function documentsIn(posted: unknown): Result<readonly WhyDocument[] | null, Problem> {
  if (!isGiven(posted)) return ok(null);
  if (!Array.isArray(posted)) return invalid("documents", "expected a list of documents");
  if (posted.length > MAX_DOCUMENTS)
    return invalid("documents", `more than ${MAX_DOCUMENTS} documents: join them in a List`);
  return ok(
    posted.map((value: unknown, i): WhyDocument => {
      const isNamed =
        isObject(value) && Object.keys(value).length === 2 && typeof value["origin"] === "string" && "value" in value;
      return isNamed
        ? { origin: String(value["origin"]), value: value["value"] }
        : { origin: `documents[${i}]`, value };
    }),
  );
}

function answered(answer: Result<WhyAnswer, WhyFailure>): Result<Reply, Problem> {
  const known = told(answer);
  return known.ok ? json(known.value) : known;
}

function told(answer: Result<WhyAnswer, WhyFailure>): Result<WhyAnswer, Problem> {
  if (answer.ok) return answer;
  if (answer.error.code === "history") return historyProblem(answer.error.failure);
  const { code, message, near = [] } = answer.error.why;
  if (code === "no_such_pod")
    return problem("no_such_pod", message, { near, advice: "post a document of the pod, or correct its name" });
  return problem("invalid_input", message, {
    near,
    issues: [{ path: code === "ambiguous_pod" ? "pod" : "documents", message }],
  });
}
