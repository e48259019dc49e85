import { LIMITS } from "./limits.ts";

/** A JSON Schema, as the OpenAPI document contains it. */
export type JsonSchema = { readonly [keyword: string]: unknown };
export type JsonSchemas = Readonly<Record<string, JsonSchema>>;

export const ref = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` });
export const NULL: JsonSchema = { type: "null" };
export const TEXT: JsonSchema = { type: "string", maxLength: LIMITS.textLength };
export const COUNT: JsonSchema = { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER };
/** The schema of an object without other members. */
export const strictObject = (properties: JsonSchemas, required: readonly string[] = []): JsonSchema => ({
  type: "object",
  additionalProperties: false,
  ...(required.length > 0 && { required }),
  properties,
});
