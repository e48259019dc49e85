import type { GoJson } from "./json.ts";

/** A Go type that JSON is decoded into; `name` as Go prints it. */
export type GoType =
  | { readonly kind: "string"; readonly name: string }
  | { readonly kind: WholeKind; readonly name: string }
  | { readonly kind: "slice"; readonly name: string; readonly of: GoType }
  | { readonly kind: "map"; readonly name: string; readonly keys: "string" | "int"; readonly of: GoType }
  | GoStruct
  /** A null stays null. */
  | { readonly kind: "pointer"; readonly name: string; readonly to: GoType };

type WholeKind = "int" | "uint32" | "uint64";
interface GoStruct {
  readonly kind: "struct";
  readonly name: string;
  readonly fields: Readonly<Record<string, GoType>>;
  /** An embedded struct, whose fields are also this struct's; errors include its name in the path. */
  readonly embedded?: { readonly name: string; readonly fields: Readonly<Record<string, GoType>> };
  /** True: the type has its own UnmarshalJSON, so errors name the struct around it. */
  readonly decodesItself?: true;
}

/** string, bigint, list, Map or record, by the type; null is Go's nil. */
export type GoValue = string | bigint | null | GoValue[] | Map<string, GoValue> | { [field: string]: GoValue };

interface GoDecoded {
  readonly value: GoValue;
  /** Go's message for the first value of a wrong type; decoding continues after it and leaves that field unchanged. */
  readonly error: string | undefined;
}

/**
 * Decodes as Go does: unknown members are ignored, names match in any case, a repeated member is decoded each time,
 * and null changes nothing but makes lists and maps nil. `start`: the initial values of the fields. Go 1.26:
 * encoding/json.Unmarshal.
 */
export function decodeGo(json: GoJson, type: GoType, start: GoValue): GoDecoded {
  const decoder: Decoder = { error: undefined, struct: undefined, path: [] };
  const value = decode(decoder, json, type, start);
  return { value, error: decoder.error };
}

interface Decoder {
  error: string | undefined;
  /** The innermost struct and the field names on the path. */
  struct: string | undefined;
  readonly path: string[];
}

function mismatch(decoder: Decoder, found: string, type: string): void {
  const { struct, path } = decoder;
  const bare = struct?.replace(/^.*\./, "");
  const where = bare === undefined ? "value" : `struct field ${bare}.${path.join(".")}`;
  decoder.error ??= `json: cannot unmarshal ${found} into Go ${where} of type ${type}`;
}

function decode(decoder: Decoder, json: GoJson, type: GoType, before: GoValue): GoValue {
  if (type.kind === "pointer") return json.kind === "null" ? null : decode(decoder, json, type.to, zeroOf(type.to));
  if (json.kind === "null") return type.kind === "slice" || type.kind === "map" ? null : before;
  if (json.kind === "array" && type.kind === "slice") {
    return json.items.map((item) => decode(decoder, item, type.of, zeroOf(type.of)));
  }
  if (json.kind === "object" && type.kind === "map") return decodeMap(decoder, json.members, type, before);
  if (json.kind === "object" && type.kind === "struct") return decodeStruct(decoder, json.members, type, before);
  if (json.kind === "string" && type.kind === "string") return json.text;
  if (json.kind === "number" && isWhole(type)) {
    const whole = wholeOf(json.text, type.kind);
    if (whole !== undefined) return whole;
    mismatch(decoder, `number ${json.text}`, type.name);
    return before;
  }
  mismatch(decoder, json.kind, type.name);
  return before;
}

function decodeMap(
  decoder: Decoder,
  members: readonly (readonly [string, GoJson])[],
  type: Extract<GoType, { kind: "map" }>,
  before: GoValue,
): GoValue {
  const map = before instanceof Map ? before : new Map<string, GoValue>();
  for (const [name, json] of members) {
    const value = decode(decoder, json, type.of, zeroOf(type.of));
    const key = type.keys === "string" ? name : keyOf(name);
    if (key === undefined) mismatch(decoder, `number ${name}`, "int");
    else map.set(key, value);
  }
  return map;
}
const keyOf = (name: string): string | undefined =>
  /^\+?\d+$|^-\d+$/.test(name) ? wholeOf(name.replace(/^\+/, ""), "int")?.toString() : undefined;

function decodeStruct(
  decoder: Decoder,
  members: readonly (readonly [string, GoJson])[],
  type: GoStruct,
  before: GoValue,
): GoValue {
  const record = before as { [field: string]: GoValue };
  const { struct } = decoder;
  const { fields, embedded } = type;
  const all = embedded === undefined ? fields : { ...fields, ...embedded.fields };
  for (const [name, json] of members) {
    const field = fieldOf(all, name);
    if (field === undefined) continue;
    if (type.decodesItself !== true) decoder.struct = type.name;
    decoder.path.push(embedded === undefined || Object.hasOwn(fields, field) ? field : `${embedded.name}.${field}`);
    record[field] = decode(decoder, json, all[field] as GoType, record[field] as GoValue);
    decoder.path.pop();
  }
  decoder.struct = struct;
  return record;
}
function fieldOf(fields: Readonly<Record<string, GoType>>, name: string): string | undefined {
  if (Object.hasOwn(fields, name)) return name;
  return Object.keys(fields).find((field) => field.toLowerCase() === name.toLowerCase());
}

function zeroOf(type: GoType): GoValue {
  if (type.kind === "string") return "";
  if (isWhole(type)) return 0n;
  if (type.kind !== "struct") return null;
  const record: { [field: string]: GoValue } = {};
  for (const field in type.fields) record[field] = zeroOf(type.fields[field] as GoType);
  return record;
}

const isWhole = (type: GoType): type is Extract<GoType, { kind: WholeKind }> =>
  type.kind === "int" || type.kind === "uint32" || type.kind === "uint64";
/** The whole number; undefined: the type cannot hold it. */
function wholeOf(text: string, kind: WholeKind): bigint | undefined {
  if (!/^-?\d{1,20}$/.test(text) || (kind !== "int" && text.startsWith("-"))) return undefined;
  const whole = BigInt(text);
  const held = kind === "int" ? BigInt.asIntN(64, whole) : BigInt.asUintN(kind === "uint32" ? 32 : 64, whole);
  return whole === held ? whole : undefined;
}
