import type { KnownFields } from "../../../api/profiles/unknown-fields.ts";
import { RULES } from "./rules.ts";

const PROBE = {
  "": "Probe",
  exec: "ExecAction",
  httpGet: "HTTPGetAction",
  tcpSocket: "TCPSocketAction",
  grpc: "GRPCAction",
} as const;
const CONTAINER = {
  "": "Container",
  ports: "ContainerPort",
  env: "EnvVar",
  resources: "ResourceRequirements",
  securityContext: "SecurityContext",
  volumeMounts: "VolumeMount",
  ...below("startupProbe", PROBE),
  ...below("livenessProbe", PROBE),
  ...below("readinessProbe", PROBE),
} as const;
const POD = {
  "": "Pod",
  metadata: "ObjectMeta",
  spec: "PodSpec",
  "spec.securityContext": "PodSecurityContext",
  "spec.resources": "ResourceRequirements",
  "spec.volumes": "Volume",
  ...below("spec.containers", CONTAINER),
  ...below("spec.initContainers", CONTAINER),
} as const;

/** Fields of a v1.Pod and of what in it decisions are made by. */
export const POD_FIELDS: KnownFields = new Map(
  Object.entries(POD).map(([form, type]) => [form, Object.keys(RULES[type])]),
);

function below<T>(at: string, types: Readonly<Record<string, T>>): Readonly<Record<string, T>> {
  return Object.fromEntries(Object.entries(types).map(([form, type]) => [form === "" ? at : `${at}.${form}`, type]));
}
