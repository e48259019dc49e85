import { CONTAINER_RULES } from "./container-rules.ts";
import { POD_RULES } from "./pod-rules.ts";
import type { FieldRules } from "./rule.ts";
import { VOLUME_RULES } from "./volume-rules.ts";

/** Every field of a v1.Pod that can be written in a manifest, by the name of its Go type. kubernetes 1.36: core/v1/types.go. */
export const RULES = { ...POD_RULES, ...CONTAINER_RULES, ...VOLUME_RULES } as const satisfies Readonly<
  Record<string, FieldRules>
>;
