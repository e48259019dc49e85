import * as z from "zod";
import { DRIFT_CAUSES } from "../../../actuator/plan/drift.ts";
import { deviceRow, nodeStatus, podRow } from "../../../actuator/status/node-status.ts";
import { probeRow } from "../../../actuator/status/probe-row.ts";
import { type JsonSchema, type JsonSchemas, NULL, ref, strictObject } from "../../base/json-schema.ts";
import { byKey } from "../../base/order.ts";
import { HANDLERS } from "../../decide/probes/plan.ts";
import { SCOPES } from "../../dependencies.ts";
import { ROUTES } from "../../http/index.ts";
import { openApi } from "../../http/openapi/contract.ts";
import { componentName } from "../../http/openapi/input-schemas.ts";
import { removal, removalSummary } from "../../http/openapi/list-answers.ts";
import { STEP_STATUSES } from "../../model/cgroups.ts";
import { KINDS, REFUSAL_CODES, VERDICTS } from "../../model/decision.ts";
import { specOf } from "../../model/kinds.ts";
import { caseFileForm } from "../test/case-file.ts";

const text = z.string();
const count = z.int().nonnegative();
const texts = z.array(text);

const ofStatus = { at: text, nodeName: text };
const pod = z.looseObject({ namespace: text, name: text, uid: text });
const historyForm = z.strictObject({
  stateDir: text,
  entries: z.array(z.looseObject({})).describe("the entries, newest first"),
});
const token = { id: text, name: text, scopes: z.array(z.enum(SCOPES)), node: text.nullable() };
const tokenTimes = { createdAt: text, revokedAt: text.nullable() };
const perHandler = Object.fromEntries(HANDLERS.map((handler) => [handler, z.number()]));
const sandbox = z.strictObject({ id: text, uid: text, createdAt: text, ready: z.boolean(), running: count });
const problems = z.array(z.looseObject({ from: text, message: text }));
const answered = { decisionId: text.nullable(), decidedBy: z.enum(["api", "here"]).nullable() };
const gcRemoval = z.strictObject({
  ...{ kind: z.enum(["container-gc", "image-gc"]), target: text, id: text, name: text, bytes: count.nullable() },
  ...{ why: text, end: z.enum(["removed", "failed", "stopped"]), message: text.optional() },
});
const step = z.looseObject({ op: z.enum(["mkdir", "write", "rmdir"]), path: text, why: text });
const stepResult = z.strictObject({
  ...{ step, status: z.enum(STEP_STATUSES), code: text.nullable(), errno: text.nullable() },
  ...{ before: text.nullable(), readBack: text.nullable(), message: text },
});
const drift = { path: text, file: text, actual: text, wanted: text, written: text.nullable(), message: text };
/** A line of the actuator's output. */
const actuatorLine = z.union([
  z
    .strictObject({
      ...{
        at: text,
        snapshot: z.unknown().describe("the snapshot for which decisions were requested; null: none were requested"),
      },
      ...{ allocatable: specOf("allocatable").decision.nullable(), cgroups: specOf("cgroups").decision.nullable() },
      ...{ ...answered, needs: texts, drift: z.array(z.strictObject({ ...drift, cause: z.enum(DRIFT_CAUSES) })) },
      differs: z
        .array(
          z.strictObject({
            ...{ path: text, file: text, actual: text.nullable(), cause: z.enum(DRIFT_CAUSES).nullable() },
          }),
        )
        .nullable(),
      skipped: z.array(z.strictObject({ path: text, file: text.nullable(), code: text, message: text })),
      applied: z
        .strictObject({
          ...{ dryRun: z.boolean(), results: z.array(stepResult), complete: z.boolean() },
          journalError: z.unknown(),
        })
        .nullable(),
      ...{ problems, notices: problems },
    })
    .describe("one pass over the cgroups"),
  z.strictObject({
    collection: z.looseObject({ at: text, reclaim: z.unknown(), collections: z.array(z.looseObject({})), problems }),
  }),
  z.strictObject({ removal: gcRemoval }),
  z.strictObject({
    event: z.looseObject({ at: text, type: text, reason: text, message: text, pod, container: text.nullable() }),
  }),
  z.strictObject({
    decision: z.strictObject({
      ...{ kind: z.enum(KINDS), id: text.nullable(), decidedBy: text, verdict: z.enum(VERDICTS) },
    }),
  }),
]);
const someValue = z.unknown().optional().describe("the value at the path; absent: there is none");
const testCase = {
  ...{ name: text, file: text, line: count, kind: z.enum(KINDS), kubelet: text.optional(), passed: z.boolean() },
  mismatches: z.array(z.strictObject({ path: text, expected: someValue, found: someValue })),
  reasons: texts.describe("the codes of the reasons in the answer of the case"),
  seconds: z.number(),
};

