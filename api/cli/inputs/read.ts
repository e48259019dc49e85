import { parseDocuments } from "../../../actuator/manifests/parse.ts";
import { problemText, type ReadProblem } from "../../../actuator/manifests/problem.ts";
import { readText } from "../../../actuator/manifests/read-text.ts";
import type { SourceDocument } from "../../../actuator/manifests/source-document.ts";
import { ok, type Result } from "../../model/result.ts";
import { EXIT, type Fault, fault } from "../exit.ts";

/** A document of a file; in a large one places cannot be looked up. */
export interface InputDocument extends SourceDocument {
  readonly hasPlaces: boolean;
}

/** Of one file or of standard input; a snapshot of 512 pods is far smaller. */
const MAX_BYTES = 64 * 1024 * 1024;
/** The YAML parser, which also finds the places in JSON, takes some 350 bytes of memory for each character. */
const MAX_YAML_CHARACTERS = 4 * 1024 * 1024;

/** Every document of a file, or of standard input for `-`. JSON may have 64 MiB, YAML 4. */
export async function readDocuments(path: string): Promise<Result<readonly InputDocument[], Fault>> {
  const file = path === "-" ? "standard input" : path;
  const refuse = (problem: ReadProblem) => fault(EXIT.badInput, problemText(problem));
  const text = await readText(path === "-" ? process.stdin : path, file, MAX_BYTES);
  if (!text.ok) return refuse(text.error);
  const hasPlaces = text.value.length <= MAX_YAML_CHARACTERS;
  if (!hasPlaces) {
    const why = jsonFault(text.value);
    const limit = `YAML may have ${MAX_YAML_CHARACTERS / 1024 ** 2} MiB, and this is no JSON, which may have more`;
    if (why !== undefined) return fault(EXIT.badInput, `${file}: ${limit} (${why}): give JSON, or split it`);
  }
  const { documents, problems } = parseDocuments(text.value, file);
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
  } catch (error) {
    return (error as Error).message;
  }
}

/** The one document of a file. */
export async function readDocument(path: string): Promise<Result<InputDocument, Fault>> {
  const read = await readDocuments(path);
  if (!read.ok) return read;
  const [first, second] = read.value;
  if (first === undefined || second !== undefined)
    return fault(EXIT.badInput, `${path}: holds ${read.value.length} documents: give a file with one`);
  return ok(first);
}
