import { createHash } from "node:crypto";

type Fields = Readonly<Record<string, unknown>>;
export interface PodObject extends Fields {
  readonly metadata: Fields & { readonly name: string };
  readonly spec: Fields;
}

const TOLERATION = { operator: "Exists", effect: "NoExecute" };

/**
 * A pod of a manifest file with what the kubelet gives a static pod (kubelet 1.36: config.applyDefaults): uid, the node's
 * name behind its own, namespace, node name, config annotations, the toleration, ports of the host, phase Pending. A
 * status in the file is dropped: only the node knows one.
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
export const staticName = (name: string, nodeName: string): string => `${name}-${nodeName.toLowerCase()}`;

/**
 * 32 hexadecimal digits that stay the same for the same pod, node and file, over restarts and whatever the order of keys.
 * The kubelet hashes Go's dump of its structures; these bytes are our own, so the uids differ from a kubelet's.
 */
function uidOf(pod: PodObject, nodeName: string, file: string): string {
  const canonical = JSON.stringify(pod, (_, value: unknown) => (isFields(value) ? sortedFields(value) : value));
  return createHash("md5").update(`${canonical}host:${nodeName}file:${file}`).digest("hex");
}

const sortedFields = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1)));
const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {});
const textOf = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);

/** On the host's network a port of a container is one of the host. kubernetes 1.36: SetDefaults_PodSpec, defaultHostNetworkPorts. */
function onHostPorts(spec: Fields): Fields {
  if (spec["hostNetwork"] !== true) return spec;
  const onHost = (port: unknown): unknown =>
    isFields(port) && !port["hostPort"] && typeof port["containerPort"] === "number"
      ? { ...port, hostPort: port["containerPort"] }
      : port;
  const containers = (list: unknown): unknown =>
    Array.isArray(list)
      ? list.map((c: unknown) =>
          isFields(c) && Array.isArray(c["ports"]) ? { ...c, ports: c["ports"].map(onHost) } : c,
        )
      : list;
  const lists = ["containers", "initContainers"].filter((name) => spec[name] !== undefined);
  return { ...spec, ...Object.fromEntries(lists.map((name) => [name, containers(spec[name])])) };
}

/** One toleration of every NoExecute taint, in the place of one that the pod has (core/helper: AddOrUpdateTolerationInPod). */
function withToleration(tolerations: unknown): readonly unknown[] {
  const own: readonly unknown[] = Array.isArray(tolerations) ? tolerations : [];
  const isSame = (t: unknown): boolean => {
    const { key, operator, effect, value } = fieldsOf(t);
    return !key && !value && operator === TOLERATION.operator && effect === TOLERATION.effect;
  };
  if (!own.some(isSame)) return [...own, TOLERATION];
  return own.map((t) => (isSame(t) ? TOLERATION : t));
}
