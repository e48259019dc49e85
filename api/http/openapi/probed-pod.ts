import { type JsonSchema, NULL, ref, strictObject, TEXT } from "../../base/json-schema.ts";
import { withNulls } from "./with-nulls.ts";

const PRINT: JsonSchema = { type: "string", pattern: "^[0-9a-f]{4}$" };
const COUNT: JsonSchema = { type: "integer", minimum: 0, maximum: 2_147_483_647 };
const PORT_NUMBER: JsonSchema = { type: "integer", minimum: 1, maximum: 65_535 };
const PORT_NAME: JsonSchema = {
  type: "string",
  maxLength: 15,
  pattern: "^[a-z0-9]+(?:-[a-z0-9]+)*$",
  allOf: [{ pattern: "[a-z]" }],
};
const PORT: JsonSchema = { anyOf: [PORT_NUMBER, PORT_NAME] };

const COMMAND = { command: { type: "array", minItems: 1, items: { type: "string" } }, print: PRINT };
const HEADER = {
  type: "object",
  required: ["name"],
  properties: { name: { type: "string" }, value: { type: "string" } },
};
const HTTP_GET = {
  scheme: { type: "string", enum: ["HTTP", "HTTPS"] },
  host: TEXT,
  port: PORT,
  path: { type: "string" },
  httpHeaders: { type: "array", items: HEADER },
  print: PRINT,
};
const HANDLERS: Readonly<Record<string, JsonSchema>> = {
  exec: { anyOf: [strictObject(COMMAND, ["command"]), strictObject(COMMAND, ["print"])] },
  httpGet: strictObject(HTTP_GET, ["port"]),
  tcpSocket: strictObject({ host: TEXT, port: PORT }, ["port"]),
  grpc: strictObject({ port: PORT_NUMBER, service: TEXT }, ["port"]),
};
const COUNTS = {
  initialDelaySeconds: COUNT,
  timeoutSeconds: COUNT,
  periodSeconds: COUNT,
  successThreshold: COUNT,
  failureThreshold: COUNT,
};
/** With one handler, and no other member than v1.Probe has. */
const probe = (members: Readonly<Record<string, JsonSchema>>): JsonSchema => {
  const none = Object.fromEntries(Object.keys(HANDLERS).map((name) => [name, NULL]));
  const forms = Object.entries(HANDLERS).map(([name, handler]) =>
    strictObject({ ...none, ...COUNTS, ...members, [name]: handler }, [name]),
  );
  return { anyOf: forms };
};
const KILLING = probe({
  successThreshold: { ...COUNT, maximum: 1 },
  terminationGracePeriodSeconds: { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
});
const PROBES = {
  startupProbe: KILLING,
  livenessProbe: KILLING,
  readinessProbe: probe({ terminationGracePeriodSeconds: NULL }),
};
const NO_PROBES = Object.fromEntries(Object.keys(PROBES).map((name) => [name, NULL]));

const CONTAINER = withNulls({ type: "object", properties: PROBES });
const SIDECAR = withNulls({
  type: "object",
  required: ["restartPolicy"],
  properties: { ...PROBES, restartPolicy: { const: "Always" } },
});
const SPEC: JsonSchema = {
  type: "object",
  properties: {
    containers: { type: "array", items: CONTAINER },
    initContainers: {
      type: ["array", "null"],
      items: { anyOf: [SIDECAR, { type: "object", properties: NO_PROBES }] },
    },
  },
};

/** A pod whose probes an API server takes. kubernetes 1.36: validateProbe, validateHandler and callers. */
export const PROBED_POD: JsonSchema = {
  description: "v1.Pod whose probes an API server accepts",
  allOf: [ref("Pod"), { type: "object", properties: { spec: SPEC } }],
};
