import * as z from "zod";
import { memo } from "../base/cache.ts";
import { DURATION, type Duration, LONGEST_DURATION, parseDuration } from "../base/duration.ts";
import { LIMITS } from "../base/limits.ts";
import { LONGEST, suggestionText } from "../base/near-name.ts";
import { err, type Result } from "../base/result.ts";
import { isNegative, milliValue, value } from "./amount.ts";
import { LONGEST_QUANTITY, parseQuantity, QUANTITY_PATTERN, type Quantity } from "./quantity.ts";

/** Resource name -> quantity, as `resources.requests` and `status.capacity` have it. */
export type ResourceList = Readonly<Record<string, Quantity>>;

/** An optional field; null counts as absent: see `withoutNulls`. */
export const optional = <S extends z.ZodType>(schema: S) => schema.optional();

/** An optional field whose absence, null or empty list all become `value`, so that no default is reported. */
export const optionalOr = <S extends z.ZodType, V extends null | []>(schema: S, value: V) =>
  optional(schema).transform((given) => given ?? value);

export const text = z.string().max(LIMITS.textLength);
/** A part of a path below the cgroup root or the file system: never a separator, never `..`. */
export const pathPart = z
  .string()
  .regex(/^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/, "must be letters, digits, `-` or `.`, at most 253");
/** A host name may contain `_`, though no API server accepts such a node. */
export const nodeName = z
  .string()
  .regex(/^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/, "must be letters, digits, `-`, `.` or `_`, at most 253");
const PATH_PART = "(?:\\.{0,2}[^./\\u0000-\\u001f\\u007f-\\u009f]|\\.{3})[^/\\u0000-\\u001f\\u007f-\\u009f]*";
/** An absolute path in the file system. */
export const absolutePath = z
  .string()
  .max(4096)
  .regex(
    new RegExp(`^(?:/(?:${PATH_PART})?)+$`),
    "must be a path from `/`, such as /sys/fs/cgroup, without `.` and `..`",
  );
const CGROUP_PART = "(?:\\.{0,2}[A-Za-z0-9_:@-]|\\.{3})[A-Za-z0-9._:@-]*";
/** A cgroup named in a configuration; it must not lead out of the hierarchy. */
export const cgroupPath = z
  .string()
  .max(1024)
  .regex(
    new RegExp(`^(?:${CGROUP_PART})?(?:/(?:${CGROUP_PART})?)*$`),
    "must be a cgroup path such as /system or /system.slice, without `.` and `..`",
  );
/** The error for a text that is no kubelet version. */
export const VERSION_FORM = "must be a version of the kubelet, such as 1.37 or v1.37.2";
export const VERSION_PATTERN = "^v?1\\.\\d{1,3}(?:\\.\\d{1,3}(?:[-+.][\\w.+-]{0,64})?)?$";
const VERSION = new RegExp(VERSION_PATTERN);
export const isVersion = (text: string): boolean => VERSION.test(text);
/** The version that a node reports; empty: none. */
export const reportedVersion = z.string().regex(new RegExp(`^$|${VERSION_PATTERN}`), `${VERSION_FORM}, or left out`);
export const wholeNumber = (min: number, max: number) => z.number().int().min(min).max(max);
export const count = wholeNumber(0, Number.MAX_SAFE_INTEGER);
const RFC3339 =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
/** Whether a text is an RFC 3339 time on an existing day, with nanoseconds at most. */
export const isTimestamp = (text: string): boolean => RFC3339.test(text) && isDay(text);
/** Whether the day exists: `Date.parse` reads the 30th of February as the 2nd of March. */
const isDay = (text: string): boolean => {
  const day = Number(text.slice(8, 10));
  return day <= 28 || new Date(`${text.slice(0, 10)}T00:00:00Z`).getUTCDate() === day;
};
/** The JSON Schema of such a text. */
export const timestampMeta = { format: "date-time", pattern: RFC3339.source } as const;
export const timestamp = z
  .string()
  .refine(isTimestamp, "must be an RFC 3339 time such as 2026-01-31T12:00:00Z")
  .meta(timestampMeta);

/** Whether a host name or address, an IPv6 one with or without brackets, is a loopback address. */
export const isLoopback = (host: string): boolean =>
  /^(?:localhost|127(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}|::1|\[::1\])$/i.test(host);

const issue = (ctx: z.RefinementCtx, message: string, path: (string | number)[] = []): never => {
  ctx.addIssue({ code: "custom", message, path });
  return z.NEVER;
};
const typeName = (v: unknown): string => (v === null ? "null" : Array.isArray(v) ? "array" : typeof v);

