import * as z from "zod";
import { assignments } from "../model/assignments.ts";
import { devices } from "../model/devices.ts";
import { doneList } from "../model/garbage-collection.ts";
import { kubeletConfiguration } from "../model/kubelet-configuration.ts";
import { machine } from "../model/machine.ts";
import { node } from "../model/node.ts";
import { pod } from "../model/pod.ts";
import { runtime } from "../model/runtime.ts";
import { cgroup, snapshot } from "../model/snapshot.ts";
import { stats } from "../model/stats.ts";
import { resultsReport } from "../routes/results.ts";

export type JsonSchema = { readonly [keyword: string]: unknown };
export const ref = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` });

const RUNTIME = "what the container runtime lists over CRI v1, in the JSON of crictl -o json";
/** The schemas that have a name of their own; where another one uses them it refers to them. */
const NAMED: readonly (readonly [string, z.ZodType, string])[] = [
  ["Node", node, "v1.Node, as `kubectl get node NAME -o json` prints it"],
  ["Pod", pod, "v1.Pod; what no decision reads is ignored and never stored"],
  [
    "KubeletConfiguration",
    kubeletConfiguration,
    "kubelet.config.k8s.io/v1beta1, any subset; an absent field has the kubelet's default",
  ],
  ["Stats", stats, "the kubelet's /stats/summary (stats/v1alpha1 Summary)"],
  ["Machine", machine, "topology and sizes of the machine, or cAdvisor's MachineInfo"],
  ["Cgroup", cgroup, "which hierarchy the node has, and how its runtime names cgroups"],
  ["Runtime", runtime, RUNTIME],
  ["Devices", devices, "devices as the plugins list them"],
  ["Assignments", assignments, "the kubelet's state files under their own names, as text or as JSON"],
];
const NAMES = new Map(NAMED.map(([name, schema]) => [schema as unknown, name]));

const either = (name: string, ...others: readonly JsonSchema[]): JsonSchema => ({ anyOf: [ref(name), ...others] });
const FORMS: Readonly<Record<string, JsonSchema>> = {
  KubeletConfiguration: either("KubeletConfiguration", {
    type: "object",
    description: "as the kubelet's /configz answers it",
    required: ["kubeletconfig"],
    properties: { kubeletconfig: ref("KubeletConfiguration") },
  }),
  Machine: either("Machine", { type: "object", description: "cAdvisor MachineInfo", required: ["topology"] }),
};

/** A schema in JSON Schema's terms; one that has a name of its own is referred to by it, but for `self` at the top. */
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
      const name = names.get(zodSchema);
      if (name === undefined || (name === self && path.length === 0)) return;
      for (const key of Object.keys(made)) delete (made as Record<string, unknown>)[key];
      Object.assign(made, FORMS[name] ?? ref(name));
    },
  });
  return json;
}
const inputSchema = (schema: z.ZodType, self?: string): JsonSchema => jsonSchema(schema, "input", NAMES, self);

function snapshotSchema(): JsonSchema {
  const json = inputSchema(snapshot);
  const properties = json["properties"] as Record<string, JsonSchema>;
  const pods = properties["pods"] as JsonSchema;
  const list = { type: "object", description: "v1.PodList", required: ["items"], properties: { items: pods } };
  return {
    ...json,
    description:
      "What is known of a node at one moment. Null counts as absent, unknown fields are ignored; what a decision needs and does not get is named in its answer.",
    properties: { ...properties, pods: { anyOf: [pods, list] } },
  };
}

function assignmentsSchema(): JsonSchema {
  const json = inputSchema(assignments, "Assignments");
  const files = Object.entries(json["properties"] as Record<string, JsonSchema>);
  const text = { type: "string", description: "the file's text" };
  return { ...json, properties: Object.fromEntries(files.map(([name, schema]) => [name, { anyOf: [schema, text] }])) };
}

/** Each list may also stand in the object that crictl prints. */
function runtimeSchema(): JsonSchema {
  const json = inputSchema(runtime, "Runtime");
  const properties = json["properties"] as Record<string, JsonSchema>;
  const within = (key: string, command: string, schema: JsonSchema | undefined): JsonSchema => ({
    anyOf: [
      schema,
      { type: "object", description: `as crictl ${command} prints it`, required: [key], properties: { [key]: schema } },
    ],
  });
  const wrapped = {
    images: within("images", "images", properties["images"]),
    containers: within("containers", "ps -a", properties["containers"]),
    sandboxes: within("items", "pods", properties["sandboxes"]),
    imageFilesystems: within("status", "imagefsinfo", properties["imageFilesystems"]),
  };
  return { ...json, description: RUNTIME, properties: { ...properties, ...wrapped } };
}

export function inputSchemas(): Readonly<Record<string, JsonSchema>> {
  const named = NAMED.map(
    ([name, schema, description]) => [name, { ...inputSchema(schema, name), description }] as const,
  );
  return {
    NodeSnapshot: snapshotSchema(),
    ...Object.fromEntries(named),
    Assignments: assignmentsSchema(),
    Runtime: runtimeSchema(),
    RemovalsDone: inputSchema(doneList),
    ResultsReport: inputSchema(resultsReport),
  };
}
