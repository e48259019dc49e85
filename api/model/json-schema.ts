import { LIMITS } from "./limits.ts";

/** A schema in JSON Schema's own words, as the OpenAPI document holds it. */
export type JsonSchema = { readonly [keyword: string]: unknown };
export type JsonSchemas = Readonly<Record<string, JsonSchema>>;

export const ref = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` });
export const NULL: JsonSchema = { type: "null" };
export const TEXT: JsonSchema = { type: "string", maxLength: LIMITS.textLength };
export const COUNT: JsonSchema = { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER };
/** An object without other members than these. */
export const strictObject = (properties: JsonSchemas, required: readonly string[] = []): JsonSchema => ({
  type: "object",
  additionalProperties: false,
  ...(required.length > 0 && { required }),
  properties,
});
