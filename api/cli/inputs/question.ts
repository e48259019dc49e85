import { formText } from "../../../actuator/manifests/document-form.ts";
import type { InputDocument } from "../../inputs/document.ts";
import { issueText, type Path } from "../../inputs/origin.ts";
import { decodeAsk, decodeFacts, REMEMBERING } from "../../model/asks.ts";
import type { AskOf, Facts, Kind } from "../../model/decision.ts";
import type { GcOperation } from "../../model/garbage-collection.ts";
import { ok, type Result } from "../../model/result.ts";
import { listed } from "../../text/sentences/words.ts";
import { EXIT, type Fault, fault } from "../exit.ts";
import { readAsk } from "./ask.ts";
import { withOutcomesFiles } from "./outcomes-file.ts";
import { type ProbesOptions, probesFields } from "./probes.ts";
import { readDocument } from "./read.ts";

export interface QuestionFiles extends ProbesOptions {
  /** A file with the pod that asks, or NAMESPACE/NAME of one of the snapshot. */
  readonly pod?: string;
  /** A file with the whole ask, as the API takes it. */
  readonly ask?: string;
  /** A file with the `next` of an earlier answer, or the whole answer. */
  readonly facts?: string;
  /** What a collection is run for. */
  readonly operation?: GcOperation;
}
/** What is asked of a kind beside the snapshot. */
export interface Question {
  readonly ask: AskOf[Kind];
  readonly facts: Facts;
}
const COLLECTIONS: readonly Kind[] = ["image-gc", "container-gc"];
type Fields = Readonly<Record<string, unknown>>;
const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Reads what is asked and what is remembered. Errors: options that exclude each other, and faults with file, line and path. */
export async function readQuestion(kind: Kind, given: QuestionFiles): Promise<Result<Question, Fault>> {
  const scripted = await withOutcomesFiles(given);
  if (!scripted.ok) return scripted;
  const files = scripted.value;
  const { pod, ask, facts, operation } = files;
  if (operation !== undefined && !COLLECTIONS.includes(kind))
    return fault(EXIT.badInput, `--operation: ${kind} collects nothing: leave it out; ${listed(COLLECTIONS)} do`);
  if (ask !== undefined && operation !== undefined)
    return fault(EXIT.badInput, "--ask holds the operation too: leave --operation out");
  if (ask !== undefined && pod !== undefined) return fault(EXIT.badInput, "--ask holds the pod too: leave --pod out");
  if (facts !== undefined && !REMEMBERING.has(kind)) {
    return fault(EXIT.badInput, `--facts: ${kind} remembers nothing: leave it out; ${listed([...REMEMBERING])} do`);
  }
  const asked = ask === undefined ? await withoutFacts(kind, files) : await readWholeAsk(kind, ask, files);
  if (!asked.ok || facts === undefined) return asked;
  if (asked.value.facts[kind] !== undefined)
    return fault(EXIT.badInput, "--ask holds facts too: leave --facts out, or the facts out of the ask");
  const remembered = await readFacts(kind, facts);
  return remembered.ok ? ok({ ask: asked.value.ask, facts: { [kind]: remembered.value } }) : remembered;
}

async function withoutFacts(kind: Kind, files: QuestionFiles): Promise<Result<Question, Fault>> {
  const { pod, operation } = files;
  const ask = await readAsk(kind, pod, files);
  if (!ask.ok) return ask;
  // the option is given to no kind without one
  const asked = operation === undefined ? ask.value : ({ ...ask.value, operation } as AskOf[Kind]);
  return ok({ ask: asked, facts: {} });
}

/** With kinds that remember, `facts` in it is what is remembered, as with the API. */
async function readWholeAsk(kind: Kind, path: string, options: ProbesOptions): Promise<Result<Question, Fault>> {
  const fields = probesFields(kind, options);
  if (!fields.ok) return fields;
  if (fields.value !== undefined) {
    return fault(EXIT.badInput, `--ask holds ${Object.keys(fields.value).join(", ")} too: leave the option out`);
  }
  const source = await readDocument(path);
  if (!source.ok) return source;
  const { value, file } = source.value;
  if (!isFields(value) || "kind" in value) {
    const wanted = 'what the API takes as `ask`, such as {"pod": {...}}';
    return fault(EXIT.badInput, `${file}: is ${formText(value)}, and --ask takes ${wanted}`);
  }
  const { facts, ...rest } = value;
  const remembers = REMEMBERING.has(kind);
  const ask = decodeAsk(kind, remembers ? rest : value);
  if (!ask.ok) return faultOf(ask.error, ["ask"], source.value, []);
  if (!remembers || facts === undefined || facts === null) return ok({ ask: ask.value, facts: {} });
  const remembered = decodeFacts(kind, facts, "ask.facts");
  if (!remembered.ok) return faultOf(remembered.error, ["ask"], source.value, []);
  return ok({ ask: ask.value, facts: { [kind]: facts } });
}

/** The facts as they were given: the decision checks them once more. */
async function readFacts(kind: Kind, path: string): Promise<Result<unknown, Fault>> {
  const source = await readDocument(path);
  if (!source.ok) return source;
  const { value, file } = source.value;
  const isAnswer = isFields(value) && "next" in value;
  const facts = isAnswer ? value["next"] : value;
  const of = isAnswer && "kind" in value ? value["kind"] : kind;
  if (of !== kind || !isFields(facts) || facts["atMs"] === undefined) {
    const found = of === kind ? formText(value) : `an answer of ${String(of)}`;
    const wanted = `an earlier answer of ${kind}, or its \`next\``;
    return fault(EXIT.badInput, `${file}: is ${found}, and --facts takes ${wanted}`);
  }
  const decoded = decodeFacts(kind, facts, "facts");
  return decoded.ok ? ok(facts) : faultOf(decoded.error, ["facts"], source.value, isAnswer ? ["next"] : []);
}

const faultOf = (
  issues: readonly { readonly path: string; readonly message: string }[],
  at: Path,
  source: InputDocument,
  base: Path,
): Result<never, Fault> => fault(EXIT.badInput, ...issues.map((issue) => issueText(issue, [{ at, source, base }])));
