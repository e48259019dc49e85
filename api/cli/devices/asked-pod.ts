import type { PodContainer, RunnablePod } from "../../../actuator/lifecycle/pod.ts";
import { runnablePod } from "../../../actuator/lifecycle/spec/runnable-pod.ts";
import { type PodObject, staticPodOf } from "../../../actuator/manifests/static-pod.ts";
import { wantedDevices } from "../../../actuator/pods/devices/wanted.ts";
import { ok, type Result } from "../../model/result.ts";
import { EXIT, type Fault, fault } from "../exit.ts";
import { readPods } from "../inputs/pods.ts";

export interface AskedPod {
  readonly pod: RunnablePod;
  /** Init containers first, as they start. */
  readonly containers: readonly PodContainer[];
  /** Of the extended resources that it asks for, by name. */
  readonly resources: readonly string[];
}
type Fields = Readonly<Record<string, unknown>>;

/**
 * The one pod of a file. Of what nodewise would not do for a pod that it runs itself (probes, secrets) nothing is refused:
 * another one starts the containers. Errors: no pod, several, or one that asks for no device.
 */
export async function readAskedPod(file: string, nodeName: string): Promise<Result<AskedPod, Fault>> {
  const read = await readPods(file, nodeName);
  if (!read.ok) return read;
  const [written, second] = read.value.written;
  if (written === undefined || second !== undefined)
    return fault(EXIT.badInput, `--pod: ${file} holds ${read.value.pods.length} pods: give a file with one`);
  const object = named(written as PodObject, nodeName);
  const checked = runnablePod(withDevicesOnly(object));
  if (!checked.ok)
    return fault(EXIT.badInput, ...checked.error.map(({ path, message }) => `${file}: ${path}: ${message}`));
  const pod = { ...checked.value, object };
  const resources = new Set([...wantedDevices(pod).values()].flatMap((amounts) => [...amounts.keys()]));
  if (resources.size === 0) {
    const advice = "give a container `resources: {limits: {vendor.com/gpu: 1}}`";
    return fault(EXIT.badInput, `${file}: ${pod.namespace}/${pod.name} asks for no device: ${advice}`);
  }
  const { initContainers, containers } = pod.spec;
  return ok({ pod, containers: [...initContainers, ...containers], resources: [...resources].sort() });
}

/** A manifest under the name that it has there, and with a uid that is the same wherever its file lies. */
function named(written: PodObject, nodeName: string): Fields {
  const { namespace, uid } = staticPodOf(written, nodeName, "").metadata;
  return { apiVersion: "v1", kind: "Pod", ...written, metadata: { ...written.metadata, namespace, uid } };
}

/** What of a v1.Pod has to do with devices; what is not in the form of one stays, to be told. */
function withDevicesOnly(object: Fields): unknown {
  const { apiVersion, kind, metadata, spec } = object;
  const of = (value: unknown, ...names: readonly string[]): unknown =>
    isFields(value) ? Object.fromEntries(names.flatMap((name) => (name in value ? [[name, value[name]]] : []))) : value;
  const each = (list: unknown, ...names: readonly string[]): unknown =>
    Array.isArray(list) ? list.map((container) => of(container, "name", "image", "resources", ...names)) : list;
  if (!isFields(spec)) return { apiVersion, kind, metadata, spec };
  const containers = each(spec["containers"]);
  const initContainers = each(spec["initContainers"], "restartPolicy");
  return { apiVersion, kind, metadata: of(metadata, "name", "namespace", "uid"), spec: { containers, initContainers } };
}
const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
