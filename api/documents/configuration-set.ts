import { joinPath } from "../base/input-issue.ts";
import { nearName } from "../base/near-name.ts";
import { err, ok, type Result } from "../base/result.ts";
import type { Profile } from "../profiles/profile.ts";
import { parseDocuments } from "./parse.ts";

/** One field of a KubeletConfiguration and its new value. */
interface FieldSet {
  /** `evictionHard["memory.available"]` */
  readonly path: string;
  /** A merge patch (RFC 7396), in which null removes the field. */
  readonly patch: Readonly<Record<string, unknown>>;
}

/**
 * Reads `PATH=VALUE` as kubectl and helm write it: `kubeReserved.cpu=500m`, `evictionHard["memory.available"]=1Gi` (also without
 * quotes, which a shell removes), `evictionHard.memory\.available=1Gi`. A map's key may also be unescaped:
 * `evictionHard.memory.available=1Gi`. The value has the type of the field in a kubelet of the profile; lists of texts are `[a,
 * b]`, `{a, b}` or `a,b`, lists of objects are JSON or YAML, and `null` removes a field. Errors, as readable messages: no such
 * form, a field that the kubelet does not know, a value of another type, a whole object (whether its other fields stay would be a
 * guess).
 */
export function configurationSet(text: string, profile: Profile): Result<FieldSet, string> {
  const read = stepsIn(text);
  if (read === null) return err("expected PATH=VALUE, such as kubeReserved.cpu=500m");
  const field = fieldAt(read.steps, profile);
  if (!field.ok) return field;
  const { steps, type } = field.value;
  const value = typedValue(read.value, type);
  const at = joinPath("", steps);
  if (!value.ok) return err(`${at}: ${value.error}, or null, which takes the field away`);
  // every object inherits it, so it cannot be set as a member
  if (steps.includes("__proto__")) return err(`${at}: is no name that a field or an entry can have`);
  const patch = steps.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value.value);
  return ok({ path: at, patch: patch as FieldSet["patch"] });
}

/** A name, a key in brackets, or the `=` before the value. */
const STEP = /\.?((?:\\.|[^\\.=[\]])+)|\["((?:\\.|[^"\\])*)"\]|\['((?:\\.|[^'\\])*)'\]|\[([^\]"'=]+)\]|(=)/sy;

/** The names of a path and the text after its `=`. Null if the form is different. */
function stepsIn(text: string): { readonly steps: readonly string[]; readonly value: string } | null {
  const steps: string[] = [];
  STEP.lastIndex = 0;
  while (STEP.lastIndex < text.length) {
    const isFirst = STEP.lastIndex === 0;
    const [all = "", name, double, single, bare, end] = STEP.exec(text) ?? [];
    // every name but the first begins with its dot
    const isOdd = all === "" || (name !== undefined && isFirst === all.startsWith("."));
    if (isOdd) return null;
    if (end !== undefined) return steps.length === 0 ? null : { steps, value: text.slice(STEP.lastIndex) };
    steps.push((name ?? double ?? single ?? bare ?? "").replace(/\\(.)/gs, "$1"));
  }
  return null;
}

/** The types of values. */
type ValueType = "bool" | "integer" | "number" | "text" | "texts" | "objects" | "object" | "number or text";

interface FoundField {
  readonly steps: readonly string[];
  readonly type: ValueType;
}

/** Finds the field of a path, object by object. */
function fieldAt(names: readonly string[], { fields, fieldNames }: Profile): Result<FoundField, string> {
  let form = "";
  for (const [i, name] of names.entries()) {
    const known = fieldNames.get(form) ?? [];
    const steps = names.slice(0, i + 1);
    if (!known.includes(name)) return err(unknownText(steps, known));
    form = form === "" ? name : `${form}.${name}`;
    const goType = fields.get(form) ?? "string";
    const rest = names.slice(i + 1);
    if (goType.startsWith("map[")) {
      // a map's key is arbitrary and may contain dots
      if (rest.length > 0)
        return ok({ steps: [...steps, rest.join(".")], type: typeOf(goType.replace(/^map\[string\]/, "")) });
      return ok({ steps, type: "object" });
    }
    if (rest.length === 0)
      return ok({ steps, type: fieldNames.has(form) && !goType.startsWith("[]") ? "object" : typeOf(goType) });
    const at = joinPath("", steps);
    if (goType.startsWith("[]")) return err(`${at} is a list, which is set as a whole: ${at}=[...]`);
    if (!fieldNames.has(form)) return err(`${at} has no fields of its own: give ${at}=VALUE`);
  }
  return err("expected PATH=VALUE, such as kubeReserved.cpu=500m");
}

function unknownText(steps: readonly string[], known: readonly string[]): string {
  const near = nearName(steps.at(-1) ?? "", known);
  const meant = near === null ? "" : `; did you mean ${joinPath("", [...steps.slice(0, -1), near])}?`;
  return `the kubelet knows no field ${joinPath("", steps)}${meant}`;
}

/** The type for a Go type that is no map. */
function typeOf(goType: string): ValueType {
  if (goType === "[]string") return "texts";
  if (goType.startsWith("[]")) return "objects";
  return BY_GO_TYPE[goType.replace(/^\*/, "")] ?? "text";
}
const BY_GO_TYPE: Readonly<Record<string, ValueType>> = {
  bool: "bool",
  int32: "integer",
  int64: "integer",
  "v1.VerbosityLevel": "integer",
  float64: "number",
  "v1.TimeOrMetaDuration": "number or text",
};

const NUMBER = /^[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?$/;

/** The value of that type. Errors: what is expected. */
function typedValue(text: string, type: ValueType): Result<unknown, string> {
  const value = text.trim();
  if (value === "null") return ok(null);
  if (type === "text") return ok(text);
  if (type === "bool")
    return value === "true" || value === "false" ? ok(value === "true") : expectedError("true or false", text);
  if (type === "texts") return textsIn(value);
  if (type === "object") return err("is an object: set one of its fields (--patch sets several)");
  if (type === "objects") return documentIn(value, "a list in JSON or YAML, such as [{name: value}]", Array.isArray);
  if (type === "number or text") return ok(NUMBER.test(value) ? Number(value) : text);
  if (NUMBER.test(value) && (type === "number" || Number.isSafeInteger(Number(value)))) return ok(Number(value));
  return expectedError(type === "number" ? "a number" : "a whole number", text);
}

const MAX_SHOWN = 60;
const expectedError = (what: string, text: string): Result<never, string> =>
  err(`expected ${what}, found \`${text.slice(0, MAX_SHOWN)}\``);

/** `[a, b]`, `{a, b}` as helm writes it, or `a,b`; an empty text has no items. */
function textsIn(value: string): Result<readonly string[], string> {
  const what = "texts such as [a, b]";
  if (!value.startsWith("[")) {
    const inner = /^\{(.*)\}$/s.exec(value)?.[1] ?? value;
    return ok(
      inner
        .split(",")
        .map((item) => item.trim())
        .filter((item) => item !== ""),
    );
  }
  return documentIn(
    value,
    what,
    (items): items is readonly string[] => Array.isArray(items) && items.every((item) => typeof item === "string"),
  );
}

function documentIn<T>(text: string, what: string, is: (value: unknown) => value is T): Result<T, string> {
  const [first, ...others] = parseDocuments(text, "the value").documents;
  return first !== undefined && others.length === 0 && is(first.value) ? ok(first.value) : expectedError(what, text);
}
