import { jsonFaultOf } from "../../base/json-fault.ts";
import { fieldsOf } from "../../base/own.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { formOf, formText } from "../../documents/document-form.ts";
import type { InputDocument, Path } from "../../documents/inputs/origin.ts";
import type { PartOption } from "../../documents/inputs/parts.ts";
import { INSTEAD, optionOfForm, wrapperOf } from "../../documents/inputs/parts.ts";
import { isLscpu, machineOfLscpu } from "../../documents/lscpu.ts";
import { parseDocuments } from "../../documents/parse.ts";
import { problemText, type ReadProblem } from "../../documents/problem.ts";
import { PROFILES } from "../../profiles/index.ts";

/** A text that was pasted or chosen as a file, and its name in messages. */
export interface FormText {
  readonly name: string;
  readonly text: string;
}

/**
 * A longer text must be JSON, and places in it are given as paths only. The output of `kubectl get pods -o yaml` for a full
 * node fits. The YAML parser takes a microsecond per character of that, and memory per value: hence the second limit.
 */
export const MAX_YAML_CHARACTERS = 1024 * 1024;
/** Lines and commas, so at least as many as there are values. */
const MAX_YAML_VALUES = 64 * 1024;

/** The documents of a JSON or YAML text; none for an empty text. Errors: sentences, each with its place. */
export function documentsOf({ name, text }: FormText): Result<readonly InputDocument[], readonly string[]> {
  const limit = limitPassed(text);
  const hasPlaces = limit === null;
  if (!hasPlaces) {
    const fault = largeFault(name, text, limit);
    if (fault !== null) return err([fault]);
  }
  const { documents, problems } = parseDocuments(text, name);
  if (problems.length > 0) return err(problems.map((problem) => problemText(alone(problem, text))));
  return ok(documents.map((document) => ({ ...document, hasPlaces })));
}

/** The one document of a text. */
export function documentOf(given: FormText): Result<InputDocument, readonly string[]> {
  const read = documentsOf(given);
  if (!read.ok) return read;
  const [first, second] = read.value;
  if (first === undefined) return err([`${given.name}: holds no object: expected JSON or YAML`]);
  return second !== undefined ? err([`${given.name}: holds ${read.value.length} documents: give one`]) : ok(first);
}

/** Removes the document's number unless there are several. */
function alone(problem: ReadProblem, text: string): ReadProblem {
  if (/^---/m.test(text)) return problem;
  const { document: _only, ...rest } = problem;
  return rest;
}

/** The limit of YAML that a text exceeds, in words; null: none. */
function limitPassed(text: string): string | null {
  if (text.length > MAX_YAML_CHARACTERS)
    return `has ${Math.ceil(text.length / 1024).toLocaleString("en")} KiB, and YAML may have ${MAX_YAML_CHARACTERS / 1024 ** 2} MiB here`;
  let values = 0;
  for (const _ of text.matchAll(/[\n,]/g)) values++;
  return values > MAX_YAML_VALUES
    ? `has ${values.toLocaleString("en")} lines and commas, and YAML may have ${MAX_YAML_VALUES.toLocaleString("en")} here`
    : null;
}

