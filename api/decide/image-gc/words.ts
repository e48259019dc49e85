import { goDurationText } from "../go/duration.ts";

/** What the kubelet says of a collection, word for word. */

const UNITS = ["KiB", "MiB", "GiB", "TiB"] as const;

/** A size for a person: `15.0 GiB`. kubelet 1.36: formatSize. */
export function formatSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  let size = bytes / 1024;
  let unit = 0;
  for (; size >= 1024 && unit < UNITS.length - 1; unit++) size /= 1024;
  return `${oneDecimal(size)} ${UNITS[unit]}`;
}
/** Both languages round the exact binary value; a tie (only .25 and .75 are) goes up in `toFixed`, to the even digit in Go. */
const oneDecimal = (n: number): string => (n % 1 === 0.25 ? `${Math.trunc(n)}.2` : n.toFixed(1));

/** Several errors as one text: a single one plain, each text once. apimachinery: errors.NewAggregate. */
function aggregate(messages: readonly string[]): string {
  const different = [...new Set(messages)];
  return different.length === 1 ? (different[0] as string) : `[${different.join(", ")}]`;
}

/** Of images that were too old. kubelet 1.36: freeOldImages. */
export const ageError = (maxAgeNanos: number, messages: readonly string[]): string =>
  `wanted to free images older than ${goDurationText(BigInt(maxAgeNanos))}, encountered errors in image deletion: ${aggregate(messages)}`;

/** kubelet 1.36: freeSpace. */
export const spaceError = (wanted: bigint, freed: bigint, messages: readonly string[]): string =>
  `wanted to free ${wanted} bytes, but freed ${freed} bytes space with errors in image deletion: ${aggregate(messages)}`;

/** kubelet 1.36: GarbageCollect. */
export const insufficientText = (usagePercent: number, capacityBytes: number, freed: bigint): string =>
  `Insufficient free disk space on the node's image filesystem (${usagePercent}% of ${formatSize(capacityBytes)} used). ` +
  `Failed to free sufficient space by deleting unused images (freed ${freed} bytes). ` +
  "Investigate disk usage, as it could be used by active images, logs, volumes, or other data.";

export const CAPACITY_ZERO = "invalid capacity 0 on image filesystem";
