import { POLICY_VERSION } from "../model/decision.ts";
import { LIMITS } from "../model/limits.ts";
import { PROBLEM_TYPE, PROBLEMS, type ProblemCode } from "../routes/problem.ts";
import type { Route } from "../routes/route.ts";
import { ANSWERS } from "./answers.ts";
import { inputSchemas, type JsonSchema, jsonSchema, ref } from "./input-schemas.ts";
import type { Operation } from "./operation.ts";
import { OPERATIONS } from "./operations.ts";

export interface OpenApiDocument {
  readonly openapi: "3.1.0";
  readonly info: JsonSchema;
  readonly tags: readonly JsonSchema[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, JsonSchema>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>>; readonly securitySchemes: JsonSchema };
}

const DESCRIPTION = `The kubelet's node-level resource decisions as a stateless, explained, recorded API.

Errors are problem documents (RFC 9457) with a closed \`code\`; nothing that a caller sends makes a 500.
Request bodies may be compressed (gzip, and zstd on Node). GETs carry an ETag.

Limits: a body of ${LIMITS.bodyBytes / 2 ** 20} MiB (as configured), ${LIMITS.pods} pods, ${LIMITS.containersPerPod} containers a pod, ${LIMITS.cpus} CPUs, ${LIMITS.numaNodes} NUMA nodes, ${LIMITS.devices} devices, ${LIMITS.images} images, ${LIMITS.runtimeContainers} containers that a runtime lists, ${LIMITS.resourcesPerList} resources a list (${LIMITS.nodeResources} in that of a node), ${LIMITS.deviceResources} device plugins, texts of ${LIMITS.textLength} characters, 128 levels of nesting.`;

/** The OpenAPI 3.1 document of the routes given. Throws when one of them is not described. */
export function openApiDocument(routes: readonly Route[]): OpenApiDocument {
  const paths: Record<string, Record<string, JsonSchema>> = {};
  for (const route of routes) {
    const described = OPERATIONS[`${route.method} ${route.path}`];
    if (described === undefined)
      throw new Error(`${route.method} ${route.path} is not described in openapi/operations.ts`);
    const path = route.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route, described) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Nodewise",
      version: POLICY_VERSION,
      description: DESCRIPTION,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    tags: [{ name: "decide" }, { name: "history" }, { name: "operate" }, { name: "read about it" }],
    paths,
    components: {
      schemas: { ...inputSchemas(), ...answerSchemas() },
      securitySchemes: {
        token: {
          type: "http",
          scheme: "bearer",
          description: "`nodewise token create`; on loopback none is needed until the first one exists",
        },
      },
    },
  };
}

function answerSchemas(): Readonly<Record<string, JsonSchema>> {
  const names = new Map<unknown, string>(Object.entries(ANSWERS).map(([name, schema]) => [schema, name]));
  const schemas = Object.entries(ANSWERS).map(
    ([name, schema]) => [name, jsonSchema(schema, "output", names, name)] as const,
  );
  return Object.fromEntries(schemas);
}

function operation(
  route: Route,
  { tag, summary, description, parameters, body, answers, problems }: Operation,
): JsonSchema {
  const responses: Record<string, JsonSchema> = {};
  for (const [status, answer] of Object.entries(answers)) {
    const [type, schema] =
      typeof answer === "string"
        ? ["application/json", ref(answer)]
        : [answer.type, answer.of === undefined ? { type: "string" } : ref(answer.of)];
    responses[status] = { description: summary, content: { [type]: { schema } } };
  }
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
      content: { [body.type]: { schema: body.schema, example: body.example } },
    },
    responses,
    security: route.scope === null ? [] : [{ token: [] }],
    "x-scope": route.scope ?? undefined,
  };
}

const operationId = ({ method, path }: Route): string =>
  `${method.toLowerCase()}${
    path
      .split(/\W+/)
      .filter((p) => p !== "" && p !== "v1")
      .map((p) => (p[0] as string).toUpperCase() + p.slice(1))
      .join("") || "Home"
  }`;

const commonProblems = (route: Route): readonly ProblemCode[] =>
  route.scope === null
    ? ["internal"]
    : [
        "unauthorized",
        "forbidden",
        "forbidden_node",
        "forbidden_host",
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
