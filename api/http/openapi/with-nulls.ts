import type { JsonSchema } from "../../base/json-schema.ts";

type Schemas = Readonly<Record<string, JsonSchema>>;

/** The same schema where each member that may be absent may be null, too. */
export function withNulls(schema: JsonSchema): JsonSchema {
  const { items, anyOf, properties, patternProperties, additionalProperties, ...rest } = schema;
  const required = (schema["required"] ?? []) as readonly string[];
  const ofNames = (names: unknown): Schemas => {
    const members = Object.entries(names as Schemas).map(([name, member]) => {
      const made = withNulls(member);
      return [name, required.includes(name) ? made : orNull(made)];
    });
    return Object.fromEntries(members);
  };
  return {
    ...rest,
    ...(items !== undefined && { items: withNulls(items as JsonSchema) }),
    ...(anyOf !== undefined && { anyOf: (anyOf as readonly JsonSchema[]).map(withNulls) }),
    ...(properties !== undefined && { properties: ofNames(properties) }),
    ...(patternProperties !== undefined && { patternProperties: ofNames(patternProperties) }),
    ...(additionalProperties !== undefined && {
      additionalProperties: additionalProperties && orNull(withNulls(additionalProperties as JsonSchema)),
    }),
  };
}
/** The same schema, or null. */
export function orNull(schema: JsonSchema): JsonSchema {
  const { type, enum: words, anyOf } = schema;
  if (type === "null") return schema;
  if (Array.isArray(anyOf)) return { ...schema, anyOf: [...anyOf, { type: "null" }] };
  if (type === undefined || "const" in schema) return { anyOf: [schema, { type: "null" }] };
  const types = [type, "null"].flat();
  return { ...schema, type: types, ...(Array.isArray(words) && { enum: [...words, null] }) };
}
