import { type JsonSchema, ref } from "../../base/json-schema.ts";
import { LIMITS } from "../../base/limits.ts";
import { NEWEST } from "../../profiles/index.ts";
import type { ProblemCode } from "../../service/problem.ts";
import { yieldToEventLoop } from "../../service/task-queue.ts";
import { PROBLEM_TYPE, PROBLEMS } from "../problem.ts";
import type { Route } from "../route.ts";
import { ANSWERS } from "./answers.ts";
import { askSchemas } from "./ask-schemas.ts";
import { inputSchemas, jsonSchema, type SchemaToMake } from "./input-schemas.ts";
import type { Operation } from "./operation.ts";
import { OPERATIONS } from "./operations.ts";
import { requestSchemas } from "./request-schemas.ts";

/** A link from an operation's answer to another operation. */
interface Link {
  /** As routes have it: `GET /v1/nodes/:node`. */
  readonly to: string;
  readonly description: string;
  /** Runtime expressions of OpenAPI, by the parameter's name. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** The same for members of the body; the caller sets all others. */
  readonly body?: Readonly<Record<string, string>>;
}

const decision = (at: string): Link => ({
  to: "GET /v1/decisions/:decision",
  description: "the decision in full",
  parameters: { decision: `$response.body#/${at}` },
});
const again = (at: string): Link => ({
  to: "POST /v1/decisions/:decision/replay",
  description: "the same decision with another configuration",
  parameters: { decision: `$response.body#/${at}` },
});
const snapshot = (at: string): Link => ({
  to: "GET /v1/snapshots/:id",
  description: "the snapshot that the decision is about",
  parameters: { id: `$response.body#/${at}` },
});
const node = (at: string): Link => ({
  to: "GET /v1/nodes/:node",
  description: "the node",
  parameters: { node: `$response.body#/${at}` },
});
const below = (path: string, at: string, description: string): Link => ({
  to: `GET /v1/nodes/:node/${path}`,
  description,
  parameters: { node: `$response.body#/${at}` },
});
/** The link from a page of a node's list to the next one. */
const next = (path: string): Link => ({
  to: `GET /v1/nodes/:node/${path}`,
  description: "the next page, with the same filters",
  parameters: { node: "$request.path.node", pageToken: "$response.body#/nextPageToken" },
});

/** The links of each operation's answers, by their names. */
const LINKS: Readonly<Record<string, Readonly<Record<string, Link>>>> = {
  "POST /v1/decisions/:decision": {
    decision: decision("id"),
    again: again("id"),
    snapshot: snapshot("snapshotId"),
    node: node("node"),
    results: {
      to: "POST /v1/results",
      description: "a report of what the node did with the decision",
      body: { decisionId: "$response.body#/id" },
    },
  },
  "GET /v1/decisions": {
    decision: decision("decisions/0/id"),
    next: {
      to: "GET /v1/decisions",
      description: "the next page, with the same filters",
      parameters: { pageToken: "$response.body#/nextPageToken" },
    },
  },
  "GET /v1/decisions/:decision": { again: again("id"), snapshot: snapshot("snapshotId"), node: node("node") },
  "POST /v1/results": { decision: decision("decisionId") },
  "PUT /v1/nodes/:node/snapshot": {
    snapshot: snapshot("id"),
    node: node("node"),
    decide: {
      to: "POST /v1/decisions/:decision",
      description: "a decision on the snapshot",
      body: { snapshotId: "$response.body#/id" },
    },
  },
  "GET /v1/snapshots/:id": { node: node("node") },
  "GET /v1/nodes": {
    node: node("nodes/0/name"),
    next: {
      to: "GET /v1/nodes",
      description: "the next page",
      parameters: { pageToken: "$response.body#/nextPageToken" },
    },
  },
  "GET /v1/nodes/:node": {
    decisions: below("decisions", "name", "the node's decisions"),
    removals: below("removals", "name", "the images, containers, sandboxes and logs that were removed from the node"),
    reserves: below("advice/reserves", "name", "the recommended reservations of the node"),
    summary: below(
      "removals/summary",
      "name",
      "how much space the removals freed, and how often removed images were pulled again",
    ),
    snapshot: snapshot("lastSnapshotId"),
  },
  "GET /v1/nodes/:node/decisions": { decision: decision("decisions/0/id"), next: next("decisions") },
  "GET /v1/nodes/:node/removals": { decision: decision("removals/0/decisionId"), next: next("removals") },
  "GET /v1/history": {
    next: {
      to: "GET /v1/history",
      description: "the next page of the export, with the same node",
      parameters: { pageToken: "$response.body#/nextPageToken" },
    },
  },
  "POST /v1/replay": { decision: decision("changed/0/id") },
};

export interface OpenApiDocument {
  readonly openapi: "3.1.0";
  readonly info: JsonSchema;
  readonly tags: readonly JsonSchema[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, JsonSchema>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>>; readonly securitySchemes: JsonSchema };
}

const DESCRIPTION = `The API makes the kubelet's node-level resource decisions. Each answer depends only on the request and on recorded facts, contains its reasons, and is recorded.

Errors are problem documents (RFC 9457); the list of their codes (\`code\`) is complete. No request of a caller leads to the status 500.
Request bodies may be compressed (gzip, and zstd on Node). Answers to GET have an ETag.

Limits: a body of ${LIMITS.bodyBytes / 2 ** 20} MiB (as configured), ${LIMITS.pods} pods, ${LIMITS.containersPerPod} containers a pod, ${LIMITS.cpus} CPUs, ${LIMITS.numaNodes} NUMA nodes, ${LIMITS.devices} devices, ${LIMITS.images} images, ${LIMITS.runtimeContainers} containers that a runtime lists, ${LIMITS.resourcesPerList} resources a list (${LIMITS.nodeResources} in that of a node), ${LIMITS.deviceResources} device plugins, texts of ${LIMITS.textLength} characters, 128 levels of nesting.`;

