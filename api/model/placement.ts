import * as z from "zod";
import { optional, text, textMap, wholeNumber } from "./fields.ts";
import { LIMITS } from "./limits.ts";

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
/** Only what must hold at admission; preferences and the affinity between pods are the scheduler's. */
export const affinity = z.object({
  nodeAffinity: optional(
    z.object({
      requiredDuringSchedulingIgnoredDuringExecution: optional(
        z.object({ nodeSelectorTerms: z.array(term).max(TERMS) }),
      ),
    }),
  ),
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

/** On static pods of older manifests: the AppArmor profile of a container. */
export const APP_ARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/";
export const OS_LABEL = "kubernetes.io/os";

const taint = z.object({ key: text, value: optional(text), effect: text });
export type Taint = z.output<typeof taint>;
export const taints = z.array(taint).max(LIMITS.labels);
