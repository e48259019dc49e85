import * as z from "zod";
import { optional, text, wholeNumber } from "./fields.ts";
import { LIMITS } from "./limits.ts";

/** A device as a plugin lists it. */
const device = z.object({
  resource: z.string().regex(/^[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,315}[A-Za-z0-9])?$/, "not a resource name"),
  id: text.min(1),
  health: optional(text),
  numaNodes: optional(z.array(wholeNumber(0, 1_000_000)).max(LIMITS.numaNodes)),
});
export const devices = z.array(device).max(LIMITS.devices);
export type Device = z.output<typeof device>;
