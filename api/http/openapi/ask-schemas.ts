import { KINDS, type Kind } from "../../model/decision.ts";
import { type JsonSchema, type JsonSchemas, ref, strictObject } from "../../model/json-schema.ts";
import type { AskSpec } from "../../model/kind-spec.ts";
import { specOf } from "../../model/kinds.ts";
import { PROBED_POD } from "./probed-pod.ts";
import { withNulls } from "./with-nulls.ts";

/** `image-gc` -> `ImageGc`. */
export const componentName = (kind: string): string =>
  kind.replace(/(?:^|-)(\w)/g, (_, first: string) => first.toUpperCase());
/** The name of the facts that a kind remembers. */
export const factsName = (kind: Kind): string => `${componentName(kind)}Facts`;

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

const factsMember = (kinds: readonly Kind[]): JsonSchemas => {
  const [kind] = kinds.filter((one) => specOf(one).facts !== null);
  if (kind === undefined) return {};
  const description = "the next of the node's last answer; absent: what the history remembers counts";
  return { facts: { ...ref(factsName(kind)), description } };
};
/** The schemas that they refer to, by name. */
export const ASK_SCHEMAS: JsonSchemas = {
  ProbedPod: PROBED_POD,
  ...Object.fromEntries(
    Array.from(KINDS_OF_ASKS).flatMap(([schema, kinds]) => {
      if (schema === null) return [];
      const asked = withNulls(strictObject({ ...schema.members, ...factsMember(kinds) }));
      const description = `what is asked of ${kinds.join(", ")} beside the snapshot`;
      return [[schema.name, { ...asked, description }]];
    }),
  ),
};
