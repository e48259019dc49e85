import * as z from "zod";
import { COUNT, type JsonSchema, type JsonSchemas, ref, strictObject } from "../../base/json-schema.ts";
import { LIMITS } from "../../base/limits.ts";
import { assignments } from "../../model/assignments.ts";
import { doneList } from "../../model/container-gc.ts";
import { exportHeaderForm, exportRowForm } from "../../model/export-row.ts";
import { nodeResourceList, observedResourceList, resourceList } from "../../model/fields.ts";
import { REMEMBERING, specOf } from "../../model/kinds.ts";
import { configurationMeta, kubeletConfiguration } from "../../model/kubelet-configuration.ts";
import { devices, machine } from "../../model/machine.ts";
import { outcomesPosted } from "../../model/outcome.ts";
import { node } from "../../model/placement.ts";
import { container, containerStatus, pod } from "../../model/pod.ts";
import { podProbe } from "../../model/probe-spec.ts";
import { runtime } from "../../model/runtime.ts";
import { cgroup, snapshot } from "../../model/snapshot.ts";
import { snapshotChanges } from "../../model/turn.ts";
import { stats } from "../../model/units.ts";
import { resultsReport } from "../results.ts";
import { PROBED_POD } from "./probed-pod.ts";
import { orNull, withNulls } from "./with-nulls.ts";

const ID: JsonSchema = { type: "integer", minimum: 0, maximum: 1_000_000 };
const object = (properties: JsonSchemas, required: readonly string[] = []): JsonSchema => ({
  type: "object",
  required,
  properties,
});
const list = (items: JsonSchema, maxItems?: number): JsonSchema => ({
  type: "array",
  items,
  ...(maxItems !== undefined && { maxItems }),
});

const CORE = object(
  {
    core_id: ID,
    socket_id: ID,
    thread_ids: list(ID),
    uncore_caches: list(object({ id: ID })),
  },
  ["socket_id"],
);
const PAGES = object({ page_size: COUNT, num_pages: COUNT }, ["page_size", "num_pages"]);
const NODE = object(
  {
    node_id: ID,
    memory: COUNT,
    hugepages: list(PAGES, LIMITS.pageSizes),
    distances: list(COUNT, LIMITS.numaNodes),
    cores: list(CORE),
  },
  ["node_id"],
);

/** cAdvisor's MachineInfo (v1), as far as it is read. */
const MACHINE_INFO: JsonSchema = {
  ...withNulls(
    object({ topology: list(NODE, LIMITS.numaNodes), memory_capacity: COUNT, swap_capacity: COUNT }, ["topology"]),
  ),
  description: "cAdvisor's MachineInfo",
};

/** A schema's name and a function that makes it, which takes some milliseconds. */
export type SchemaToMake = readonly [name: string, make: () => JsonSchema];

const RUNTIME = "the lists of the container runtime over CRI v1, in the JSON that `crictl -o json` prints";
/** The schemas that have a name of their own; where another one uses them it refers to them. */
const NAMED: readonly (readonly [string, z.ZodType, string])[] = [
  ["ResourceList", resourceList, "quantities by resource name"],
  ["NodeResourceList", nodeResourceList, "the ResourceList of a node, with the resources of its device plugins"],
  [
    "ObservedResourceList",
    observedResourceList,
    "a ResourceList as the kubelet reads it; quantities that are too large to be real are left out",
  ],
  ["Container", container, "v1.Container"],
  ["Probe", podProbe, "v1.Probe"],
  ["ContainerStatus", containerStatus, "v1.ContainerStatus"],
  ["Node", node, "v1.Node, as `kubectl get node NAME -o json` prints it"],
  ["Pod", pod, "v1.Pod; fields that no decision reads are ignored and never stored"],
  [
    "KubeletConfiguration",
    kubeletConfiguration,
    "any subset of a KubeletConfiguration (kubelet.config.k8s.io/v1beta1); an absent field has the kubelet's default",
  ],
  ["Stats", stats, "the kubelet's /stats/summary (stats/v1alpha1 Summary)"],
  ["Machine", machine, "the topology and the sizes of the machine, or cAdvisor's MachineInfo"],
  ["Cgroup", cgroup, "the node's cgroup version, its cgroup driver, and what is known of its cgroup hierarchies"],
  ["Runtime", runtime, RUNTIME],
  ["Devices", devices, "the devices as the device plugins list them"],
  ["Assignments", assignments, "the kubelet's state files under their own names, as text or as JSON"],
];
/** `image-gc` -> `ImageGc`. */
export const componentName = (kind: string): string =>
  kind.replace(/(?:^|-)(\w)/g, (_, first: string) => first.toUpperCase());
