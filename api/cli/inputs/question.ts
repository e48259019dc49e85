import { type Fields, isObject } from "../../base/own.ts";
import { ok, type Result } from "../../base/result.ts";
import { formOf, formText, hasForm } from "../../documents/document-form.ts";
import { type InputDocument, issueText, type Path } from "../../documents/inputs/origin.ts";
import type { GcOperation } from "../../model/container-gc.ts";
import { type AskOf, type Facts, KINDS, type Kind } from "../../model/decision.ts";
import { decodeAsk, decodeFacts } from "../../model/decode-ask.ts";
import { asksFor, REMEMBERING, REMOVING_KINDS, specOf, traitsOf } from "../../model/kinds.ts";
import { PROBE_TYPES, type ProbeType } from "../../model/probe-spec.ts";
import type { Profile } from "../../profiles/profile.ts";
import { listed } from "../../text/sentences/words.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";
import { leftOutOfPods, readDocument } from "./read.ts";

interface ProbesOptions {
  /** The results of probes of every type without a list of its own; `@FILE` until that is read. */
  readonly outcomes?: string | readonly string[] | undefined;
  readonly startup?: string | readonly string[];
  readonly liveness?: string | readonly string[];
  readonly readiness?: string | readonly string[];
  readonly container?: string;
  /** New requests of the pod's container: `cpu=2,memory=1Gi`. */
  readonly to?: string;
  readonly seconds?: string;
  readonly strict?: boolean;
  readonly stopSeconds?: string;
  readonly kubeletRestart?: string;
  readonly jitter?: string;
  readonly backOff?: boolean;
}
const NUMBERS = {
  seconds: "seconds",
  stopSeconds: "stopSeconds",
  kubeletRestart: "kubeletRestartSeconds",
  jitter: "jitter",
};
const TYPES = ["startup", "liveness", "readiness"] as const;

/** Builds the ask of `probes` from the options; undefined without any. Errors: options of another kind, or invalid numbers. */
function probesFields(
  kind: Kind,
  options: ProbesOptions,
): Result<Readonly<Record<string, unknown>> | undefined, Fault> {
  const { outcomes, container, strict, backOff } = options;
  const fields: Record<string, unknown> = {};
  const scripts = TYPES.flatMap((type) => {
    const script = options[type] ?? outcomes;
    return script === undefined ? [] : [[type, script] as const];
  });
  if (scripts.length > 0) fields["outcomes"] = Object.fromEntries(scripts);
  if (options.to !== undefined) {
    const to = amountsOf(options.to);
    if (!to.ok) return to;
    fields["to"] = to.value;
  }
  if (container !== undefined) fields["container"] = container;
  if (strict === true) fields["strict"] = true;
  if (backOff === false) fields["backOff"] = false;
  for (const [option, field] of Object.entries(NUMBERS)) {
    const text = options[option as keyof typeof NUMBERS];
    if (text === undefined) continue;
    if (!/^\d{1,6}(?:\.\d{1,3})?$/.test(text))
      return fault(EXIT.badInput, `${OPTION[field]} ${text}: must be a number`);
    fields[field] = Number(text);
  }
  const [first] = Object.keys(fields);
  if (first === undefined) return ok(undefined);
  if (asksFor(kind, first)) return ok(fields);
  if (first === "to") return fault(EXIT.badInput, `--to: ${kind} resizes no pod: leave it out; resize does`);
  return fault(
    EXIT.badInput,
    `${optionAt(`ask.${first}`, options) ?? first}: ${kind} runs no probes: leave it out; probes does`,
  );
}

/** The amounts of `--to`: `NAME=AMOUNT`, separated by commas. Errors: another form, or a name twice. */
export function amountsOf(text: string): Result<Fields, Fault> {
  const pairs = text.split(",").map((part) => part.split("="));
  const isOnce = new Set(pairs.map(([name]) => name)).size === pairs.length;
  return isOnce && pairs.every(([name, amount, more]) => name !== "" && amount && more === undefined)
    ? ok(Object.fromEntries(pairs))
    : fault(EXIT.badInput, `--to ${text}: must be amounts such as cpu=2,memory=1Gi, each resource once`);
}

