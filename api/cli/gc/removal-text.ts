import type { CollectionReport, RemovalReport, Space, TurnReport } from "../../../actuator/gc/ports.ts";
import type { Settled } from "../../../actuator/gc/settle.ts";
import { many } from "../../text/sentences/words.ts";
import { humanBytes } from "../../text/size.ts";
import { type Color, printable } from "../../text/style.ts";
import type { Terminal } from "../terminal.ts";

const COLOR: Readonly<Record<RemovalReport["end"], Color>> = { removed: "green", failed: "red", stopped: "yellow" };

/** `removed  image docker.io/library/x:1 (12.3 MiB): space`, with what was said where it did not go. */
export function removalLine({ target, name, bytes, why, end, message }: RemovalReport, { paint }: Terminal): string {
  const size = bytes === null ? "" : ` (${humanBytes(bytes)})`;
  const words = message === undefined ? "" : `: ${message}`;
  return `${paint(COLOR[end], end.padEnd(8))} ${printable(`${target} ${name}${size}, ${why}${words}`)}\n`;
}

/** How full the images' file system was, and is. */
export function spaceLine({ before, after }: CollectionReport["fileSystem"]): string {
  if (before === null || after === null) return "";
  const freed = after.availableBytes - before.availableBytes;
  const change = freed < 0 ? `${humanBytes(-freed)} less` : `${humanBytes(freed)} more`;
  return `image file system: ${usedText(before)} used before, ${usedText(after)} after: ${change} available (${humanBytes(after.availableBytes)})\n`;
}
const usedText = ({ capacityBytes, availableBytes }: Space): string =>
  capacityBytes === 0 ? "?" : `${Math.round(1000 * (1 - availableBytes / capacityBytes)) / 10} %`;

/** What was due at one time in a line each: `2026-... image-gc: 3 of 5 removed (1.2 GiB)`. */
export const turnLines = ({ collections, reclaim }: TurnReport): readonly string[] => [
  ...(reclaim === null || reclaim.ran.length === 0
    ? []
    : [`eviction reclaims on this node: ${reclaim.ran.join(", ")}`]),
  ...collections.map(collectionLine),
];

function collectionLine({ at, kind, operation, dryRun, answer, removals }: CollectionReport): string {
  const head = `${at} ${kind}${operation === "garbage-collect" ? "" : ` (${operation})`}`;
  if (answer === null) return `${head}: nothing decided`;
  const { remove, error } = answer.decision as { readonly remove: readonly unknown[]; readonly error: string | null };
  const failure = error === null ? "" : `; ${error}`;
  if (dryRun) return `${head}: ${many(remove.length, "removal")} planned, none done${failure}`;
  const gone = removals.filter(({ end }) => end === "removed");
  const bytes = gone.reduce((sum, one) => sum + (one.bytes ?? 0), 0);
  const size = bytes === 0 ? "" : ` (${humanBytes(bytes)})`;
  return `${head}: ${gone.length} of ${remove.length} removed${size}${failure}`;
}

/** A pass that a crash cut short, in one line. */
export const settledLine = ({ kind, done, left }: Settled): string =>
  `${kind}: a pass was cut short: ${many(done.length, "end")} told now, ${left.length} still there and not tried again yet`;
