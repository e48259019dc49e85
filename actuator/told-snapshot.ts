import { withoutNulls } from "../api/model/nulls.ts";
import { container, pod as podSchema } from "../api/model/pod.ts";

type Fields = Readonly<Record<string, unknown>>;

/**
 * A snapshot as the API is told it: of its pods what decisions read, which is also all that a history stores of them. So no
 * env value, command, argument, last words or annotation of a pod leaves the node, and every id stays what it would be.
 */
export function toldSnapshot(snapshot: unknown): unknown {
  if (!isFields(snapshot)) return snapshot;
  const { pods, kubeletConfiguration } = snapshot;
  return {
    ...snapshot,
    ...(Array.isArray(pods) && { pods: pods.map(toldPod) }),
    ...(isFields(kubeletConfiguration) && { kubeletConfiguration: toldConfiguration(kubeletConfiguration) }),
  };
}

/** The same of an ask: the pod that it speaks of may be whole. */
export const toldAsk = <A extends object | undefined>(ask: A): A =>
  ask !== undefined && "pod" in ask ? { ...ask, pod: toldPod(ask.pod) } : ask;

const known = new WeakMap<object, unknown>();
function toldPod(pod: unknown): unknown {
  if (!isFields(pod)) return pod;
  const before = known.get(pod);
  if (before !== undefined) return before;
  const first = podSchema.safeParse(pod);
  const parsed = first.success ? first : podSchema.safeParse(withoutNulls(pod));
  const told = parsed.success ? parsed.data : faultyPod(pod);
  known.set(pod, told);
  return told;
}

const SPEC_FIELDS = Object.keys(podSchema.shape.spec.shape);
const CONTAINER_FIELDS = Object.keys(container.shape);

/** A pod that decisions refuse is told with its fault where it stands, and with no more of it than of another one. */
function faultyPod({ metadata, spec }: Fields): Fields {
  const containers = (list: unknown): unknown =>
    Array.isArray(list) ? list.map((one: unknown) => picked(one, CONTAINER_FIELDS)) : list;
  const own = picked(spec, SPEC_FIELDS);
  const lists = isFields(own) ? ["containers", "initContainers"].filter((name) => name in own) : [];
  return {
    metadata: picked(metadata, ["name", "namespace", "uid"]),
    spec: isFields(own) ? { ...own, ...Object.fromEntries(lists.map((name) => [name, containers(own[name])])) } : own,
  };
}

/** How a kubelet shows who it is to where it reads pods. */
const SECRET_SETTINGS = new Set(["staticPodURLHeader"]);
const toldConfiguration = (fields: Fields): Fields =>
  Object.fromEntries(
    Object.entries(fields)
      .filter(([name]) => !SECRET_SETTINGS.has(name))
      .map(([name, value]) => [name, name === "kubeletconfig" && isFields(value) ? toldConfiguration(value) : value]),
  );

const picked = (value: unknown, names: readonly string[]): unknown =>
  isFields(value) ? Object.fromEntries(names.flatMap((name) => (name in value ? [[name, value[name]]] : []))) : value;
const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
