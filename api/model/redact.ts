import { type Fields, fieldsOf, isObject } from "../base/own.ts";
import { READ_ANNOTATIONS } from "./pod.ts";
import { podProbe } from "./probe-spec.ts";

/** Fields with which a kubelet authenticates itself to the source of its pods. */
const SECRET_SETTINGS: ReadonlySet<string> = new Set(["staticPodURLHeader"]);

/** A KubeletConfiguration, or a /configz, without the kubelet's credentials. */
export const withoutSecretSettings = (configuration: unknown): unknown =>
  isObject(configuration)
    ? mapped(configuration, (name, value) => {
        if (SECRET_SETTINGS.has(name)) return undefined;
        return name === "kubeletconfig" ? withoutSecretSettings(value) : value;
      })
    : configuration;

/**
 * A v1.Pod of the API server without anything that may be a secret: environment values, commands and arguments, headers and paths
 * of probes (replaced by a short hash, as decisions compare them), termination messages, attributes of inline volumes,
 * annotations that no decision reads, and field managers.
 */
export const withoutPodSecrets = (pod: Fields): Fields =>
  mapped(pod, (name, value) => {
    if (name === "metadata") return mapped(fieldsOf(value), ofMetadata);
    if (name === "spec") return mapped(fieldsOf(value), ofSpec);
    return name === "status" ? mapped(fieldsOf(value), ofStatus) : value;
  });

/** Any other object of the API server, without its field managers and without the copy of itself that `kubectl apply` stores. */
export const withoutManagers = (object: Fields): Fields => ({
  ...object,
  metadata: mapped(fieldsOf(object["metadata"]), (name, value) => {
    if (name === "managedFields") return undefined;
    return name === "annotations" ? mapped(fieldsOf(value), notApplied) : value;
  }),
});

/** An object of resource.k8s.io, also without drivers' parameters and data, which may be anything. */
export const withoutDriverParameters = (object: Fields): Fields => mapped(withoutManagers(object), notOfDriver);
const WITH_PARAMETERS: ReadonlySet<string> = new Set(["spec", "status", "allocation", "devices"]);
function notOfDriver(name: string, value: unknown): unknown {
  if (name === "config" || name === "data") return undefined;
  if (!WITH_PARAMETERS.has(name)) return value;
  return isObject(value) ? mapped(value, notOfDriver) : each(value, (item) => mapped(item, notOfDriver));
}

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
const notApplied = (name: string, value: unknown): unknown => (name === LAST_APPLIED ? undefined : value);

/** Maps the entries one by one; `undefined` leaves one out. */
function mapped(fields: Fields, change: (name: string, value: unknown) => unknown): Fields {
  const entries = Object.entries(fields).map(([name, value]) => [name, change(name, value)] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}
const each = (list: unknown, change: (item: Fields) => unknown): unknown =>
  Array.isArray(list) ? list.map((item: unknown) => (isObject(item) ? change(item) : item)) : list;

function ofMetadata(name: string, value: unknown): unknown {
  if (name === "managedFields") return undefined;
  if (name !== "annotations") return value;
  return mapped(fieldsOf(value), (key, text) => (READ_ANNOTATIONS.test(key) ? text : undefined));
}

const CONTAINER_LISTS: ReadonlySet<string> = new Set(["containers", "initContainers", "ephemeralContainers"]);
function ofSpec(name: string, value: unknown): unknown {
  if (CONTAINER_LISTS.has(name)) return each(value, (container) => mapped(container, ofContainer));
  return name === "volumes" ? each(value, (volume) => mapped(volume, ofVolume)) : value;
}

const SECRET_FIELDS: ReadonlySet<string> = new Set(["env", "envFrom", "command", "args"]);
const PROBES: ReadonlySet<string> = new Set(["startupProbe", "livenessProbe", "readinessProbe"]);
function ofContainer(name: string, value: unknown): unknown {
  if (SECRET_FIELDS.has(name)) return undefined;
  if (PROBES.has(name)) return podProbe.safeParse(value).data;
  // keeps which hooks exist and their type, but not what they do
  if (name === "lifecycle") return mapped(fieldsOf(value), (_, hook) => (isObject(hook) ? mapped(hook, bare) : hook));
  return value;
}
const bare = (): Fields => ({});

/** A volume source without driver-specific attributes: some drivers accept secrets there. */
const ofVolume = (_: string, source: unknown): unknown =>
  isObject(source)
    ? mapped(source, (name, value) => (name === "volumeAttributes" || name === "options" ? undefined : value))
    : source;

function ofStatus(name: string, value: unknown): unknown {
  if (!name.endsWith("ontainerStatuses")) return value;
  return each(value, (status) =>
    mapped(status, (field, state) => (field === "state" || field === "lastState" ? ofState(state) : state)),
  );
}

/** The reasons with which the message is the container's own; with others it is the kubelet's or the runtime's. */
const OWN_WORDS: ReadonlySet<unknown> = new Set(["Completed", "Error", "OOMKilled", undefined]);
const ofState = (state: unknown): unknown =>
  isObject(state)
    ? mapped(state, (name, value) => {
        const isOwn = name === "terminated" && isObject(value) && OWN_WORDS.has(value["reason"]);
        return isOwn ? mapped(value, (field, text) => (field === "message" ? undefined : text)) : value;
      })
    : state;
