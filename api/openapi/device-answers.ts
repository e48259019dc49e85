import * as z from "zod";
import { cpusDecision, podRef } from "./manager-answers.ts";

const { startErrors, warnings, refusal, placements } = cpusDecision.shape;
const ids = z.array(z.string());
const named = z.array(z.strictObject({ name: z.string(), value: z.string() }));
const side = z.strictObject({ resource: z.string(), value: z.string() });

const deviceOptions = z
  .strictObject({
    envs: named,
    mounts: z.array(z.strictObject({ containerPath: z.string(), hostPath: z.string(), readOnly: z.boolean() })),
    devices: z.array(z.strictObject({ pathOnHost: z.string(), pathInContainer: z.string(), permissions: z.string() })),
    annotations: named,
    cdiDevices: ids,
    conflicts: z.array(
      z.strictObject({
        kind: z.enum(["env", "mount", "device", "annotation"]),
        name: z.string(),
        kept: side,
        dropped: side,
      }),
    ),
  })
  .describe(
    "what the container gets, the answers of several plugins put together; of two under one name the first stays",
  );

/** The decision of the device manager, as the API answers it. */
export const devicesDecision = z.strictObject({
  startErrors,
  warnings,
  refusal,
  checkpointError: z.string().nullable().describe("why kubelet_internal_checkpoint was not taken"),
  resources: z.array(
    z.strictObject({
      resource: z.string(),
      plugin: z.enum(["registered", "stopped", "unregistered", "removed"]),
      capacity: z.number(),
      allocatable: z.number(),
      allocated: z.number(),
      sanitized: z.number().describe("allocatable, never less than allocated"),
    }),
  ),
  assigned: z.array(
    z.strictObject({
      container: z.string(),
      resource: z.string(),
      devices: ids,
      reused: ids.describe("of an init container of the pod"),
      preferred: ids.describe("by the plugin"),
      aligned: ids.describe("on the NUMA nodes of the affinity"),
    }),
  ),
  assignments: z.array(
    z.strictObject({
      pod: podRef,
      container: z.string(),
      devices: z.record(z.string(), ids),
      options: deviceOptions.nullable(),
      pending: ids.describe("resources whose plugin has not said yet what the container gets"),
    }),
  ),
  placements,
  overlaps: z
    .array(z.strictObject({ resource: z.string(), device: z.string(), pods: z.array(podRef) }))
    .describe("devices that two pods hold, which the kubelet takes without a word"),
  purged: ids.describe("uids of pods that held devices and are no longer active"),
  unanswered: z
    .array(z.strictObject({ resource: z.string(), available: ids, mustInclude: ids, size: z.number() }))
    .describe("what a plugin would be asked; post its answer in devicePlugins[].preferred"),
});
