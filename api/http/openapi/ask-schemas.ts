import type * as z from "zod";
import { type JsonSchema, ref } from "../../base/json-schema.ts";
import { KINDS, type Kind } from "../../model/decision.ts";
import { optional } from "../../model/fields.ts";
import type { AskSpec } from "../../model/kind-spec.ts";
import { specOf } from "../../model/kinds.ts";
import { inputSchema, type SchemaToMake } from "./input-schemas.ts";

type AskSchema = NonNullable<AskSpec["schema"]>;
/** The kinds of each form of ask; of the kinds under null nothing can be asked. */
const KINDS_OF_ASKS: ReadonlyMap<AskSchema | null, readonly Kind[]> = Map.groupBy(
  KINDS,
  (kind) => specOf(kind).ask.schema,
);

/** The asks of each group of kinds. */
export const ASKED: readonly { readonly kinds: readonly Kind[]; readonly asks: readonly JsonSchema[] }[] = Array.from(
  KINDS_OF_ASKS,
  ([schema, kinds]) => ({ kinds, asks: schema === null ? [] : [ref(schema.name)] }),
);

const factsOf = (kinds: readonly Kind[]): z.ZodRawShape => {
  const [facts] = kinds.map((kind) => specOf(kind).facts).filter((one) => one !== null);
  const description = "the `next` of the node's last answer of this kind; absent: the facts that the history remembers";
  return facts === undefined ? {} : { facts: optional(facts.form).describe(description) };
};
/** The asks' schemas, by name. */
export const askSchemas = (): readonly SchemaToMake[] =>
  Array.from(KINDS_OF_ASKS).flatMap(([schema, kinds]): SchemaToMake[] => {
    if (schema === null) return [];
    const description = `the input of ${kinds.join(", ")} in addition to the snapshot`;
    return [[schema.name, () => ({ ...inputSchema(schema.form.extend(factsOf(kinds))), description })]];
  });
