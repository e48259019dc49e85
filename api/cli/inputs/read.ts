import { existsSync } from "node:fs";
import { readText } from "../../../actuator/core/read-text.ts";
import { unknownFieldLines } from "../../../actuator/daemon/configuration-file.ts";
import { podFieldsOf } from "../../../actuator/lifecycle/spec/rules.ts";
import { joinPath } from "../../base/input-issue.ts";
import { faultOf } from "../../base/json-fault.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { hasForm } from "../../documents/document-form.ts";
import type { InputDocument, Origin, Path } from "../../documents/inputs/origin.ts";
import { misplaced, type PartOption, wrapperOf, wrongKind } from "../../documents/inputs/parts.ts";
import { isLscpu, machineOfLscpu } from "../../documents/lscpu.ts";
import { parseDocuments } from "../../documents/parse.ts";
import { placedIssue, problemText, type ReadProblem } from "../../documents/problem.ts";
import type { Profile } from "../../profiles/profile.ts";
import { unknownFields } from "../../profiles/unknown-fields.ts";
import { isNodeName } from "../cluster-options.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";
import { libraryMachine, suggestMachine } from "./machine-library.ts";

export interface ReadPart {
  /** The value as the snapshot has it. */
  readonly posted: unknown;
  /** Null for the text of a state file that is no document, and for machines of the library and of lscpu. */
  readonly document: InputDocument | null;
  /** The path of the part in its document. */
  readonly base: Path;
}
type Option = Exclude<PartOption, "pods">;
const STATE_FILES: readonly Option[] = [
  "cpu-manager-state",
  "memory-manager-state",
  "device-checkpoint",
  "dra-state",
  "dra-health",
];

/** Reads the file of one option. Errors: those of the file, and a document that does not suit the option. */
export async function readPart(option: Option, path: string): Promise<Result<ReadPart, Fault>> {
  if (STATE_FILES.includes(option)) return readState(option, path);
  const known = option === "machine" ? libraryMachine(path) : undefined;
  if (known !== undefined) return ok({ posted: known.machine, document: null, base: [] });
  if (option === "node" && isNodeName(path) && !existsSync(path))
    return fault(EXIT.badInput, `--node ${path}: no such file: check the path; ${OF_CLUSTER}`);
  if (option === "machine" && isUnknownName(path))
    return fault(
      EXIT.badInput,
      `--machine ${path}: is neither a file nor a machine of the library: ${suggestMachine(path)}`,
    );
  const source = await readDocument(path);
  if (!source.ok) return source;
  const document = source.value;
  const single = option === "node" ? singleNode(document.value) : ok({ value: document.value, base: [] });
  if (!single.ok) return fault(EXIT.badInput, `${document.file}: ${single.error}`);
  const { value, base } = single.value;
  if (option === "machine" && isLscpu(value)) {
    const machine = machineOfLscpu(value);
    if (!machine.ok) return fault(EXIT.badInput, `${document.file}: ${machine.error}`);
    // converted: its paths are not those of the file
    return ok({ posted: machine.value, document: null, base: [] });
  }
  return partOf(option, document, base);
}

/** The value at `base` of a document, as the part of an option. Errors: it is something else. */
export function partOf(option: Option, document: InputDocument, base: Path): Result<ReadPart, Fault> {
  const posted = valueAt(document, base);
  const wrong = wrongKind(posted, option);
  if (wrong !== undefined) return fault(EXIT.badInput, placeText(document, base, wrong));
  const why = misplaced(posted, option);
  if (why !== undefined) return fault(EXIT.badInput, `${document.file}: ${why}`);
  return ok({ posted, document, base: [...base, ...wrapperOf(option, posted)] });
}
const placeText = (document: InputDocument, base: Path, { at, message }: { at: Path; message: string }): string =>
  document.hasPlaces
    ? placedIssue(document, { base, at, message })
    : `${document.file}: ${joinPath("", at)}: ${message}`;

/**
 * A line for each field of a configuration that a kubelet of the version ignores; a configuration that a kubelet printed has
 * exactly its version's fields.
 */
export const leftOutOf = (
  document: InputDocument,
  base: Path,
  configuration: unknown,
  { fieldNames }: Profile,
): readonly string[] =>
  wrapperOf("config", configuration).length > 0 || !document.hasPlaces
    ? []
    : unknownFieldLines(document, base, unknownFields(configuration, fieldNames));

/** The same for manifests: a pod with a uid was stored by an API server and has exactly its version's fields. */
export function leftOutOfPods(pods: readonly Pick<Origin, "source" | "base">[], profile: Profile): readonly string[] {
  const known = podFieldsOf(profile);
  return pods.flatMap(({ source, base }) => {
    const pod = valueAt(source, base);
    return hasUid(pod) || !source.hasPlaces ? [] : unknownFieldLines(source, base, unknownFields(pod, known));
  });
}

export const valueAt = ({ value }: InputDocument, base: Path): unknown =>
  base.reduce<unknown>((at, step) => ((at ?? {}) as Readonly<Record<string | number, unknown>>)[step], value);

export function hasUid(pod: unknown): boolean {
  const { metadata } = (pod ?? {}) as { readonly metadata?: { readonly uid?: unknown } | null };
  return typeof metadata?.uid === "string" && metadata.uid !== "";
}

async function readState(option: Option, path: string): Promise<Result<ReadPart, Fault>> {
  const read = await readStateFile(path);
  if (!read.ok) return read;
  const { posted, document } = read.value;
  const why = document === null ? undefined : misplaced(document.value, option);
  return why === undefined ? ok({ posted, document, base: [] }) : fault(EXIT.badInput, `${document?.file}: ${why}`);
}

