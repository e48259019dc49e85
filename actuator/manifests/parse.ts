import { jsonFaultOf } from "../../api/model/json-fault.ts";
import { depthExceeds, MAX_DEPTH, tooDeep } from "./depth.ts";
import { type JsonTwin, jsonTwinOf } from "./json-twin.ts";
import type { ReadProblem } from "./problem.ts";
import type { SourceDocument } from "./source-document.ts";
import { parseYaml, readYaml, twinText, type YamlSource } from "./yaml.ts";

export interface Parsed {
  readonly documents: readonly SourceDocument[];
  readonly problems: readonly ReadProblem[];
}

/**
 * Reads JSON, or YAML with any number of documents, as Kubernetes does. A bad document is a problem (malformed,
 * alias-bomb, too-deep) with its place, and does not hide the others. Empty documents are passed over. What is neither and
 * was meant as JSON is told in JSON's words.
 */
export function parseDocuments(text: string, file: string): Parsed {
  const json = parseJson(text);
  if (json !== undefined) {
    if (depthExceeds(json.value, MAX_DEPTH)) return { documents: [], problems: [tooDeep(file, 0)] };
    const twin = jsonTwinOf(text);
    if (twin !== null) return { documents: [], problems: [twinProblem(twin, file)] };
    return { documents: [jsonDocument(json.value, text, file)], problems: [] };
  }
  const documents: SourceDocument[] = [];
  const problems: ReadProblem[] = [];
  for (const [i, source] of sourcesOf(text).entries()) {
    const read = source === undefined ? tooDeep(file, i) : readYaml(source, file, i);
    if ("code" in read) problems.push(read);
    else if (read.value !== null) documents.push(read);
  }
  if (problems.some(({ code }) => code === "malformed") && isMeantAsJson(text, file))
    return { documents: [], problems: [jsonProblem(text, file)] };
  return { documents, problems };
}

/** By its name, or its first characters, which begin no usual YAML; several documents are YAML's alone. */
const isMeantAsJson = (text: string, file: string): boolean =>
  (file.endsWith(".json") || /^\s*(?:\{\s*["}]|\[\s*["[{\]\d-]|[{[]\s*$)/.test(text)) && !/^---/m.test(text);

function jsonProblem(text: string, file: string): ReadProblem {
  const { line, column, message } = jsonFaultOf(text);
  return { code: "malformed", file, document: 0, place: { line, column }, message: `is not JSON: ${message}` };
}

const twinProblem = ({ key, place }: JsonTwin, file: string): ReadProblem => ({
  code: "malformed",
  file,
  document: 0,
  place,
  message: twinText(key),
});

/** `undefined` stands for a text that is nested too deep. */
function sourcesOf(text: string): readonly (YamlSource | undefined)[] {
  try {
    return parseYaml(text);
  } catch (error) {
    if (error instanceof RangeError) return [undefined];
    throw error;
  }
}

/** Most JSON is well formed and then need not pass the YAML parser, which is slower but names the place of a fault. */
function parseJson(text: string): { readonly value: unknown } | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

function jsonDocument(value: unknown, text: string, file: string): SourceDocument {
  let parsed: SourceDocument | ReadProblem | undefined;
  return {
    value,
    file,
    document: 0,
    place: (path) => {
      const [source] = parsed === undefined ? sourcesOf(text) : [];
      parsed ??= source === undefined ? tooDeep(file, 0) : readYaml(source, file, 0);
      return "code" in parsed ? { line: 1, column: 1 } : parsed.place(path);
    },
  };
}