const nameOf = ({ method, path }: Route): string => `${method} ${path}`;
/** The routes by their names. */
type Routes = ReadonlyMap<string, Route>;

/** The OpenAPI 3.1 document of the routes given; others have their turn while it is made. Throws when a route is not described. */
export async function openApiDocument(routes: readonly Route[]): Promise<OpenApiDocument> {
  const paths: Record<string, Record<string, JsonSchema>> = {};
  const byName: Routes = new Map(routes.map((route) => [nameOf(route), route]));
  for (const [name, route] of byName) {
    const described = OPERATIONS[name];
    if (described === undefined) throw new Error(`${name} is not described in openapi/operations.ts`);
    const path = route.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route, byName, described) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Nodewise",
      version: NEWEST.policyVersion,
      description: DESCRIPTION,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    tags: [{ name: "decide" }, { name: "history" }, { name: "operate" }, { name: "read about it" }],
    paths,
    components: {
      schemas: await madeInTurns([...inputSchemas(), ...askSchemas(), ...requestSchemas(), ...answerSchemas()]),
      securitySchemes: {
        token: {
          type: "http",
          scheme: "bearer",
          description:
            "a token from `nodewise token create`; on loopback no token is needed until the first one exists",
        },
      },
    },
  };
}

/** All of them together take some 50 ms. */
async function madeInTurns(schemas: readonly SchemaToMake[]): Promise<Readonly<Record<string, JsonSchema>>> {
  const made: Record<string, JsonSchema> = {};
  for (const [name, make] of schemas) {
    made[name] = make();
    await yieldToEventLoop();
  }
  return made;
}

function answerSchemas(): readonly SchemaToMake[] {
  const names = new Map<unknown, string>(Object.entries(ANSWERS).map(([name, schema]) => [schema, name]));
  return Object.entries(ANSWERS).map(([name, schema]) => [name, () => jsonSchema(schema, "output", names, name)]);
}

function linksOf(route: Route, routes: Routes): JsonSchema | undefined {
  const links = LINKS[nameOf(route)];
  if (links === undefined) return undefined;
  const entries = Object.entries(links).map(([name, { to, description, parameters, body }]) => {
    const target = routes.get(to);
    if (target === undefined)
      throw new Error(`the link ${name} of ${nameOf(route)} leads to ${to}, which is not served`);
    return [name, { operationId: operationId(target), description, parameters, requestBody: body }];
  });
  return Object.fromEntries(entries);
}

function operation(
  route: Route,
  routes: Routes,
  { tag, summary, description, parameters, body, answers, problems, untagged, csv }: Operation,
): JsonSchema {
  const responses: Record<string, JsonSchema> = {};
  for (const [status, answer] of Object.entries(answers)) {
    const [type, schema] =
      typeof answer === "string"
        ? ["application/json", ref(answer)]
        : [answer.type, answer.of === undefined ? { type: "string" } : ref(answer.of)];
    const asCsv = csv === true && status === "200" ? { "text/csv": { schema: { type: "string" } } } : {};
    const content = { [type]: { schema }, ...asCsv };
    responses[status] = { description: summary, content, links: linksOf(route, routes) };
  }
  if (route.method === "GET" && untagged !== true)
    responses[304] = { description: "If-None-Match has the ETag of the answer; without a body" };
  for (const [status, codes] of byStatus([...problems, ...commonProblems(route)])) {
    responses[status] = {
      description: codes.map((code) => `\`${code}\`: ${PROBLEMS[code].title}`).join("; "),
      content: { [PROBLEM_TYPE]: { schema: ref("Problem") } },
    };
  }
  return {
    operationId: operationId(route),
    tags: [tag],
    summary,
    description,
    parameters: parameters?.map((p) => (p.in === "path" ? { ...p, required: true } : p)),
    requestBody: body && {
      required: body.optional !== true,
      content: { [body.type]: { schema: body.schema, ...examplesOf(body) } },
    },
    responses,
    security: route.scope === null ? [] : [{ token: [] }],
    "x-scope": route.scope ?? undefined,
  };
}

const examplesOf = ({ example, examples }: NonNullable<Operation["body"]>): JsonSchema =>
  examples === undefined
    ? { example }
    : { examples: Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, { value }])) };

const operationId = ({ method, path }: Route): string =>
  `${method.toLowerCase()}${
    path
      .split(/\W+/)
      .filter((p) => p !== "" && p !== "v1")
      .map((p) => (p[0] as string).toUpperCase() + p.slice(1))
      .join("") || "Home"
  }`;

/** The problems that are answered before any route is reached. */
const OF_HTTP: readonly ProblemCode[] = ["bad_request", "request_timeout", "expectation_failed", "headers_too_large"];

const commonProblems = (route: Route): readonly ProblemCode[] =>
  route.scope === null
    ? [...OF_HTTP, "internal"]
    : [
        ...OF_HTTP,
        "unauthorized",
        "forbidden",
        "forbidden_node",
        "forbidden_host",
        ...(route.method === "GET" ? [] : (["forbidden_site"] as const)),
        "too_many_requests",
        "internal",
        "history_unavailable",
      ];

function byStatus(codes: readonly ProblemCode[]): ReadonlyMap<string, readonly ProblemCode[]> {
  const groups = new Map<string, ProblemCode[]>();
  for (const code of new Set(codes)) {
    const status = String(PROBLEMS[code].status);
    groups.set(status, [...(groups.get(status) ?? []), code]);
  }
  return groups;
}
