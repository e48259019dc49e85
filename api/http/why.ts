import * as z from "zod";
import { isObject } from "../base/own.ts";
import { ok, type Result } from "../base/result.ts";
import type { Reply } from "../dependencies.ts";
import { optional } from "../model/fields.ts";
import { readBody } from "../service/body-form.ts";
import { historyProblem, type Problem, problem } from "../service/problem.ts";
import type { WhyDocument } from "../service/why/evidence.ts";
import { type WhyAnswer, type WhyFailure, whyOf, whyOfHistory } from "../service/why/history.ts";
import { postedValue } from "./body.ts";
import { findNode, nodeNamed } from "./nodes.ts";
import { type Exchange, json, param, queryOf } from "./route.ts";

/** Documents of one request; a List counts as one. */
const MAX_DOCUMENTS = 1000;
const name = optional(z.string("expected a name").min(1, "expected a name"));
export const whyForm = z.strictObject({
  pod: name.describe("NAME, NAMESPACE/NAME or uid of the pod; absent: all pods that have findings"),
  namespace: name.describe("the namespace of the pod; absent: any"),
  node: name.describe("the node whose history is read in addition to the documents"),
  documents: optional(
    z
      .array(z.unknown(), "expected a list of documents")
      .max(MAX_DOCUMENTS, `more than ${MAX_DOCUMENTS} documents: join them in a List`),
  ).describe(
    'the documents, each as it is or with its origin: {"origin": "app/cpu.stat", "value": "nr_periods 10 nr_throttled 2"}; absent: the history is read',
  ),
});

/** POST /v1/why: the explanation of a pod, or the pods that have one, from documents, or from the history; records nothing. */
export async function postWhy(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const input = await postedValue(exchange);
  if (!input.ok) return input;
  const body = readBody(whyForm, input.value, '{"pod": "default/web", "documents": [...]}');
  if (!body.ok) return body;
  const { documents: posted, pod = null, namespace = null, node: asked = null } = body.value;
  const documents = posted === undefined ? null : posted.map(documentOf);
  const { caller, deps } = exchange;
  if (documents !== null && asked === null) return answered(whyOf(documents, { pod, namespace, node: null }));
  const named = asked ?? caller.node;
  const node = named === null ? ok(null) : await nodeNamed(exchange, named);
  if (!node.ok) return node;
  const ofNode = { pod, namespace, node: node.value?.name ?? null };
  return answered(await whyOfHistory(deps.store, ofNode, documents ?? []));
}

/** GET /v1/nodes/{node}/pods/{namespace}/{name}/why: the explanation that the history has of a pod. */
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
  return withProblem(await whyOfHistory(exchange.deps.store, { pod, namespace: null, node: node.value.name }));
}

/** A document as it is, or one with its origin: `{"origin": "c/cpu.stat", "value": "nr_periods 10..."}`. */
function documentOf(posted: unknown, i: number): WhyDocument {
  const isNamed =
    isObject(posted) && Object.keys(posted).length === 2 && typeof posted["origin"] === "string" && "value" in posted;
  return isNamed
    ? { origin: String(posted["origin"]), value: posted["value"] }
    : { origin: `documents[${i}]`, value: posted };
}

function answered(answer: Result<WhyAnswer, WhyFailure>): Result<Reply, Problem> {
  const known = withProblem(answer);
  return known.ok ? json(known.value) : known;
}

function withProblem(answer: Result<WhyAnswer, WhyFailure>): Result<WhyAnswer, Problem> {
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