/** Outputs of commands that no route of the API returns, by the name for `nodewise schema`. */
const COMMAND_FORMS = {
  "test-result": [
    "nodewise test -o json",
    z.strictObject({
      passed: count,
      failed: count,
      cases: z.array(z.strictObject(testCase)),
      reasons: z.array(z.strictObject({ kind: z.enum(KINDS), cases: count, met: texts, missed: texts })),
      faults: z
        .array(z.strictObject({ file: text, message: text }))
        .describe("the faults of files whose cases cannot be read"),
      passedOver: texts.describe("the files that contain no case and that no case uses"),
    }),
  ],
  actuator: ["nodewise actuator -o json, each line", actuatorLine],
  "history-removals": ["nodewise history removals -o json", z.array(removal)],
  "history-removals-summary": ["nodewise history removals --summary -o json", removalSummary],
  machines: [
    "nodewise machines -o json",
    z.array(
      z.strictObject({
        ...{ name: text, cpus: count, cores: count, sockets: count, numaNodes: count, uncoreCaches: count },
        ...{ memoryBytes: count, description: text },
      }),
    ),
  ],
  kinds: [
    "nodewise kinds -o json",
    z.array(z.strictObject({ kind: z.enum(KINDS), policyVersions: texts, decides: text })),
  ],
  pods: ["nodewise pods -o json", nodeStatus],
  pod: [
    "nodewise pods NAME -o json",
    z.looseObject({
      ...ofStatus,
      pods: z.array(podRow),
      refusedManifests: z.array(z.looseObject({ pod: text })),
      events: z.array(z.looseObject({ pod, reason: text, message: text })),
    }),
  ],
  top: [
    "nodewise top -o json",
    z.strictObject({
      ...ofStatus,
      pods: z.array(
        podRow.pick({ namespace: true, name: true, uid: true, phase: true, qos: true, resources: true, usage: true }),
      ),
    }),
  ],
  "probes-status": [
    "nodewise probes -o json",
    z.strictObject({
      ...ofStatus,
      probes: z.array(probeRow).nullable().describe("the probes; null: this daemon runs no probes"),
    }),
  ],
  "probes-plan": [
    "nodewise probes plan -o json",
    z.strictObject({
      probes: count,
      perSecond: z.strictObject(perHandler).describe("the number of attempts per second, by handler"),
      maxAtOnce: z.strictObject({ spread: count, unspread: count }),
      execsAtOnce: z.strictObject({ expected: z.number(), hanging: z.number() }),
    }),
  ],
  "devices-status": [
    "nodewise devices -o json",
    z.strictObject({
      ...ofStatus,
      devices: z.array(deviceRow).nullable().describe("the devices; null: this daemon serves no device plugins"),
    }),
  ],
  "probes-history": ["nodewise probes history -o json", historyForm],
  "devices-history": ["nodewise devices history -o json", historyForm],
  "devices-allocate": [
    "nodewise devices allocate -o json",
    z.strictObject({ node: text, pod, containers: z.array(z.looseObject({})) }),
  ],
  "devices-free": [
    "nodewise devices free -o json",
    z.strictObject({ pod: text.nullable(), uid: text, freed: z.unknown() }),
  ],
  gc: [
    "nodewise gc containers -o json and gc images -o json",
    z.strictObject({
      ...{ kind: z.enum(["container-gc", "image-gc"]), node: text, policyVersion: text, observedAt: text },
      assumed: text.optional(),
      decision: z
        .looseObject({ remove: z.array(z.looseObject({ id: text })) })
        .describe("the decision as `nodewise decide` prints it"),
      ...{ verdict: z.enum(VERDICTS), reasons: z.array(z.looseObject({ at: text })), needs: texts, next: z.unknown() },
      removals: z
        .array(z.looseObject({ id: text }))
        .optional()
        .describe("the removals of the pass; absent with --dry-run"),
      fileSystem: z.unknown().optional(),
      complete: z.boolean().optional(),
      problems: z.array(z.unknown()).optional(),
    }),
  ],
  takeover: [
    "nodewise takeover -o json",
    z.strictObject({
      node: text,
      runtimeEndpoint: text,
      dryRun: z.boolean(),
      kubelets: z.array(z.strictObject({ pid: count, name: text })),
      stops: z.array(
        z.looseObject({
          ...{ pod: text, sandbox, priority: z.number(), graceSeconds: z.number() },
          containers: z.array(z.strictObject({ id: text, name: text, waitsFor: z.unknown(), preStop: z.boolean() })),
        }),
      ),
      stays: z.array(z.strictObject({ pod: text, sandbox, why: text })),
      cameBack: z.unknown().optional(),
    }),
  ],
  token: [
    "nodewise token create -o json",
    z.strictObject({
      ...{ token: text.describe("the token itself, which is shown only once"), ...token, ...tokenTimes },
      sql: text.optional().describe("with --print: the SQL that adds the token to the database of a Worker"),
    }),
  ],
  "token-list": ["nodewise token list -o json", z.array(z.strictObject({ ...token, ...tokenTimes }))],
  version: [
    "nodewise version -o json",
    z.strictObject({
      version: text,
      kubelets: texts,
      policyVersions: texts,
      node: text.describe("the version of Node.js"),
    }),
  ],
} as const satisfies Readonly<Record<string, readonly [what: string, form: z.ZodType]>>;