const OPTION: Readonly<Record<string, string>> = {
  container: "--container",
  to: "--to",
  strict: "--strict",
  backOff: "--no-back-off",
  seconds: "--seconds",
  stopSeconds: "--stop-seconds",
  kubeletRestartSeconds: "--kubelet-restart",
  jitter: "--jitter",
};
/** The option that a path of the ask came from; undefined if none. */
function optionAt(path: string, options: ProbesOptions): string | undefined {
  const [, field = "", type] = path.split(".");
  if (field === "to" && type !== undefined) return `--to ${path.slice("ask.to.".length)}`;
  if (field !== "outcomes") return OPTION[field];
  const given = TYPES.find((name) => (type === undefined ? options[name] !== undefined : name === type));
  return given !== undefined && options[given] !== undefined ? `--${given}` : "--outcomes";
}

/**
 * `--pod`: a file with one Pod, or NAMESPACE/NAME of a pod of the snapshot; `probes`: other fields of the ask. `onFile`: called
 * with that file. Errors name file, line and path, or the option.
 */
async function readAsk(
  kind: Kind,
  pod: string | Fields | undefined,
  probes: ProbesOptions,
  onFile: (document: InputDocument) => void,
): Promise<Result<AskOf[Kind], Fault>> {
  const fields = probesFields(kind, probes);
  if (!fields.ok) return fields;
  const ask = (given: unknown): ReturnType<typeof decodeAsk> => decodeAsk(kind, { pod: given, ...fields.value });
  const named = (path: string, message: string): string => `${optionAt(path, probes) ?? path}: ${message}`;
  if (pod === undefined) return refused(fields.value === undefined ? decodeAsk(kind, null) : ask(null), named);
  if (!takesPod(kind)) {
    const others = KINDS.filter(takesPod).join(", ");
    return fault(EXIT.badInput, `--pod: ${kind} asks about no single pod: leave it out; ${others} take it`);
  }
  if (typeof pod === "object" && specOf(kind).ask.pod !== "name") return refused(ask(pod), named);
  if (typeof pod === "object") return fault(EXIT.badInput, `--pod: ${kind} needs a pod that is bound to the node`);
  if (isPodName(pod)) {
    return refused(ask(pod), (path, message) => `${optionAt(path, probes) ?? `--pod ${pod}`}: ${message}`);
  }
  if (specOf(kind).ask.pod === "name") {
    return fault(EXIT.badInput, `--pod ${pod}: ${kind} needs NAMESPACE/NAME of a pod of the snapshot`);
  }
  const source = await readDocument(pod);
  if (!source.ok) return source;
  const { value, file } = source.value;
  if (isOther(value)) {
    const wanted = "a file with one v1.Pod, or NAMESPACE/NAME of a pod of the snapshot";
    return fault(EXIT.badInput, `${file}: is ${formText(value)}, and --pod needs ${wanted}`);
  }
  onFile(source.value);
  const origins = [{ at: ["ask", "pod"], source: source.value, base: [] }];
  return refused(ask(value), (path, message) =>
    path.startsWith("ask.pod") ? issueText({ path, message }, origins) : named(path, message),
  );
}

const takesPod = (kind: Kind): boolean => specOf(kind).ask.pod !== "none";

/** Whether a text is a pod's name. A file with such a name is given as `./NAMESPACE/NAME`. */
const isPodName = (text: string): boolean =>
  /^[a-z0-9][a-z0-9-]*\/[a-z0-9][a-z0-9.-]*$/.test(text) && !/\.(?:json|ya?ml)$/.test(text);

/** Whether a value is clearly no pod. If it may be an invalid one, the schema reports what is wrong. */
function isOther(value: unknown): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return true;
  if (hasForm(value, "v1.Pod")) return false;
  const form = formOf(value);
  return "kind" in value || (form !== undefined && form !== "v1.Node");
}

function refused(
  decoded: ReturnType<typeof decodeAsk>,
  text: (path: string, message: string) => string,
): Result<AskOf[Kind], Fault> {
  if (decoded.ok) return decoded;
  // one option may set several paths
  return fault(EXIT.badInput, ...new Set(decoded.error.map(({ path, message }) => text(path, message))));
}