/** Finds where a text that is meant as JSON is no longer JSON. */
function largeFault(name: string, text: string, limit: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch {
    if (!/^\s*[[{]/.test(text))
      return `${name}: ${limit}: give it as JSON (\`-o json\`), which may have more, or split it`;
    const { line, column, message } = jsonFaultOf(text);
    return `${name}:${line}:${column}: is not JSON: ${message}`;
  }
}

export type PartName = PartOption | "snapshot";
/** A document, or a part of one, and the part of a node that it contains. */
export interface Part {
  readonly part: PartName;
  /** The value in the snapshot's form. */
  readonly posted: unknown;
  readonly source: InputDocument;
  /** Its place in the document. */
  readonly base: Path;
}
interface RecognisedDocuments {
  readonly parts: readonly Part[];
  /** The inputs that cannot be read, each with its place. */
  readonly faults: readonly string[];
  /** Documents that are no part of a node, each with its place: the rest is used without them. */
  readonly passed: readonly string[];
}
/** The content of one document. */
type DocumentContent = { readonly parts: readonly Part[]; readonly passed?: string } | { readonly fault: string };

/** The kubelet's files that decisions read as text; they are recognised even if truncated. */
const STATE_FILES: Readonly<Record<string, PartOption>> = {
  cpu_manager_state: "cpu-manager-state",
  memory_manager_state: "memory-manager-state",
  allocated_pods_state: "allocated-pods",
  kubelet_internal_checkpoint: "device-checkpoint",
  dra_manager_state: "dra-state",
};

/** The header of `kubectl get` and `crictl` output without `-o`: only words in capitals. */
const TABLE =
  /^\s*[A-Z][A-Z0-9/%_-]*(?:\([A-Za-z%]+\))?(?:[ \t]+[A-Z][A-Z0-9/%_-]*(?:\([A-Za-z%]+\))?)+[ \t]*\r?(?:\n|$)/;
const AS_JSON = "give what the same command prints with `-o json`";

/** Everything in a text that describes a node, recognised by its content. */
export function recognise(given: FormText): RecognisedDocuments {
  if (TABLE.test(given.text))
    return {
      parts: [],
      faults: [],
      passed: [`${given.name}: skipped, as it is a table, made for people: ${AS_JSON}`],
    };
  const state = STATE_FILES[given.name.replace(/^.*\//, "").replace(/\.(?:json|txt)$/, "")];
  const read = documentsOf(given);
  if (!read.ok || read.value.length === 0) {
    if (state === undefined)
      return read.ok
        ? { parts: [], faults: [], passed: [`${given.name}: skipped, as it is empty`] }
        : { parts: [], faults: read.error, passed: [] };
    const source: InputDocument = {
      value: null,
      file: given.name,
      document: 0,
      hasPlaces: false,
      place: () => ({ line: 1, column: 1 }),
    };
    return { parts: [{ part: state, posted: given.text, source, base: [] }], passed: [], faults: [] };
  }
  const parts: Part[] = [];
  const faults: string[] = [];
  const passed: string[] = [];
  for (const source of read.value) {
    const found = partsOf(source, read.value.length === 1 ? given.text : null);
    if ("fault" in found) faults.push(`${placeText(source)}: is ${found.fault}`);
    else {
      parts.push(...found.parts);
      if (found.passed !== undefined) passed.push(`${placeText(source)}: ${found.passed}`);
    }
  }
  return { parts, faults, passed };
}

function placeText(source: InputDocument): string {
  if (!source.hasPlaces || source.document === 0) return source.file;
  return `${source.file}:${source.place([]).line}`;
}

const STATES: ReadonlySet<PartOption> = new Set(Object.values(STATE_FILES));

/** The parts of one document. `text`: the document's own text, for state files. */
function partsOf(source: InputDocument, text: string | null): DocumentContent {
  const { value } = source;
  const form = formOf(value);
  const part = (name: PartName, posted: unknown = value, base: Path = []): Part => ({
    part: name,
    posted,
    source,
    base,
  });
  if (form === "snapshot") return { parts: [part("snapshot")] };
  if (form === "v1.Pod") return { parts: [part("pods")] };
  if (form === "list") return listParts(source);
  if (Array.isArray(value) && value.length > 0 && value.every((item) => formOf(item) === "v1.Pod"))
    return { parts: value.map((pod, i) => part("pods", pod, [i])) };
  const option = form === undefined ? undefined : optionOfForm(form);
  if (option === "machine" && isLscpu(value)) {
    const machine = machineOfLscpu(value);
    return machine.ok
      ? { parts: [part(option, machine.value)] }
      : { fault: `what \`lscpu -J\` prints, which ${machine.error}` };
  }
  if (option !== undefined) {
    const isState = STATES.has(option) && text !== null && /^\s*\{/.test(text);
    return { parts: [part(option, isState ? text : value, wrapperOf(option, value))] };
  }
  if (form === undefined && isPartOfConfiguration(value)) return { parts: [part("config")] };
  const instead = form === undefined ? undefined : INSTEAD[form];
  const why = instead === undefined ? ", which is no part of a node" : `: ${instead}`;
  return { parts: [], passed: `skipped, as it is ${formText(value)}${why}` };
}

/** A value with a field of KubeletConfiguration counts as a part of one. */
const isPartOfConfiguration = (value: unknown): boolean =>
  !Array.isArray(value) &&
  fieldsOf(value)["kind"] === undefined &&
  PROFILES.some(({ fieldNames }) => Object.keys(fieldsOf(value)).some((name) => fieldNames.get("")?.includes(name)));

/** `kubectl get -o json` prints a List of whatever was requested. */
function listParts(source: InputDocument): DocumentContent {
  const { kind: listKind, items } = fieldsOf(source.value);
  const list = Array.isArray(items) ? (items as readonly unknown[]) : [];
  if (list.length === 0) return emptyList(source, listKind);
  const usual = /^(.+)List$/.exec(String(listKind))?.[1] ?? "Pod";
  const parts: Part[] = [];
  const others = new Map<string, number>();
  for (const [i, item] of list.entries()) {
    const { kind = usual } = fieldsOf(item);
    if (kind !== "Node" && kind !== "Pod") others.set(String(kind), (others.get(String(kind)) ?? 0) + 1);
    else parts.push({ part: kind === "Node" ? "node" : "pods", posted: item, source, base: ["items", i] });
  }
  const nodes = parts.filter(({ part }) => part === "node").length;
  if (nodes > 1) return { fault: `a list of ${nodes} nodes: give one (kubectl get node NAME -o json)` };
  if (others.size === 0) return { parts };
  const counts = Array.from(others, ([kind, count]) => `${count} of kind ${kind}`).join(", ");
  return { parts, passed: `${counts} skipped: only a node and its pods count` };
}

/** An empty list shows at most by its kind which objects there are none of. */
function emptyList(source: InputDocument, kind: unknown): DocumentContent {
  const none = (posted: symbol): DocumentContent => ({ parts: [{ part: "pods", posted, source, base: [] }] });
  // a list from crictl has no kind; lists from kubectl and the kubelet have one
  if (kind === undefined) return { parts: [{ part: "sandboxes", posted: source.value, source, base: ["items"] }] };
  if (kind === "NodeList") return { fault: "a list without a node" };
  if (kind === "PodList") return none(NO_POD);
  if (kind === "List") return none(NOTHING);
  return { parts: [], passed: `skipped, as it is ${formText(source.value)} without items` };
}

/** The node is known to have no pods. */
export const NO_POD = Symbol("an empty list of pods");
/** `kubectl get pods -o json` and `kubectl get events -o json` print the same if there are none. */
export const NOTHING = Symbol("an empty list of an unknown kind");