const TEXT: JsonSchema = { type: "string" };
const listOf = (items: JsonSchema): JsonSchema => ({ type: "array", items });
const orNull = (schema: JsonSchema): JsonSchema => ({ anyOf: [schema, NULL] });
/** An object that has all of `members`, and may have the optional ones. */
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
    assumed: { type: "object", description: "the inputs that were not given and were assumed; absent: none" },
  };
  const answer = {
    decision: ref(`${componentName(kind)}Decision`),
    verdict: { type: "string", enum: VERDICTS },
    reasons: listOf(ref("PlaceReasons")),
    needs: listOf(TEXT),
    next: { description: "the facts to give the next pass with --facts; null: the kind remembers nothing" },
  };
  const side: JsonSchema = {
    oneOf: [whole({ policyVersion: TEXT, ...answer }), whole({ policyVersion: TEXT, refusal: REFUSAL })],
  };
  const fromTo = (form: JsonSchema): JsonSchema => whole({ from: form, to: form });
  const comparison = {
    change: { type: "object", description: "the merge patch (RFC 7396) of the configuration" },
    kubelet: fromTo(TEXT),
    same: { type: "boolean" },
    verdict: fromTo(orNull({ ...TEXT, description: "null: it is refused" })),
    differences: listOf(whole({ path: TEXT }, { from: {}, to: {} })),
    truncated: { type: "boolean", description: "true: there are more differences than are listed" },
    findings: {
      ...listOf({ type: "object" }),
      description: "the findings of `nodewise lint` that the configuration has only after the change",
    },
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

/** The forms of the API by name. */
type Components = Readonly<Record<string, JsonSchema>>;
const membersOf = (components: Components, name: string): JsonSchemas =>
  (components[name] as { readonly properties: JsonSchemas }).properties;
const picked = (members: JsonSchemas, ...names: readonly string[]): JsonSchemas =>
  Object.fromEntries(names.map((name) => [name, members[name] as JsonSchema]));

/** The schema of `nodewise lint -o json`: for files or one node, or with a cluster for all its nodes. */
function lintSchema(components: Components): JsonSchema {
  const finding = components["LintFinding"] as JsonSchema & { readonly properties: JsonSchemas };
  const where = {
    ...TEXT,
    description: "FILE:LINE, the file alone if the line is not known, or the node; absent: the finding has no place",
  };
  const findings = listOf({ ...finding, properties: { ...finding.properties, where } });
  const why = orNull({ ...TEXT, description: "why the node was not checked; null: it was checked" });
  const node = whole({ node: TEXT, profile: orNull(ref("Profile")), findings, why });
  return { oneOf: [whole({ profile: ref("Profile"), findings }), whole({ nodes: listOf(node) })] };
}

const SUM = ["counts", "byKind", "byNode", "byVersion", "verdicts"];
/** A line of `nodewise replay --json`: a decision that differs or cannot be read, the progress, or at the end the sum. */
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
/** The published schemas by their names for `nodewise schema`. */
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

/** A JSON Schema (2020-12) without references to outside itself. */
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
    $defs: Object.fromEntries([...used].sort(byKey)),
  };
}
