import * as z from "zod";
import { ROUTES } from "../../http/index.ts";
import { openApi } from "../../http/openapi/contract.ts";
import { componentName } from "../../http/openapi/input-schemas.ts";
import { KINDS, REFUSAL_CODES, VERDICTS } from "../../model/decision.ts";
import { type JsonSchema, type JsonSchemas, NULL, ref, strictObject } from "../../model/json-schema.ts";
import { caseFileForm } from "../test/case-file.ts";
import { COMMAND_FORMS } from "./command-schemas.ts";

const TEXT: JsonSchema = { type: "string" };
const listOf = (items: JsonSchema): JsonSchema => ({ type: "array", items });
const orNull = (schema: JsonSchema): JsonSchema => ({ anyOf: [schema, NULL] });
/** An object that has all of these members, and may have the optional ones. */
const whole = (members: JsonSchemas, optional: JsonSchemas = {}): JsonSchema =>
  strictObject({ ...members, ...optional }, Object.keys(members));

const REFUSAL = whole({ code: { type: "string", enum: REFUSAL_CODES }, message: TEXT, needs: listOf(TEXT) });

/** The schema of `nodewise decide KIND -o json`: an answer, a refusal, or with --set and --patch the answers before and after. */
function decideSchema(kind: string): JsonSchema {
  const head = {
    kind: { const: kind },
    node: orNull({ ...TEXT, description: "null: no node was given" }),
    policyVersion: TEXT,
    profile: ref("Profile"),
  };
  const assumed = {
    assumed: { type: "object", description: "what was not given and was taken to be so; absent: nothing" },
  };
  const answer = {
    decision: ref(`${componentName(kind)}Decision`),
    verdict: { type: "string", enum: VERDICTS },
    reasons: listOf(ref("PlaceReasons")),
    needs: listOf(TEXT),
    next: { description: "what --facts takes for the next pass; null: the kind remembers nothing" },
  };
  const side: JsonSchema = {
    oneOf: [whole({ policyVersion: TEXT, ...answer }), whole({ policyVersion: TEXT, refusal: REFUSAL })],
  };
  const fromTo = (form: JsonSchema): JsonSchema => whole({ from: form, to: form });
  const comparison = {
    change: { type: "object", description: "the merge patch of the configuration" },
    kubelet: fromTo(TEXT),
    same: { type: "boolean" },
    verdict: fromTo(orNull({ ...TEXT, description: "null: it is refused" })),
    differences: listOf(whole({ path: TEXT }, { from: {}, to: {} })),
    truncated: { type: "boolean", description: "true: there are more differences than are listed" },
    findings: { ...listOf({ type: "object" }), description: "what `nodewise lint` finds that it did not find before" },
    before: side,
    after: side,
  };
  return {
    oneOf: [
      whole({ ...head, ...answer }, assumed),
      whole({ ...head, refusal: REFUSAL }, assumed),
      whole({ ...head, ...comparison }, assumed),
    ],
  };
}

/** The forms of the API by their names, and one form's members. */
type Components = Readonly<Record<string, JsonSchema>>;
const membersOf = (components: Components, name: string): JsonSchemas =>
  (components[name] as { readonly properties: JsonSchemas }).properties;
const picked = (members: JsonSchemas, ...names: readonly string[]): JsonSchemas =>
  Object.fromEntries(names.map((name) => [name, members[name] as JsonSchema]));

/** The schema of `nodewise lint -o json`: of files or one node, or with a cluster of all its nodes. */
function lintSchema(components: Components): JsonSchema {
  const finding = components["LintFinding"] as JsonSchema & { readonly properties: JsonSchemas };
  const where = {
    ...TEXT,
    description: "FILE:LINE, the file alone where no line is known, or the node; absent: it has no place",
  };
  const findings = listOf({ ...finding, properties: { ...finding.properties, where } });
  const why = orNull({ ...TEXT, description: "why the node was not looked over; null: it was" });
  const node = whole({ node: TEXT, profile: orNull(ref("Profile")), findings, why });
  return { oneOf: [whole({ profile: ref("Profile"), findings }), whole({ nodes: listOf(node) })] };
}