type Script = string | readonly string[];
const WANTED =
  'outcomes such as ok,fail*3, a list of them, or one by type: {"liveness": ["ok*5", "fail"]}, as `nodewise probes outcomes` prints it';

/** The options with the content of files that they name: `--outcomes @FILE`, `--liveness @FILE`. Errors: the file's. */
async function withOutcomesFiles<O extends ProbesOptions>(options: O): Promise<Result<O, Fault>> {
  let all: O = options;
  for (const name of ["outcomes", ...PROBE_TYPES] as const) {
    const given = options[name];
    if (typeof given !== "string" || !given.startsWith("@")) continue;
    const read = await scriptsIn(given.slice(1));
    if (!read.ok) return read;
    const { own, byType } = read.value;
    if (own !== undefined) all = { ...all, [name]: own };
    else if (name !== "outcomes") {
      const script = byType[name];
      if (script === undefined) return fault(EXIT.badInput, `--${name} ${given}: the file has no ${name}`);
      all = { ...all, [name]: script };
    } else {
      const others = Object.entries(byType).filter(([type]) => options[type as ProbeType] === undefined);
      all = { ...all, ...Object.fromEntries(others), outcomes: undefined };
    }
  }
  return ok(all);
}

interface Scripts {
  /** The results for whichever probe runs; undefined if they are by type. */
  readonly own: Script | undefined;
  readonly byType: Readonly<Partial<Record<string, Script>>>;
}
async function scriptsIn(path: string): Promise<Result<Scripts, Fault>> {
  const source = await readDocument(path);
  if (!source.ok) return source;
  const { value, file } = source.value;
  if (isScript(value)) return ok({ own: value, byType: {} });
  const types: readonly string[] = PROBE_TYPES;
  const fields = typeof value === "object" && value !== null ? Object.entries(value) : [];
  const wrong = fields.find(([name, script]) => !types.includes(name) || !isScript(script));
  if (fields.length > 0 && wrong === undefined) return ok({ own: undefined, byType: Object.fromEntries(fields) });
  const where = wrong === undefined || Array.isArray(value) ? "" : `: ${wrong[0]}`;
  return fault(EXIT.badInput, `${file}${where}: expected ${WANTED}`);
}
const isScript = (value: unknown): value is Script =>
  typeof value === "string" || (Array.isArray(value) && value.every((item) => typeof item === "string"));

export interface QuestionFiles extends ProbesOptions {
  /** A file with the pod to decide on, or NAMESPACE/NAME of one of the snapshot. */
  readonly pod?: string;
  /** The pod to decide on instead of a file: a v1.Pod of a live cluster. */
  readonly podObject?: Fields;
  /** A file with the whole ask, as for the API. */
  readonly ask?: string;
  /** A file with the `next` of an earlier answer, or the whole answer. */
  readonly facts?: string;
  /** The operation for which a collection runs. */
  readonly operation?: GcOperation;
}
/** The input of a kind in addition to the snapshot. */
export interface Question {
  readonly ask: AskOf[Kind];
  readonly facts: Facts;
  /** Warnings about the pod: a line for each field that this version's v1.Pod does not have. */
  readonly leftOut: readonly string[];
}

/**
 * Reads the ask and the facts of `node`; null if no node is given. Errors: options that exclude each other, facts of another node,
 * and faults with file, line and path.
 */
export async function readQuestion(
  kind: Kind,
  given: QuestionFiles,
  node: string | null,
  profile: Profile,
): Promise<Result<Question, Fault>> {
  const scripted = await withOutcomesFiles(given);
  if (!scripted.ok) return scripted;
  const files = scripted.value;
  const { pod, ask, facts, operation } = files;
  if (operation !== undefined && !traitsOf(kind).removes)
    return fault(EXIT.badInput, `--operation: ${kind} collects nothing: leave it out; ${listed(REMOVING_KINDS)} do`);
  if (ask !== undefined && operation !== undefined)
    return fault(EXIT.badInput, "--ask holds the operation too: leave --operation out");
  if (ask !== undefined && pod !== undefined) return fault(EXIT.badInput, "--ask holds the pod too: leave --pod out");
  if (facts !== undefined && !REMEMBERING.has(kind)) {
    return fault(EXIT.badInput, `--facts: ${kind} remembers nothing: leave it out; ${listed([...REMEMBERING])} do`);
  }
  const asked = ask === undefined ? await withoutFacts(kind, files, profile) : await readWholeAsk(kind, ask, files);
  if (!asked.ok || facts === undefined) return asked;
  if (asked.value.facts[kind] !== undefined)
    return fault(EXIT.badInput, "--ask holds facts too: leave --facts out, or the facts out of the ask");
  const remembered = await readFacts(kind, facts, node);
  return remembered.ok ? ok({ ...asked.value, facts: { [kind]: remembered.value } }) : remembered;
}

