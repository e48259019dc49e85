import { parseDocuments } from "../../../actuator/manifests/parse.ts";
import { problemText, type ReadProblem } from "../../../actuator/manifests/problem.ts";
import type { InputDocument } from "../../inputs/document.ts";
import { jsonFaultOf } from "../../model/json-fault.ts";
import { err, ok, type Result } from "../../model/result.ts";

/** A text that somebody pasted or chose as a file, and what it is called in what is said about it. */
export interface GivenText {
  readonly name: string;
  readonly text: string;
}

/** Beyond, a text must be JSON, and places in it are told by path alone: the YAML parser takes hundreds of bytes a character. */
const MAX_YAML_CHARACTERS = 512 * 1024;

/** The documents of a text, JSON or YAML. Errors: in words, each with its place. */
export function documentsOf({ name, text }: GivenText): Result<readonly InputDocument[], readonly string[]> {
  const hasPlaces = text.length <= MAX_YAML_CHARACTERS;
  if (!hasPlaces) {
    const fault = largeFault(name, text);
    if (fault !== null) return err([fault]);
  }
  const { documents, problems } = parseDocuments(text, name);
  if (problems.length > 0) return err(problems.map((problem) => problemText(alone(problem, text))));
  if (documents.length === 0) return err([`${name}: holds no object: expected JSON or YAML`]);
  return ok(documents.map((document) => ({ ...document, hasPlaces })));
}

/** The one document of a text. */
export function documentOf(given: GivenText): Result<InputDocument, readonly string[]> {
  const read = documentsOf(given);
  if (!read.ok) return read;
  const [first, second] = read.value;
  return first === undefined || second !== undefined
    ? err([`${given.name}: holds ${read.value.length} documents: give one`])
    : ok(first);
}

/** Which document it is, is told where there are several. */
function alone(problem: ReadProblem, text: string): ReadProblem {
  if (/^---/m.test(text)) return problem;
  const { document: _only, ...rest } = problem;
  return rest;
}

function largeFault(name: string, text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch {
    const { line, column, message } = jsonFaultOf(text);
    return `${name}:${line}:${column}: is not JSON: ${message}; YAML may have ${MAX_YAML_CHARACTERS / 1024} KiB`;
  }
}
