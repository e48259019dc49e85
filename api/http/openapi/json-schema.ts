export type JsonSchema = { readonly [keyword: string]: unknown };
export const ref = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` });
export const NULL: JsonSchema = { type: "null" };
/** An object without other members than these. */
export const strictObject = (
  properties: Readonly<Record<string, JsonSchema>>,
  required: readonly string[] = [],
): JsonSchema => ({
  type: "object",
  additionalProperties: false,
  ...(required.length > 0 && { required }),
  properties,
});

/** A KubeletConfiguration, alone or as /configz wraps it. */
export const CONFIGURATION: JsonSchema = {
  anyOf: [
    ref("KubeletConfiguration"),
    {
      type: "object",
      description: "as the kubelet's /configz answers it",
      required: ["kubeletconfig"],
      properties: { kubeletconfig: ref("KubeletConfiguration") },
    },
  ],
};