type Fault = { readonly code: "malformed" | "negative" | "out_of_range"; readonly message: string };

/** The cache size for texts that lists and fields repeat, within a node and between nodes. */
const REPEATED = 4096;
const LONGEST_REPEATED = 64;
const knownQuantity = memo(REPEATED, parseQuantity);
const knownDuration = memo(REPEATED, parseDuration);

function readQuantity(v: unknown, name: string): Result<Quantity, Fault> {
  if (typeof v !== "string" && typeof v !== "number") {
    return err({ code: "malformed", message: `expected a quantity (text or number), received ${typeName(v)}` });
  }
  const text = String(v);
  const parsed = text.length > LONGEST_REPEATED ? parseQuantity(text) : knownQuantity(text);
  if (!parsed.ok) return parsed;
  const { amount } = parsed.value;
  if (isNegative(amount)) return err({ code: "negative", message: `quantity \`${v}\` is negative` });
  const tooLarge = name === "cpu" ? milliValue(amount) > LIMITS.milliCpu : value(amount) > LIMITS.units;
  return tooLarge ? err({ code: "out_of_range", message: `quantity \`${v}\` is absurdly large for ${name}` }) : parsed;
}

const RESOURCE_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,315}[A-Za-z0-9])?$/;
const LONGEST_NAME = 317;
const isResourceName = memo(LIMITS.nodeResources, (name) => RESOURCE_NAME.test(name) && !(name in Object.prototype));

interface ResourceListForm {
  /** True: the kernel reported it, so "unlimited" is an absurdly large number; such entries are dropped. */
  readonly observed: boolean;
  readonly most: number;
}
function readResourceList(v: unknown, ctx: z.RefinementCtx, { observed, most }: ResourceListForm): ResourceList {
  if (typeof v !== "object" || v === null || Array.isArray(v)) {
    return issue(ctx, `expected an object of quantities, received ${typeName(v)}`);
  }
  const names = Object.keys(v);
  if (names.length > most) return issue(ctx, `more than ${most} resources`);
  const list: Record<string, Quantity> = {};
  for (const name of sorted(names)) {
    if (name.length > LONGEST_NAME || !isResourceName(name)) return issue(ctx, "not a resource name", [name]);
    const quantity = readQuantity((v as Record<string, unknown>)[name], name);
    if (quantity.ok) list[name] = quantity.value;
    else if (!observed || quantity.error.code !== "out_of_range") {
      ctx.addIssue({ code: "custom", message: quantity.error.message, path: [name] });
    }
  }
  return list;
}
/** Sorted names: the canonical order of a map. Most are sorted already, so this checks before it copies. */
function sorted(names: string[]): string[] {
  for (let i = 1; i < names.length; i++) {
    if ((names[i - 1] as string) > (names[i] as string)) return names.slice().sort();
  }
  return names;
}

/** A map with sorted keys (its canonical form) and at most `most` of them. */
export const sortedRecord = <V extends z.ZodType>(key: z.ZodType<string, string>, entry: V, most: number) =>
  z
    .record(key, entry)
    .transform((map, ctx): Readonly<Record<string, z.output<V>>> => {
      const keys = Object.keys(map);
      if (keys.length > most) return issue(ctx, `more than ${most} entries`);
      const order = sorted(keys);
      const entries = map as Readonly<Record<string, z.output<V>>>;
      return order === keys ? entries : Object.fromEntries(order.map((k) => [k, entries[k] as z.output<V>]));
    })
    .meta({ maxProperties: most });

/** The JSON Schema of a quantity; it cannot express that an amount is too large. */
const quantityMeta = {
  type: ["string", "number"],
  description: "a Kubernetes quantity: 500m, 1.5, 64Mi, 1e3",
  pattern: QUANTITY_PATTERN,
  minLength: 1,
  maxLength: LONGEST_QUANTITY,
  minimum: 0,
};
const numberUpTo = (maximum: number) => ({ ...quantityMeta, maximum });
/** The JSON Schema of a resource name. */
const resourceNameMeta = {
  pattern: RESOURCE_NAME.source,
  not: { enum: Object.getOwnPropertyNames(Object.prototype).filter((name) => RESOURCE_NAME.test(name)) },
};
export const resourceName = z
  .string()
  .max(LONGEST_NAME)
  .refine((name) => isResourceName(name), "not a resource name")
  .meta(resourceNameMeta);
