import * as z from "zod";
import { LIMITS } from "../base/limits.ts";
import { count, nodeName, nodeResourceList, optional, reportedVersion, text, textMap, wholeNumber } from "./fields.ts";

/** Where a pod may run, and under which rules of its own: the parts of v1.Pod that admission reads. */

const TERMS = 64;
const requirement = z.object({
  key: text,
  operator: text,
  values: optional(z.array(text).max(LIMITS.labels)),
});
export type NodeSelectorRequirement = z.output<typeof requirement>;
const requirements = optional(z.array(requirement).max(TERMS));
const term = z.object({ matchExpressions: requirements, matchFields: requirements });
export type NodeSelectorTerm = z.output<typeof term>;

export const nodeSelector = textMap();
/** v1.NodeSelector: one of its terms must hold. */
export const requiredNodes = z.object({ nodeSelectorTerms: z.array(term).max(TERMS) });
export type RequiredNodes = z.output<typeof requiredNodes>;
/** Only what must hold at admission; preferences and the affinity between pods are the scheduler's. */
export const affinity = z.object({
  nodeAffinity: optional(z.object({ requiredDuringSchedulingIgnoredDuringExecution: optional(requiredNodes) })),
});

const toleration = z.object({
  key: optional(text),
  operator: optional(text),
  value: optional(text),
  effect: optional(text),
});
export type Toleration = z.output<typeof toleration>;
export const tolerations = z.array(toleration).max(LIMITS.labels);

const appArmorProfile = optional(z.object({ type: text, localhostProfile: optional(text) }));
export const podSecurityContext = z.object({
  appArmorProfile,
  supplementalGroupsPolicy: optional(text),
  sysctls: optional(z.array(z.object({ name: text })).max(TERMS)),
});
export const containerSecurityContext = z.object({ appArmorProfile });
export type AppArmorProfile = NonNullable<z.output<typeof containerSecurityContext>["appArmorProfile"]>;

const port = wholeNumber(0, 65_535);
export const containerPorts = z
  .array(
    z.object({
      name: optional(text),
      hostPort: optional(port),
      containerPort: optional(port),
      protocol: optional(text),
      hostIP: optional(text),
    }),
  )
  .max(1024);

const mount = z.object({ bindMountOptions: optional(z.array(text).max(TERMS)) });
/** Mounts with options of their own; the others are left out, and so never stored. Undefined: there are none. */
export const volumeMounts = z
  .array(mount)
  .max(1024)
  .transform((all) => nonEmpty(all.filter(({ bindMountOptions = [] }) => bindMountOptions.length > 0)));
/** The volume mounts of containers that were added to a running pod. */
export const ephemeralContainers = z
  .array(z.object({ volumeMounts: optional(volumeMounts) }))
  .max(LIMITS.containersPerPod)
  .transform((all) => nonEmpty(all.filter((one) => one.volumeMounts !== undefined)));
const nonEmpty = <T>(list: readonly T[]): readonly T[] | undefined => (list.length === 0 ? undefined : list);

/** On static pods of older manifests: the AppArmor profile of a container. */
export const APP_ARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/";
export const OS_LABEL = "kubernetes.io/os";

const taint = z.object({ key: text, value: optional(text), effect: text });
export type Taint = z.output<typeof taint>;
export const taints = z.array(taint).max(LIMITS.labels);

const condition = z.object({ type: text, status: text, message: optional(text) });

/** The fields of v1.Node that a decision reads. */
export const node = z.object({
  kind: optional(z.literal("Node", "must be a v1.Node (kubectl get node NAME -o json)")),
  // without a name all posted pods count as the node's, and the history calls it unknown
  metadata: z.object({ name: optional(nodeName), labels: optional(textMap()) }).prefault({}),
  spec: optional(z.object({ taints: optional(taints) })),
  status: optional(
    z.object({
      capacity: optional(nodeResourceList),
      allocatable: optional(nodeResourceList),
      nodeInfo: optional(
        z.object({
          bootID: optional(text),
          kubeletVersion: optional(reportedVersion),
          kernelVersion: optional(text),
          /** Bytes. */
          swap: optional(z.object({ capacity: optional(count) })),
        }),
      ),
      conditions: optional(z.array(condition).max(64)),
      features: optional(z.object({ supplementalGroupsPolicy: optional(z.boolean()) })),
      declaredFeatures: optional(z.array(text).max(LIMITS.labels)),
    }),
  ),
});
export type Node = z.output<typeof node>;
