import type { PodContainer, RunnablePod } from "../pod.ts";

const OFFSET = 0x811c9dc5;
const PRIME = 0x01000193;

/**
 * Changes when a running container must be started anew: with its name and its image, as all else of a pod is fixed or
 * changes in place. Equal to the kubelet's own, hexadecimal. kubelet 1.36: HashContainer (FNV-1a of the dump of a JSON).
 */
export function containerHash(_pod: RunnablePod, container: Pick<PodContainer, "name" | "image">): string {
  const json = JSON.stringify({ image: container.image, name: container.name }).replace(
    /[<>&\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  const dump = `([]uint8)[${new TextEncoder().encode(json).join(" ")}]`;
  let hash = OFFSET;
  for (let i = 0; i < dump.length; i++) hash = Math.imul(hash ^ dump.charCodeAt(i), PRIME) >>> 0;
  return hash.toString(16);
}