/** What kinds remember, by name. */
const FACTS = [...REMEMBERING].map((kind) => [`${componentName(kind)}Facts`, specOf(kind).facts?.form] as const);
const NAMES: ReadonlyMap<unknown, string> = new Map<unknown, string>([
  ...NAMED.map(([name, schema]) => [schema, name] as const),
  ...FACTS.map(([name, form]) => [form, name] as const),
  [doneList, "RemovalsDone"],
  [snapshotChanges, "SnapshotChanges"],
]);

/** Schemas whose objects may also come in another form. */
const FORMS: JsonSchemas = {
  KubeletConfiguration: configurationMeta,
  Machine: { anyOf: [ref("Machine"), ref("MachineInfo")] },
};

/** A schema in JSON Schema's terms; a named schema is referred to by its name, except `self` at the top. */
export function jsonSchema(
  schema: z.ZodType,
  io: "input" | "output",
  names: ReadonlyMap<unknown, string>,
  self?: string,
): JsonSchema {
  const { $schema: _, ...json } = z.toJSONSchema(schema, {
    io,
    unrepresentable: "any",
    reused: "inline",
    override: ({ zodSchema, jsonSchema: made, path }) => {
      if (io === "input" && zodSchema._zod.def.type === "record") nameMembers(made as Record<string, unknown>);
      const name = names.get(zodSchema);
      if (name === undefined || (name === self && path.length === 0)) return;
      for (const key of Object.keys(made)) delete (made as Record<string, unknown>)[key];
      Object.assign(made, FORMS[name] ?? ref(name));
    },
  });
  return json;
}
/** Turns a map with a fixed set of keys into an object with these optional members. */
function nameMembers(made: Record<string, unknown>): void {
  const { propertyNames, additionalProperties, required } = made;
  const names = (propertyNames as JsonSchema | undefined)?.["enum"];
  if (!Array.isArray(names) || required !== undefined) return;
  delete made["propertyNames"];
  Object.assign(
    made,
    strictObject(Object.fromEntries(names.map((name) => [name, additionalProperties as JsonSchema]))),
  );
}
/** Members by which another form is known: with one of them it is read as that. */
const OF_OTHER_FORMS: Readonly<Record<string, JsonSchemas>> = {
  KubeletConfiguration: {
    kubeletconfig: {
      type: "null",
      description: "the member of the answer of /configz that contains the configuration; not allowed here",
    },
  },
  Machine: {
    topology: {
      not: { type: "array" },
      description: "not a list: the list `topology` belongs to cAdvisor's MachineInfo",
    },
  },
};

/** The schema of something posted: a null counts as absent wherever something may be absent. */
export const inputSchema = (schema: z.ZodType, self?: string): JsonSchema =>
  withNulls(jsonSchema(schema, "input", NAMES, self));

function snapshotSchema(): JsonSchema {
  const json = inputSchema(snapshot);
  const properties = json["properties"] as Record<string, JsonSchema>;
  const pods = properties["pods"] as JsonSchema;
  // Go writes an empty list as null
  const list = { type: "object", description: "v1.PodList", required: ["items"], properties: { items: pods } };
  return {
    ...json,
    description:
      "The state of a node at one moment. Null counts as absent, and unknown fields are ignored. An answer lists the inputs that the decision needs and the snapshot does not have.",
    properties: { ...properties, pods: { anyOf: [pods, list] } },
  };
}

