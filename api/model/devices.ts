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

export const deviceIds = () => z.record(z.string(), strings).describe("the ids of devices by resource");
export type DeviceIds = Form<typeof deviceIds>;

const nameValue = () => z.strictObject({ name: z.string(), value: z.string() });
export type NameValue = Form<typeof nameValue>;

const deviceConflict = () => {
  const side = z.strictObject({ resource: z.string(), value: z.string() });
  return z.strictObject({
    kind: z.enum(["env", "mount", "device", "annotation"]),
    name: z.string().describe("the name of the variable or annotation, or the path in the container"),
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
      "what the runtime adds to the container: the answers of its device plugins, merged; of two values with the same name the first is used",
    );
export type DeviceOptions = Form<typeof deviceOptions>;

const deviceResource = () =>
  z.strictObject({
    resource: z.string(),
    plugin: z
      .enum(["registered", "stopped", "unregistered", "removed"])
      .describe(
        "the state of the resource's device plugin; unregistered: the resource is known only from the checkpoint; removed: the plugin stopped more than 5 minutes ago",
      ),
    capacity: count,
    allocatable: count,
    allocated: count.describe("the number of devices that are allocated to containers"),
    sanitized: count.describe(
      "the allocatable number in the node's status once the kubelet has checked a pod with devices: at least the number of allocated devices",
    ),
  });
export type DeviceResourceState = Form<typeof deviceResource>;

const devicesAssigned = () =>
  z.strictObject({
    container: z.string(),
    resource: z.string(),
    devices: strings,
    reused: strings.describe("those of `devices` that an init container of the pod had before"),
    preferred: strings.describe("those of `devices` that the plugin preferred"),
    aligned: strings.describe("those of `devices` that are on the NUMA nodes of the affinity"),
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
        "why the kubelet ignores kubelet_internal_checkpoint: it logs this error and continues as if no device were allocated; null: the file is used",
      ),
    resources: z.array(deviceResource()),
    assigned: z.array(devicesAssigned()).describe("the devices that the containers of the pod in the ask get"),
    assignments: z
      .array(
        z.strictObject({
          pod: podRef,
          container: z.string(),
          devices: deviceIds(),
          options: deviceOptions()
            .nullable()
            .describe("the merged answers of the plugins; null: no plugin has answered yet"),
          pending: strings.describe("the resources whose plugin has not answered for the container yet"),
        }),
      )
      .describe("all containers with devices, including those of the pod in the ask"),
    overlaps: z
      .array(z.strictObject({ resource: z.string(), device: z.string(), pods: z.array(podRef) }))
      .describe("devices that are allocated to two pods, which the kubelet accepts without a message"),
    purged: strings.describe("the uids of pods that had devices and are no longer active"),
    unanswered: z
      .array(z.strictObject({ resource: z.string(), available: strings, mustInclude: strings, size: count }))
      .describe(
        "the requests for preferred devices that the kubelet would send to plugins; without an answer in devicePlugins[].preferred, the decision uses the natural order of the ids",
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
