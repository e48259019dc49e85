import * as z from "zod";
import { count } from "./fields.ts";
import { type Form, podRef } from "./forms.ts";
import type { KindSpec } from "./kind-spec.ts";
import { HOLDER_TRAITS, MANAGER_REASONS, managed, reasonOfRefusal, strings } from "./managers.ts";
import { podAsk } from "./pod-ask.ts";

const DEVICES_REASONS = [
  ...MANAGER_REASONS,
  "allocatable_raised",
  "checkpoint_entry_dropped",
  "device_plugin_removed",
  "devices_given",
  "plugin_not_asked",
  "unhealthy_devices",
] as const;

export const deviceIds = () => z.record(z.string(), strings).describe("resource to device ids");
export type DeviceIds = Form<typeof deviceIds>;

const nameValue = () => z.strictObject({ name: z.string(), value: z.string() });
export type NameValue = Form<typeof nameValue>;

const deviceConflict = () => {
  const side = z.strictObject({ resource: z.string(), value: z.string() });
  return z.strictObject({
    kind: z.enum(["env", "mount", "device", "annotation"]),
    name: z.string().describe("the variable, the path in the container, or the annotation"),
    kept: side,
    dropped: side,
  });
};
/** Two plugins return different values under one name; the container gets the first. */
export type DeviceConflict = Form<typeof deviceConflict>;

const deviceOptions = () =>
  z
    .strictObject({
      envs: z.array(nameValue()),
      mounts: z.array(z.strictObject({ containerPath: z.string(), hostPath: z.string(), readOnly: z.boolean() })),
      devices: z.array(
        z.strictObject({ pathOnHost: z.string(), pathInContainer: z.string(), permissions: z.string() }),
      ),
      annotations: z.array(nameValue()),
      cdiDevices: strings,
      conflicts: z.array(deviceConflict()),
    })
    .describe(
      "what the container gets, the answers of several plugins put together; of two under one name the first stays",
    );
export type DeviceOptions = Form<typeof deviceOptions>;

const deviceResource = () =>
  z.strictObject({
    resource: z.string(),
    plugin: z
      .enum(["registered", "stopped", "unregistered", "removed"])
      .describe("unregistered: known from the checkpoint only; removed: its plugin stopped longer than 5 minutes ago"),
    capacity: count,
    allocatable: count,
    allocated: count.describe("held by containers"),
    sanitized: count.describe(
      "what the node's status says once a pod that holds devices is looked at: never less than is allocated",
    ),
  });
export type DeviceResourceState = Form<typeof deviceResource>;

const devicesAssigned = () =>
  z.strictObject({
    container: z.string(),
    resource: z.string(),
    devices: strings,
    reused: strings.describe("those of devices that an init container of the pod had before"),
    preferred: strings.describe("those that the plugin preferred"),
    aligned: strings.describe("those on the NUMA nodes of the affinity"),
  });
export type AssignedDevices = Form<typeof devicesAssigned>;

/** The decision of the kind `devices`. */
const devicesDecision = z.lazy(() =>
  z.strictObject({
    ...managed(),
    checkpointError: z
      .string()
      .nullable()
      .describe(
        "why kubelet_internal_checkpoint was ignored: the kubelet logs the error and continues as if no device were allocated",
      ),
    resources: z.array(deviceResource()),
    assigned: z.array(devicesAssigned()).describe("what the asked pod's containers get"),
    assignments: z
      .array(
        z.strictObject({
          pod: podRef,
          container: z.string(),
          devices: deviceIds(),
          options: deviceOptions().nullable().describe("null where no plugin has answered yet"),
          pending: strings.describe("resources whose plugin has not said yet what the container gets"),
        }),
      )
      .describe("every container with devices, the asked pod's with them"),
    overlaps: z
      .array(z.strictObject({ resource: z.string(), device: z.string(), pods: z.array(podRef) }))
      .describe("devices that two pods hold, which the kubelet takes without a word"),
    purged: strings.describe("uids of pods that held devices and are no longer active"),
    unanswered: z
      .array(z.strictObject({ resource: z.string(), available: strings, mustInclude: strings, size: count }))
      .describe(
        "what a plugin would be asked; the natural order of ids stands in for its answer, which is posted in devicePlugins[].preferred",
      ),
  }),
);
export type DevicesDecision = Form<typeof devicesDecision>;

export const devices = {
  decides: "the devices of device plugins, which container has which, and which a pod would get or why none",
  ask: podAsk,
  decision: devicesDecision,
  reasons: DEVICES_REASONS,
  reasonOf: reasonOfRefusal,
  podPartsOf: ({ assignments }: DevicesDecision) => assignments,
  facts: null,
  traits: HOLDER_TRAITS,
} as const satisfies KindSpec;
