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

/**
 * Beyond, a text must be JSON, and places in it are told by path alone. What `kubectl get pods -o yaml` prints of a full
 * node fits. The YAML parser takes a microsecond a character of that, and memory by the value: hence the second limit.
 */
export const MAX_YAML_CHARACTERS = 1024 * 1024;
/** Lines and commas, so at least as many as there are values. */
const MAX_YAML_VALUES = 64 * 1024;

/** The documents of a text, JSON or YAML. Errors: in words, each with its place. */
export function documentsOf({ name, text }: GivenText): Result<readonly InputDocument[], readonly string[]> {
  const limit = limitPassed(text);
  const hasPlaces = limit === null;
  if (!hasPlaces) {
    const fault = largeFault(name, text, limit);
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

/** Which limit of YAML a text is above, in words; null: none. */
function limitPassed(text: string): string | null {
  if (text.length > MAX_YAML_CHARACTERS)
    return `has ${Math.ceil(text.length / 1024).toLocaleString("en")} KiB, and YAML may have ${MAX_YAML_CHARACTERS / 1024 ** 2} MiB here`;
  let values = 0;
  for (const _ of text.matchAll(/[\n,]/g)) values++;
  return values > MAX_YAML_VALUES
    ? `has ${values.toLocaleString("en")} lines and commas, and YAML may have ${MAX_YAML_VALUES.toLocaleString("en")} here`
    : null;
}

/** What is meant as JSON is told where it stops being that. */
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