const SUM = ["counts", "byKind", "byNode", "byVersion", "verdicts"];
/** A line of `nodewise replay --json`: a decision that differs or cannot be read, how far it is, or in the end the sum. */
function replayLineSchema(components: Components): JsonSchema {
  const page = membersOf(components, "HistoryReplay");
  const going = whole(picked(page, "counts", "progress", "reachedAt", "nextPageToken"));
  const summary = whole(picked(page, ...SUM, "until", "reachedAt", "nextPageToken"));
  return { oneOf: [ref("ChangedDecision"), ref("UnreadableDecision"), whole({ going }), whole({ summary })] };
}

/** The schema of `nodewise upgrade -o json`. */
function upgradeSchema(components: Components): JsonSchema {
  const { history } = membersOf(components, "UpgradeAnswer");
  const unreported = listOf(whole({ node: TEXT, why: TEXT }));
  return whole({
    to: ref("Profile"),
    reports: listOf(ref("UpgradeReport")),
    unreported,
    history: history as JsonSchema,
  });
}

function formSchema(form: z.ZodType): JsonSchema {
  const { $schema: _, ...schema } = z.toJSONSchema(form, { io: "input", reused: "inline" });
  return schema;
}

interface Published {
  readonly what: string;
  readonly schema: (components: Components) => JsonSchema;
}
/** By the name that `nodewise schema` takes. */
export const PUBLISHED: ReadonlyMap<string, Published> = new Map<string, Published>([
  ...KINDS.map(
    (kind) => [kind, { what: `nodewise decide ${kind} -o json`, schema: () => decideSchema(kind) }] as const,
  ),
  ["why", { what: "nodewise why POD -o json", schema: () => ref("Story") }],
  ["why-list", { what: "nodewise why -o json, without a pod", schema: () => ref("StoryList") }],
  ["advise", { what: "nodewise advise reserves -o json", schema: () => ref("ReservesAdvice") }],
  ["lint", { what: "nodewise lint -o json", schema: lintSchema }],
  ["history", { what: "nodewise history -o json", schema: () => listOf(ref("DecisionHead")) }],
  ["history-show", { what: "nodewise history show ID -o json", schema: () => ref("FullDecision") }],
  ["replay", { what: "nodewise replay --json, each line", schema: replayLineSchema }],
  ["upgrade", { what: "nodewise upgrade -o json", schema: upgradeSchema }],
  [
    "agreement",
    {
      what: "nodewise agreement -o json",
      schema: (components) => whole(picked(membersOf(components, "AgreementAnswer"), "kinds", "outcomes")),
    },
  ],
  ["test", { what: "a file of cases for `nodewise test`", schema: () => formSchema(caseFileForm) }],
  [
    "machine",
    {
      what: "nodewise machines NAME -o json, and what --machine takes",
      schema: (components) => membersOf(components, "NodeSnapshot")["machine"] as JsonSchema,
    },
  ],
  [
    "dra-drivers",
    {
      what: "a file for `nodewise decide claims --dra-drivers`",
      schema: (components) =>
        membersOf({ dra: membersOf(components, "NodeSnapshot")["dra"] as JsonSchema }, "dra")["drivers"] as JsonSchema,
    },
  ],
  ...Object.entries(COMMAND_FORMS).map(
    ([name, [what, form]]) => [name, { what, schema: () => formSchema(form) }] as const,
  ),
  ["snapshot", { what: "nodewise snapshot -o json, and what --snapshot takes", schema: () => ref("NodeSnapshot") }],
]);

const COMPONENTS = "#/components/schemas/";
const isRef = (value: object): value is { readonly $ref: string } => "$ref" in value && typeof value.$ref === "string";

/** A JSON Schema (2020-12) that refers to nothing outside of itself. */
export async function publishedSchema(name: string, { what, schema }: Published): Promise<JsonSchema> {
  const { document } = await openApi(ROUTES);
  const { schemas } = document.components;
  const used = new Map<string, JsonSchema>();
  const own = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(own);
    if (!isRef(value)) return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, own(item)]));
    const to = value.$ref.slice(COMPONENTS.length);
    if (!used.has(to)) {
      // before its members, which may refer to it
      used.set(to, {});
      used.set(to, own(schemas[to]) as JsonSchema);
    }
    return { ...value, $ref: `#/$defs/${to}` };
  };
  const root = own(schema(schemas)) as JsonSchema;
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: name,
    description: what,
    ...root,
    $defs: Object.fromEntries([...used].sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}
