import { createHash } from "node:crypto";
import { byKey } from "../../api/base/order.ts";
import { type Fields, fieldsOf, isObject } from "../../api/base/own.ts";
import { err, ok, type Result } from "../../api/base/result.ts";
import { podItems } from "../../api/documents/document-form.ts";
import type { ProblemCode, ReadProblem, RefusedItem, SourceDocument } from "../../api/documents/problem.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { refusedItemOf } from "../lifecycle/refused-item.ts";
import { dnsSubdomain } from "../lifecycle/spec/names.ts";

export interface PodObject extends Fields {
  readonly metadata: Fields & { readonly name: string };
  readonly spec: Fields;
}

const TOLERATION = { operator: "Exists", effect: "NoExecute" };

/**
 * A pod of a manifest file with what the kubelet adds to a static pod (kubelet 1.36: config.applyDefaults): uid, the node's
 * name after its own, namespace, node name, config annotations, the toleration, host ports, phase Pending. A
 * status in the file is dropped: only the node knows it.
 */
export function staticPodOf(pod: PodObject, nodeName: string, file: string): PodObject {
  const { metadata, spec } = pod;
  const uid = textOf(metadata["uid"]) ?? uidOf(pod, nodeName, file);
  return {
    ...pod,
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...metadata,
      name: staticName(metadata.name, nodeName),
      namespace: textOf(metadata["namespace"]) ?? "default",
      uid,
      annotations: {
        ...fieldsOf(metadata["annotations"]),
        "kubernetes.io/config.hash": uid,
        "kubernetes.io/config.source": "file",
      },
    },
    spec: { ...onHostPorts(spec), nodeName, tolerations: withToleration(spec["tolerations"]) },
    status: { phase: "Pending" },
  };
}

/** kubelet 1.36: generatePodName. */
const staticName = (name: string, nodeName: string): string => `${name}-${nodeName.toLowerCase()}`;

/**
 * 32 hexadecimal digits that stay the same for the same pod, node and file, over restarts and for any order of keys.
 * The kubelet hashes Go's dump of its structures; this hash has its own input, so the uids differ from a kubelet's.
 */
function uidOf(pod: PodObject, nodeName: string, file: string): string {
  const canonical = JSON.stringify(pod, (_, value: unknown) => (isObject(value) ? sortedFields(value) : value));
  return createHash("md5").update(`${canonical}host:${nodeName}file:${file}`).digest("hex");
}

const sortedFields = (fields: Fields): Fields => Object.fromEntries(Object.entries(fields).sort(byKey));
const textOf = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);

/**
 * Adds host ports: on the host's network every container port is one. kubernetes 1.36: SetDefaults_PodSpec,
 * defaultHostNetworkPorts.
 */
function onHostPorts(spec: Fields): Fields {
  if (spec["hostNetwork"] !== true) return spec;
  const onHost = (port: unknown): unknown =>
    isObject(port) && !port["hostPort"] && typeof port["containerPort"] === "number"
      ? { ...port, hostPort: port["containerPort"] }
      : port;
  const containers = (list: unknown): unknown =>
    Array.isArray(list)
      ? list.map((c: unknown) =>
          isObject(c) && Array.isArray(c["ports"]) ? { ...c, ports: c["ports"].map(onHost) } : c,
        )
      : list;
  const lists = ["containers", "initContainers"].filter((name) => spec[name] !== undefined);
  return { ...spec, ...Object.fromEntries(lists.map((name) => [name, containers(spec[name])])) };
}

/**
 * Adds a toleration of every NoExecute taint, in place of an existing one (core/helper: AddOrUpdateTolerationInPod).
 */
function withToleration(tolerations: unknown): readonly unknown[] {
  const own: readonly unknown[] = Array.isArray(tolerations) ? tolerations : [];
  const isSame = (t: unknown): boolean => {
    const { key, operator, effect, value } = fieldsOf(t);
    return !key && !value && operator === TOLERATION.operator && effect === TOLERATION.effect;
  };
  if (!own.some(isSame)) return [...own, TOLERATION];
  return own.map((t) => (isSame(t) ? TOLERATION : t));
}

export interface FoundPod {
  readonly pod: PodObject;
  readonly source: SourceDocument;
  /** The object's path in its document. */
  readonly at: Path;
}

type Path = readonly (string | number)[];
type PodResult = Result<FoundPod, ReadProblem>;

/**
 * The static pods of one document: a v1.Pod, or a v1.PodList or v1.List of them. An object that is no pod (not-a-pod), or a pod
 * that the API would refuse (invalid-pod), is an error with its place. `isOther`: objects for another reader.
 */
