import * as z from "zod";
import { GUARD_RELEASES } from "../model/probe-guard.ts";

const integer = z.number();
const named = z.strictObject({
  containerId: z.string(),
  container: z.string().describe("NAMESPACE/POD/CONTAINER"),
});

/** Which liveness kills wait, as the API answers it. */
export const probeGuardDecision = z.strictObject({
  storm: z.boolean().describe("so many unrelated groups failed within the window that kills are held"),
  groups: integer,
  failingGroups: integer,
  leastGroups: integer.describe("from so many on it is a storm"),
  message: z.string(),
  kill: z.array(named).describe("of those that failed: whose kill goes ahead"),
  hold: z
    .array(named.extend({ heldForMs: integer.describe("0: from now on") }))
    .describe("of those that failed: whose kill waits"),
  released: z
    .array(named.extend({ why: z.enum(GUARD_RELEASES) }))
    .describe("kills that were held and are not any more; after `calm` and `held long enough` they go ahead"),
  holding: integer.describe("all that are held now"),
  known: z
    .array(named.extend({ group: z.string(), failedAgoMs: integer, heldForMs: integer.nullable() }))
    .describe("what the next question is to be told"),
});
