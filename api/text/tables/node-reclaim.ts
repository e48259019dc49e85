import type { ReclaimTakes } from "../../model/eviction.ts";
import { many } from "../sentences/words.ts";
import { humanBytes } from "../size.ts";
import { countsText } from "./gc-targets.ts";

/** What the node-level functions would throw away, in a line; empty where it is not known. */
export function nodeReclaimText(takes: ReclaimTakes | null): string {
  if (takes === null || (takes.containers === null && takes.images === null)) return "";
  const { containers, images } = takes;
  const parts = [
    ...(containers === null || containers.remove.length === 0 ? [] : [countsText(containers.remove)]),
    ...(images === null || images.remove.length === 0
      ? []
      : [`${many(images.remove.length, "image")} (${humanBytes(images.freedBytes)})`]),
  ];
  const young = images?.keep.filter(({ why }) => why === "too-young").length ?? 0;
  const rest = young === 0 ? "" : `; too young to go: ${many(young, "image")}`;
  return `node-level: ${parts.length === 0 ? "nothing" : parts.join(", then ")} would go${rest}`;
}
