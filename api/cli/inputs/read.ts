import { readText } from "../../../actuator/core/read-text.ts";
import type { InputDocument } from "../../documents/inputs/origin.ts";
import { parseDocuments } from "../../documents/parse.ts";
import { problemText, type ReadProblem } from "../../documents/problem.ts";
import { faultOf } from "../../model/json-fault.ts";
import { ok, type Result } from "../../model/result.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";

/** The largest size of one file or of standard input; a snapshot of 512 pods is far smaller. */
const MAX_BYTES = 64 * 1024 * 1024;
/** The YAML parser, which also finds the places in JSON, takes some 350 bytes of memory for each character. */
const MAX_YAML_CHARACTERS = 4 * 1024 * 1024;

interface InputText {
  readonly text: string;
  readonly file: string;
}
const refuse = (problem: ReadProblem) => fault(EXIT.badInput, problemText(problem));

async function readInput(path: string): Promise<Result<InputText, Fault>> {
  const file = path === "-" ? "standard input" : path;
  const text = await readText(path === "-" ? process.stdin : path, file, MAX_BYTES);
  return text.ok ? ok({ text: text.value, file }) : refuse(text.error);
}

/** Every document of a file, or of standard input for `-`. JSON may have 64 MiB, YAML 4. */
export async function readDocuments(path: string): Promise<Result<readonly InputDocument[], Fault>> {
  const input = await readInput(path);
  return input.ok ? documentsOf(input.value) : input;
}

function documentsOf({ text, file }: InputText): Result<readonly InputDocument[], Fault> {
  const hasPlaces = text.length <= MAX_YAML_CHARACTERS;
  if (!hasPlaces) {
    const why = jsonFault(text);
    const limit = `YAML may have ${MAX_YAML_CHARACTERS / 1024 ** 2} MiB, and this is no JSON, which may have more`;
    if (why !== undefined) return fault(EXIT.badInput, `${file}: ${limit} (${why}): give JSON, or split it`);
  }
  const { documents, problems } = parseDocuments(text, file);
  const [first] = problems;
  if (first !== undefined) return refuse(first);
  if (documents.length === 0) return fault(EXIT.badInput, `${file}: holds no object: expected JSON or YAML`);
  return ok(documents.map((document) => ({ ...document, hasPlaces })));
}

/** Why a text is not a JSON object or array; undefined when it is one. */
function jsonFault(text: string): string | undefined {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null ? undefined : "it is neither an object nor an array";
  } catch {
    return faultOf(text);
  }
}

/** The one document of a file. */
export async function readDocument(path: string): Promise<Result<InputDocument, Fault>> {
  const input = await readInput(path);
  return input.ok ? onlyDocument(input.value) : input;
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
 * A state file of the kubelet: `posted` is its text as the disk has it, even where that is cut off, since the decision says
 * what the kubelet would find wrong with it; what was written by hand in YAML is posted as its value. `document`: null
 * where it holds none.
 */
export async function readStateFile(
  path: string,
): Promise<Result<{ readonly posted: unknown; readonly document: InputDocument | null }, Fault>> {
  const input = await readInput(path);
  if (!input.ok) return input;
  const { text } = input.value;
  const read = onlyDocument(input.value);
  if (!read.ok) return ok({ posted: text, document: null });
  return ok({ posted: jsonFault(text) === undefined ? text : read.value.value, document: read.value });
}