const listMeta = ({ observed, most }: ResourceListForm) => ({
  type: "object",
  description: "quantities by resource name",
  maxProperties: most,
  propertyNames: resourceNameMeta,
  ...(observed
    ? { additionalProperties: quantityMeta }
    : {
        properties: { cpu: numberUpTo(LIMITS.milliCpu / 1000) },
        additionalProperties: numberUpTo(LIMITS.units),
      }),
});
const resourceListOf = (form: ResourceListForm) =>
  z
    .unknown()
    .transform((v, ctx) => readResourceList(v, ctx, form))
    .meta(listMeta(form));
export const resourceList = resourceListOf({ observed: false, most: LIMITS.resourcesPerList });
/** A node's resource list, including the resources of device plugins. */
export const nodeResourceList = resourceListOf({ observed: false, most: LIMITS.nodeResources });
/** A resource list in a status, with values that the kernel reported. */
export const observedResourceList = resourceListOf({ observed: true, most: LIMITS.resourcesPerList });
export const quantity = z
  .unknown()
  .transform((v, ctx): Quantity => {
    const read = readQuantity(v, "this field");
    return read.ok ? read.value : issue(ctx, read.error.message);
  })
  .meta(numberUpTo(LIMITS.units));

export const duration = z
  .string()
  .transform((v, ctx): Duration => {
    const parsed = v.length > LONGEST_REPEATED ? parseDuration(v) : knownDuration(v);
    return parsed.ok ? parsed.value : issue(ctx, parsed.error);
  })
  .meta({
    type: "string",
    description: "a Go duration: 100ms, 10s, 5m0s",
    pattern: DURATION.source,
    maxLength: LONGEST_DURATION,
  });

/** A regular expression for a text of letters, digits, dots, dashes and slashes. */
export const literally = (text: string): string => text.replaceAll(".", "[.]");

/**
 * A map of texts (labels, annotations, policy options) with sorted keys; with `kept`, only keys that a decision reads.
 */
export const textMap = (kept?: RegExp) =>
  z
    .unknown()
    .transform((v, ctx): Readonly<Record<string, string>> => {
      if (typeof v !== "object" || v === null || Array.isArray(v)) {
        return issue(ctx, `expected an object of texts, received ${typeName(v)}`);
      }
      const keys = kept === undefined ? Object.keys(v) : Object.keys(v).filter((key) => kept.test(key));
      if (keys.length > LIMITS.labels) return issue(ctx, `more than ${LIMITS.labels} entries`);
      const map: Record<string, string> = {};
      for (const key of sorted(keys)) {
        const entry = (v as Record<string, unknown>)[key];
        if (typeof entry !== "string") ctx.addIssue({ code: "custom", message: "expected text", path: [key] });
        else if (key === "__proto__") ctx.addIssue({ code: "custom", message: "not a usable key", path: [key] });
        else map[key] = entry;
      }
      return map;
    })
    .meta(
      kept === undefined
        ? {
            type: "object",
            maxProperties: LIMITS.labels,
            additionalProperties: { type: "string" },
          }
        : { type: "object", patternProperties: { [kept.source]: { type: "string" } } },
    );

/** An object of our own form: an unknown field is refused, the first one with the similar name. */
export const knownFields = <S extends z.ZodRawShape>(shape: S) =>
  z.strictObject(shape, {
    error: (issue) =>
      issue.code === "unrecognized_keys" ? noSuchField(issue.keys[0] as string, Object.keys(shape)) : undefined,
  });
/** Which members an object of a form has, and which it must not have. */
export interface FormMembers {
  readonly needs: readonly string[];
  readonly lacks: readonly string[];
}
/**
 * Documents a form whose members exclude or require each other, as one of several forms. The check itself reports such
 * faults with its own messages.
 */
export const oneOfForms = (form: z.ZodObject, forms: readonly FormMembers[]): readonly z.ZodObject[] =>
  forms.map(({ needs, lacks }) =>
    form.extend({
      ...Object.fromEntries(needs.map((name) => [name, z.nonoptional(form.shape[name] as z.ZodType)])),
      ...Object.fromEntries(lacks.map((name) => [name, optional(z.null())])),
    }),
  );

function noSuchField(given: string, names: readonly string[]): string {
  const meant = given.length > LONGEST ? null : suggestionText(given, names);
  return `there is no such field${meant === null ? `, only ${names.join(", ")}` : `; ${meant}`}`;
}
