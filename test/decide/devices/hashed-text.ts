import { type DeviceCheckpoint, hashedPieces } from "../../../api/decide/devices/checkpoint.ts";

/** The text that the checksum is taken of. */
export function hashedText(checkpoint: DeviceCheckpoint): string {
  const decoder = new TextDecoder();
  return [...hashedPieces(checkpoint)].map((p) => (typeof p === "string" ? p : decoder.decode(p))).join("");
}
