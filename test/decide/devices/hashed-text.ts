import { type DeviceCheckpoint, hashedPieces } from "../../../api/decide/devices/checkpoint.ts";

/** The text from which the checksum is computed. */
export function hashedText(checkpoint: DeviceCheckpoint): string {
  const decoder = new TextDecoder();
  return [...hashedPieces(checkpoint)].map((p) => (typeof p === "string" ? p : decoder.decode(p))).join("");
}
