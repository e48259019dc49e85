import {
  Composer,
  type CST,
  type Document,
  isScalar,
  Lexer,
  LineCounter,
  Parser,
  type Scalar,
  type Tags,
  visit,
  type YAMLMap,
} from "yaml";
import { depthExceeds, MAX_DEPTH, tooDeep } from "./depth.ts";
import { placeFinder, placeOf } from "./place.ts";
import type { Place, ProblemCode, ReadProblem } from "./problem.ts";
import type { SourceDocument } from "./source-document.ts";
import { SCALAR_TAGS } from "./yaml-scalars.ts";

export interface YamlSource {
  readonly document: Document;
  readonly lines: LineCounter;
}

/** Of one anchor, and what these expand to together. */
const MAX_EXPANSION = 100;
const MAX_ALIASES = 1000;
/** Kubernetes reads them by rules of its own (`SCALAR_TAGS`), or as text, or not at all: sets and the like are no JSON. */
const FOREIGN_TAGS = ["null", "bool", "int", "float", "timestamp", "binary", "omap", "pairs", "set"].map(
  (name) => `tag:yaml.org,2002:${name}`,
);

/**
 * The documents of a text in the YAML that Kubernetes reads: 1.1 with scalars of its own (`plainScalar`), `<<` merges.
 * Throws RangeError at the first place that is nested too deep, before any recursion over it.
 */
export function parseYaml(text: string): readonly YamlSource[] {
  const lines = new LineCounter();
  const composer = new Composer({
    version: "1.1",
    schema: "yaml-1.1",
    merge: true,
    customTags: kubernetesTags,
    resolveKnownTags: false,
    uniqueKeys: false, // quadratic there; `faultOfTree` looks for twins
    lineCounter: lines,
    prettyErrors: false,
    logLevel: "silent",
  });
  return Array.from(composer.compose(tokens(text, lines)), (document) => ({ document, lines }));
}

/** As `Parser.parse`, with an eye on its stack, which holds a token for each open collection and one for the document. */
function* tokens(text: string, lines: LineCounter): Generator<CST.Token, void> {
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    if (parser.stack.length > MAX_DEPTH + 2) throw new RangeError("nested too deep");
  }
  yield* parser.end();
}

const kubernetesTags = (tags: Tags): Tags => [
  ...tags.filter((tag) => typeof tag === "object" && !FOREIGN_TAGS.includes(tag.tag)),
  ...SCALAR_TAGS,
];

/** The document as plain values; `value` is null for an empty one. */
export function readYaml(source: YamlSource, file: string, index: number): SourceDocument | ReadProblem {
  const { document, lines } = source;
  const at = placeFinder(document, lines);
  const problem = (code: ProblemCode, message: string, place: Place = at([])): ReadProblem => ({
    code,
    file,
    document: index,
    place,
    message,
  });
  const [syntax] = document.errors;
  if (syntax?.code === "RESOURCE_EXHAUSTION") return tooDeep(file, index);
  if (syntax !== undefined) return problem("malformed", worded(syntax), placeOf(lines, syntax.pos[0]));
  try {
    const fault = faultOfTree(document);
    if (fault !== undefined) return problem(fault.code, fault.message, placeOf(lines, fault.offset));
    const value = document.toJS({ maxAliasCount: MAX_EXPANSION }) as unknown;
    return depthExceeds(value, MAX_DEPTH) ? tooDeep(file, index) : { value, file, document: index, place: at };
  } catch (error) {
    if (error instanceof RangeError) return tooDeep(file, index);
    if (!(error instanceof Error)) throw error;
    return /^Excessive alias/.test(error.message) ? problem("alias-bomb", BOMB) : problem("malformed", worded(error));
  }
}

const BOMB = `expands one anchor more than ${MAX_EXPANSION} times: write the values out`;
const worded = (fault: Error): string => {
  const [first = ""] = fault.message.split("\n");
  return `is not YAML or JSON: ${first.charAt(0).toLowerCase()}${first.slice(1)}`;
};

interface TreeFault {
  readonly code: ProblemCode;
  readonly offset: number;
  readonly message: string;
}

/**
 * Twin keys, of which the last would silently win, numbers that JSON does not have, and more aliases than are resolved in
 * reasonable time.
 */
function faultOfTree(document: Document): TreeFault | undefined {
  let aliases = 0;
  let fault: TreeFault | undefined;
  visit(document, {
    Scalar: (key, scalar) => {
      if (key === "key") return undefined;
      fault = notInJson(scalar);
      return fault === undefined ? undefined : visit.BREAK;
    },
    Alias: (_, alias) => {
      aliases++;
      if (aliases <= MAX_ALIASES) return undefined;
      fault = {
        code: "alias-bomb",
        offset: alias.range?.[0] ?? 0,
        message: `uses more than ${MAX_ALIASES} aliases: write the values out`,
      };
      return visit.BREAK;
    },
    Map: (_, map) => {
      fault = twinKey(map);
      return fault === undefined ? undefined : visit.BREAK;
    },
  });
  return fault;
}

function notInJson({ value, source, range }: Scalar): TreeFault | undefined {
  if (typeof value !== "number" || Number.isFinite(value)) return undefined;
  const message = `\`${source ?? value}\` is a number that no JSON holds, so Kubernetes refuses it: put it in quotes, or give a number`;
  return { code: "malformed", offset: range?.[0] ?? 0, message };
}

export const twinText = (key: string): string => `has the key \`${key.slice(0, 60)}\` twice: keep one`;

function twinKey(map: YAMLMap): TreeFault | undefined {
  const seen = new Set<unknown>();
  for (const { key } of map.items) {
    if (!isScalar(key) || key.value === "<<") continue;
    if (seen.has(key.value)) {
      return {
        code: "malformed",
        offset: key.range?.[0] ?? 0,
        message: twinText(String(key.value)),
      };
    }
    seen.add(key.value);
  }
  return undefined;
}