function assignmentsSchema(): JsonSchema {
  const json = inputSchema(assignments, "Assignments");
  const files = Object.entries(json["properties"] as Record<string, JsonSchema>);
  const text = { type: "string", maxLength: LIMITS.stateText, description: "the text of the file, which is JSON" };
  const form = (schema: JsonSchema) => ([schema["type"]].flat().includes("string") ? { type: "object" } : schema);
  const forms = files.map(([name, schema]) => [name, orNull({ anyOf: [form(schema), text] })]);
  return { ...json, properties: Object.fromEntries(forms) };
}

/** The schema of an object that must not have `member`, since that belongs to another form. */
const withoutMember = (member: string, schema: JsonSchema = {}): JsonSchema => ({
  ...schema,
  properties: { ...(schema["properties"] as object), [member]: { type: "null" } },
});

/** Each list may also stand in the object that crictl prints. */
function runtimeSchema(): JsonSchema {
  const json = inputSchema(runtime, "Runtime");
  const properties = json["properties"] as Record<string, JsonSchema>;
  const within = (key: string, command: string, schema: JsonSchema | undefined): JsonSchema => ({
    anyOf: [
      schema,
      {
        type: "object",
        description: `the object that \`crictl ${command} -o json\` prints`,
        required: [key],
        properties: { [key]: schema },
      },
    ],
  });
  const wrapped = {
    images: within("images", "images", properties["images"]),
    containers: within("containers", "ps -a", properties["containers"]),
    sandboxes: within("items", "pods", properties["sandboxes"]),
    imageFilesystems: within("status", "imagefsinfo", withoutMember("status", properties["imageFilesystems"])),
  };
  return { ...json, description: RUNTIME, properties: { ...properties, ...wrapped } };
}

function lintedSnapshotSchema(): JsonSchema {
  const snapshot = snapshotSchema();
  return {
    ...snapshot,
    description: "a NodeSnapshot whose kubeletConfiguration may have any errors",
    properties: { ...(snapshot["properties"] as object), kubeletConfiguration: {} },
  };
}

function namedSchema(name: string, schema: z.ZodType, description: string): JsonSchema {
  const json = inputSchema(schema, name);
  const others = OF_OTHER_FORMS[name];
  const properties = others && { properties: { ...(json["properties"] as object), ...others } };
  return { ...json, ...properties, description };
}

/** Schemas of everything that is posted, except request bodies with their own schemas and the asks in them. */
export function inputSchemas(): readonly SchemaToMake[] {
  const named = NAMED.map(
    ([name, schema, description]): SchemaToMake => [name, () => namedSchema(name, schema, description)],
  );
  return [
    ["NodeSnapshot", snapshotSchema],
    ["LintedSnapshot", lintedSnapshotSchema],
    ...named,
    ["MachineInfo", () => MACHINE_INFO],
    ["Assignments", assignmentsSchema],
    ["Runtime", runtimeSchema],
    ["RemovalsDone", () => inputSchema(doneList, "RemovalsDone")],
    // facts are complete: none of their fields is absent
    ...FACTS.map(([name, form = z.null()]): SchemaToMake => [name, () => jsonSchema(form, "input", NAMES, name)]),
    ["ProbedPod", () => PROBED_POD],
    // a null in it takes a part away
    ["SnapshotChanges", () => jsonSchema(snapshotChanges, "input", NAMES, "SnapshotChanges")],
    ["OutcomesPosted", () => inputSchema(outcomesPosted)],
    ["HistoryLine", () => jsonSchema(z.union([exportHeaderForm, exportRowForm]), "input", NAMES)],
    ["ResultsReport", () => jsonSchema(resultsReport, "input", NAMES)],
  ];
}
