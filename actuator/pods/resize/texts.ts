import type { ResourceList } from "../../../api/model/fields.ts";
import type { Container, Pod } from "../../../api/model/pod.ts";
import { canonicalText } from "../../../api/model/quantity.ts";

/** Of the events about a resize: `Pod resize started: {"containers":[...],"generation":2}`. kubelet 1.36: podResizeMessage. */
export function resizeText(what: string, pod: Pod, generation: number, error = ""): string {
  const { initContainers = [], containers } = pod.spec;
  const summary = {
    ...(initContainers.length > 0 && { initContainers: initContainers.map(allocationOf) }),
    containers: containers.map(allocationOf),
    generation,
    ...(error !== "" && { error }),
  };
  return `Pod resize ${what}: ${goText(JSON.stringify(summary))}`;
}

const allocationOf = ({ name, resources }: Container): object => ({
  name,
  resources: {
    ...listOf("limits", resources?.limits),
    ...listOf("requests", resources?.requests),
  },
});

/** In the order of names, as Go writes a map, and each amount in its shortest form. */
function listOf(part: string, list: ResourceList | null | undefined): object {
  const entries = Object.entries(list ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  if (entries.length === 0) return {};
  return { [part]: Object.fromEntries(entries.map(([name, q]) => [name, canonicalText(q.amount, q.format)])) };
}

/** Go's JSON keeps these three out of a web page's way. */
const goText = (json: string): string =>
  json.replace(/[<>&]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