export function podsOf(
  source: SourceDocument,
  nodeName: string,
  isOther: (value: unknown) => boolean = () => false,
): readonly PodResult[] {
  const { kind } = fieldsOf(source.value);
  if (isOther(source.value)) return [];
  if (kind !== "PodList" && kind !== "List") return [podOf(source, source.value, [], nodeName)];
  const items = podItems(source.value);
  if (items === undefined)
    return [err(problemOf(source, "not-a-pod", ["items"], "expected a list of pods in `items`"))];
  return items.flatMap((item, i) => {
    // items of a PodList need not repeat their kind
    const pod = kind === "PodList" ? { apiVersion: "v1", kind: "Pod", ...fieldsOf(item) } : item;
    return isOther(pod) ? [] : [podOf(source, pod, ["items", i], nodeName)];
  });
}

function podOf(source: SourceDocument, value: unknown, at: Path, nodeName: string): PodResult {
  const refused = (code: ProblemCode, path: Path, message: string): PodResult => {
    const problem = problemOf(source, code, [...at, ...path], message);
    return err(isOther ? problem : { ...problem, item: itemOf(value, nodeName) });
  };
  const { apiVersion, kind } = fieldsOf(value);
  // a document of another kind names no pod
  const isOther = typeof kind === "string" && kind !== "Pod";
  if (apiVersion !== "v1" || kind !== "Pod") {
    const found = `found ${shown(apiVersion)} and ${shown(kind)}`;
    return refused("not-a-pod", [], `expected apiVersion \`v1\` and kind \`Pod\`, ${found}`);
  }
  const fault = formFault(value);
  if (fault !== null) return refused("invalid-pod", stepsOf(fault.path), fault.message);
  if (!isPodObject(value)) return refused("invalid-pod", [], "is no v1.Pod");
  const pod = staticPodOf(value, nodeName, source.file);
  const decoded = decodeSnapshot({ pods: [pod] });
  if (decoded.ok) return ok({ pod, source, at });
  const path = (decoded.error[0]?.path ?? "").replace(/^pods\[0\]\.?/, "");
  return refused("invalid-pod", stepsOf(path), `${path}: ${decoded.error[0]?.message ?? "is refused"}`);
}

/**
 * The likely identity of an object that could not be decoded as a pod: its readable fields, as a static pod would have
 * them.
 */
function itemOf(value: unknown, nodeName: string): RefusedItem {
  const item = refusedItemOf(value);
  const isPlain = fieldsOf(fieldsOf(value)["metadata"])["namespace"] === undefined;
  return {
    ...item,
    namespace: isPlain ? "default" : item.namespace,
    name: item.name === null ? null : staticName(item.name, nodeName),
  };
}

/** The fault that prevents a pod from getting a uid; the other fields are checked with the uid. */
function formFault(value: unknown): { readonly path: string; readonly message: string } | null {
  const { metadata, spec } = fieldsOf(value);
  if (!isObject(metadata)) return { path: "metadata", message: `metadata: expected an object, ${found(metadata)}` };
  const { name } = metadata;
  const fault = nameFault(name);
  if (fault !== null) return { path: "metadata.name", message: `metadata.name: ${fault}` };
  for (const field of ["namespace", "uid"])
    if (!isTextOrNone(metadata[field]))
      return { path: `metadata.${field}`, message: `metadata.${field}: must be text, ${found(metadata[field])}` };
  return isObject(spec) ? null : { path: "spec", message: `spec: expected an object, ${found(spec)}` };
}

/** kubernetes 1.36: ValidatePodName. */
function nameFault(name: unknown): string | null {
  if (name === undefined || name === null || name === "") return "Required value: give the pod a name";
  if (typeof name === "string") {
    const [says] = dnsSubdomain(name);
    return says === undefined ? null : `Invalid value: ${shown(name)}: ${says}`;
  }
  const isScalar = typeof name !== "object";
  return `must be text, ${found(name)}${isScalar ? " (in YAML y, no, 12 and 1e3 are no texts): put it in quotes" : ""}`;
}

const problemOf = (source: SourceDocument, code: ProblemCode, path: Path, message: string): ReadProblem => ({
  code,
  file: source.file,
  document: source.document,
  place: source.place(path),
  message,
});

/** `spec.containers[0].name`, `limits["a/b"]` -> its steps. */
export const stepsOf = (path: string): Path =>
  Array.from(path.matchAll(/\[(\d+)\]|\["([^"]*)"\]|([^.[\]]+)/g), ([, index, quoted, name]) =>
    index === undefined ? (quoted ?? name ?? "") : Number(index),
  );

const isTextOrNone = (value: unknown): boolean => value === undefined || value === null || typeof value === "string";
const isPodObject = (value: unknown): value is PodObject => formFault(value) === null;
const found = (value: unknown): string => `found ${shown(value)}`;
const shown = (value: unknown): string =>
  value === undefined ? "none" : `\`${String(JSON.stringify(value)).slice(0, 60)}\``;