async function withoutFacts(kind: Kind, files: QuestionFiles, profile: Profile): Promise<Result<Question, Fault>> {
  const { pod, operation } = files;
  const leftOut: string[] = [];
  const ask = await readAsk(kind, pod ?? files.podObject, files, (source) =>
    leftOut.push(...leftOutOfPods([{ source, base: [] }], profile)),
  );
  if (!ask.ok) return ask;
  // the option exists only for kinds with an operation
  const asked = operation === undefined ? ask.value : ({ ...ask.value, operation } as AskOf[Kind]);
  return ok({ ask: asked, facts: {}, leftOut });
}

/** For kinds with facts, `facts` in it are these, as with the API. */
async function readWholeAsk(kind: Kind, path: string, options: ProbesOptions): Promise<Result<Question, Fault>> {
  const fields = probesFields(kind, options);
  if (!fields.ok) return fields;
  if (fields.value !== undefined) {
    return fault(EXIT.badInput, `--ask holds ${Object.keys(fields.value).join(", ")} too: leave the option out`);
  }
  const source = await readDocument(path);
  if (!source.ok) return source;
  const { value, file } = source.value;
  if (!isObject(value) || "kind" in value) {
    const wanted = 'what the API accepts as `ask`, such as {"pod": {...}}';
    return fault(EXIT.badInput, `${file}: is ${formText(value)}, and --ask needs ${wanted}`);
  }
  const { facts, ...rest } = value;
  const remembers = REMEMBERING.has(kind);
  const ask = decodeAsk(kind, remembers ? rest : value);
  if (!ask.ok) return faultOf(ask.error, ["ask"], source.value, []);
  if (!remembers || facts === undefined || facts === null) return ok({ ask: ask.value, facts: {}, leftOut: [] });
  const remembered = decodeFacts(kind, facts, "ask.facts");
  if (!remembered.ok) return faultOf(remembered.error, ["ask"], source.value, []);
  return ok({ ask: ask.value, facts: { [kind]: facts }, leftOut: [] });
}

/** The facts as given: the decision validates them. */
async function readFacts(kind: Kind, path: string, node: string | null): Promise<Result<unknown, Fault>> {
  const source = await readDocument(path);
  if (!source.ok) return source;
  const { value, file } = source.value;
  const isAnswer = isObject(value) && "next" in value;
  const facts = isAnswer ? value["next"] : value;
  const of = isAnswer && "kind" in value ? value["kind"] : kind;
  if (of !== kind || !isObject(facts) || facts["atMs"] === undefined) {
    const found = of === kind ? formText(value) : `an answer of ${String(of)}`;
    const wanted = `an earlier answer of ${kind}, or its \`next\``;
    return fault(EXIT.badInput, `${file}: is ${found}, and --facts needs ${wanted}`);
  }
  const whose = isAnswer ? value["node"] : undefined;
  if (typeof whose === "string" && node !== null && whose !== node)
    return fault(
      EXIT.badInput,
      `${file}: is of node ${whose}, and the snapshot is of node ${node}: give ${node}'s last answer`,
    );
  const decoded = decodeFacts(kind, facts, "facts");
  return decoded.ok ? ok(facts) : faultOf(decoded.error, ["facts"], source.value, isAnswer ? ["next"] : []);
}

const faultOf = (
  issues: readonly { readonly path: string; readonly message: string }[],
  at: Path,
  source: InputDocument,
  base: Path,
): Result<never, Fault> => fault(EXIT.badInput, ...issues.map((issue) => issueText(issue, [{ at, source, base }])));