/** Names of the library take precedence: a file with such a name is given as `./NAME`. */
const isUnknownName = (given: string): boolean => /^[\w-]+$/.test(given) && given !== "-" && !existsSync(given);
const OF_CLUSTER = "for a node of that name in a live cluster give --context NAME too";

/** `kubectl get nodes -o json` prints a list even for one node; `kubectl get nodes,pods` adds other objects. */
function singleNode(value: unknown): Result<{ value: unknown; base: Path }, string> {
  const { kind, items } = (value ?? {}) as { kind?: unknown; items?: unknown };
  if ((kind !== "List" && kind !== "NodeList") || !Array.isArray(items)) return ok({ value, base: [] });
  const nodes = [...items.keys()].filter((i) => hasForm(items[i], "v1.Node") && !hasForm(items[i], "v1.Pod"));
  const [only = 0] = nodes;
  if (nodes.length === 1) return ok({ value: items[only] as unknown, base: ["items", only] });
  const isPods = items.length > 0 && items.every((item) => hasForm(item, "v1.Pod"));
  if (isPods) return err(`holds ${items.length} pods, and --node needs one node: give it with --pods`);
  return err(`holds ${nodes.length} nodes: give one (kubectl get node NAME -o json)`);
}

/** The largest file or standard input; a snapshot of 512 pods is far smaller. */
const MAX_BYTES = 64 * 1024 * 1024;
/** The YAML parser, which also finds positions in JSON, needs some 350 bytes of memory per character. */
const MAX_YAML_CHARACTERS = 4 * 1024 * 1024;

interface InputText {
  readonly text: string;
  readonly file: string;
}
const refuse = (problem: ReadProblem) => fault(EXIT.badInput, problemText(problem));

/** The text of a file, or of standard input for `-`. */
export async function readInput(path: string): Promise<Result<InputText, Fault>> {
  const file = path === "-" ? "standard input" : path;
  const text = await readText(path === "-" ? process.stdin : path, file, MAX_BYTES);
  return text.ok ? ok({ text: text.value, file }) : refuse(text.error);
}

/** Every document of a file, or of standard input for `-`. JSON may have 64 MiB, YAML 4. */
export async function readDocuments(path: string): Promise<Result<readonly InputDocument[], Fault>> {
  if (partIn(path) !== undefined) {
    const part = await readDocument(path);
    return part.ok ? ok([part.value]) : part;
  }
  const input = await readInput(path);
  return input.ok ? documentsOf(input.value) : input;
}

/** `FILE#/given/pod` is a part of the one document in a file (RFC 6901), unless a file has that name. */
function partIn(path: string): { readonly file: string; readonly steps: Path } | undefined {
  const at = path.indexOf("#/");
  if (at <= 0 || existsSync(path)) return undefined;
  const steps = path.slice(at + 2).split("/");
  return { file: path.slice(0, at), steps: steps.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~")) };
}

function documentsOf({ text, file }: InputText): Result<readonly InputDocument[], Fault> {
  const hasPlaces = text.length <= MAX_YAML_CHARACTERS;
  if (!hasPlaces) {
    const why = jsonFault(text);
    const limit = `YAML may have at most ${MAX_YAML_CHARACTERS / 1024 ** 2} MiB, and this is not JSON, which may have more`;
    if (why !== undefined) return fault(EXIT.badInput, `${file}: ${limit} (${why}): give JSON, or split it`);
  }
  const { documents, problems } = parseDocuments(text, file);
  const [first] = problems;
  if (first !== undefined) return refuse(first);
  if (documents.length === 0) return fault(EXIT.badInput, `${file}: holds no object: expected JSON or YAML`);
  return ok(documents.map((document) => ({ ...document, hasPlaces })));
}

/** Why a text is not a JSON object or array; undefined if it is one. */
function jsonFault(text: string): string | undefined {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null ? undefined : "it is neither an object nor an array";
  } catch {
    return faultOf(text);
  }
}

/** The one document of a file, or a part of it. */
export async function readDocument(path: string): Promise<Result<InputDocument, Fault>> {
  const part = partIn(path);
  const input = await readInput(part?.file ?? path);
  const read = input.ok ? onlyDocument(input.value) : input;
  if (!read.ok || part === undefined) return read;
  const { file } = read.value;
  const value = valueAt(read.value, part.steps);
  if (typeof value !== "object" || value === null)
    return fault(EXIT.badInput, `${file}: holds no object at ${part.steps.join(".")}`);
  return ok({ ...read.value, value, place: (at) => read.value.place([...part.steps, ...at]) });
}

function onlyDocument(input: InputText): Result<InputDocument, Fault> {
  const read = documentsOf(input);
  if (!read.ok) return read;
  const [first, second] = read.value;
  if (first === undefined || second !== undefined)
    return fault(EXIT.badInput, `${input.file}: holds ${read.value.length} documents: give a file with one`);
  return ok(first);
}

/**
 * A state file of the kubelet: `posted` is its text as on disk, even if truncated, since the decision reports what the kubelet
 * would find wrong; YAML written by hand is posted as its value. `document`: null if the text is no document.
 */
async function readStateFile(
  path: string,
): Promise<Result<{ readonly posted: unknown; readonly document: InputDocument | null }, Fault>> {
  if (partIn(path) !== undefined) {
    const part = await readDocument(path);
    return part.ok ? ok({ posted: part.value.value, document: part.value }) : part;
  }
  const input = await readInput(path);
  if (!input.ok) return input;
  const { text } = input.value;
  const read = onlyDocument(input.value);
  if (!read.ok) return ok({ posted: text, document: null });
  return ok({ posted: jsonFault(text) === undefined ? text : read.value.value, document: read.value });
}
