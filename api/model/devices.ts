import * as z from "zod";
import { optional, text, timestamp, wholeNumber } from "./fields.ts";
import type { InputIssue } from "./input-issue.ts";
import { LIMITS } from "./limits.ts";

const resource = z.string().regex(/^[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,315}[A-Za-z0-9])?$/, "not a resource name");
const ids = z.array(text.min(1)).max(LIMITS.devices);

/** A device as a plugin lists it. */
const device = z.object({
  resource,
  id: text.min(1),
  health: optional(text),
  numaNodes: optional(z.array(wholeNumber(0, 1_000_000)).max(LIMITS.numaNodes)),
});
export const devices = z.array(device).max(LIMITS.devices);
export type Device = z.output<typeof device>;

/** Devices that are listed twice. `at`: the path of the list. */
export function deviceIssues(list: readonly Device[], at: string): readonly InputIssue[] {
  const issues: InputIssue[] = [];
  const seen = new Map<string, number>();
  for (const [i, { resource, id }] of list.entries()) {
    const first = seen.get(`${resource} ${id}`);
    if (first === undefined) seen.set(`${resource} ${id}`, i);
    else issues.push({ path: `${at}[${i}].id`, message: `device \`${id}\` is also ${at}[${first}]` });
    if (issues.length >= LIMITS.issues) break;
  }
  return issues;
}

/** A question that the plugin was asked (GetPreferredAllocation), and its answer. */
const preferred = z.object({
  available: ids,
  mustInclude: optional(ids),
  size: wholeNumber(0, LIMITS.devices),
  /** Best first. */
  deviceIds: optional(ids),
  /** Of the call, where it failed. */
  error: optional(text),
});
/** What the kubelet knows of a plugin beside its devices; without an entry it is registered, with no options. */
const devicePlugin = z.object({
  resource,
  /** Whether its stream is open; absent: it is. */
  registered: optional(z.boolean()),
  /** When its stream ended; a plugin that has not come back since the kubelet started has none. */
  stoppedAt: optional(timestamp),
  options: optional(
    z.object({ getPreferredAllocationAvailable: optional(z.boolean()), preStartRequired: optional(z.boolean()) }),
  ),
  preferred: optional(z.array(preferred).max(1024)),
});
export const devicePlugins = z.array(devicePlugin).max(LIMITS.deviceResources);
export type DevicePlugin = z.output<typeof devicePlugin>;
