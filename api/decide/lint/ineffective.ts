import { type LintFinding, note, warning } from "./finding.ts";
import type { LintInput } from "./input.ts";

interface IneffectiveField {
  readonly code: string;
  readonly field: string;
  readonly hasNoEffect: (input: LintInput) => boolean;
  readonly why: string;
  readonly advice: string;
  readonly fix?: unknown;
  /** Somebody counts on what does not happen. */
  readonly harms?: true;
}
const isStatic = ({ config }: LintInput): boolean => config.cpuManagerPolicy === "static";
const aligns = ({ config }: LintInput): boolean => config.topologyManagerPolicy !== "none";
const hasDevices = ({ snapshot }: LintInput): boolean =>
  (snapshot?.devices?.length ?? 0) > 0 || Object.keys(snapshot?.devicePlugins ?? {}).length > 0;
const topologyOption = ({ config }: LintInput, name: string): boolean =>
  config.topologyManagerPolicyOptions[name] !== undefined;

/** Settings without effect beside the others. kubelet 1.36: what reads each of them. */
const INEFFECTIVE: readonly IneffectiveField[] = [
  {
    code: "topology-without-hints",
    field: "topologyManagerPolicy",
    hasNoEffect: (input) =>
      aligns(input) && !isStatic(input) && input.config.memoryManagerPolicy !== "Static" && !hasDevices(input),
    why: "the topology manager aligns what the static policies of CPUs and memory and device plugins give out: here only devices, if there are any",
    advice: "set cpuManagerPolicy to static (with reserved CPUs) where pods should be aligned",
    harms: true,
  },
  {
    code: "topology-options-idle",
    field: "topologyManagerPolicyOptions",
    hasNoEffect: (input) => !aligns(input) && Object.keys(input.config.topologyManagerPolicyOptions).length > 0,
    why: "with the topology policy none the options are not even read",
    advice: "set a policy, or take them out",
    fix: { topologyManagerPolicyOptions: null },
  },
  {
    code: "topology-scope-idle",
    field: "topologyManagerScope",
    hasNoEffect: (input) => !aligns(input) && input.config.topologyManagerScope === "pod",
    why: "with the topology policy none the scope means nothing",
    advice: "set a policy, or take it out",
    fix: { topologyManagerScope: null },
  },
  {
    code: "closest-nodes-idle",
    field: 'topologyManagerPolicyOptions["prefer-closest-numa-nodes"]',
    hasNoEffect: (input) =>
      input.config.topologyManagerPolicy === "single-numa-node" && topologyOption(input, "prefer-closest-numa-nodes"),
    why: "single-numa-node takes one node, so it never asks which ones are close",
    advice: "take it out, or use restricted or best-effort",
    fix: { topologyManagerPolicyOptions: { "prefer-closest-numa-nodes": null } },
  },
  {
    code: "reserved-cpus-without-static",
    field: "reservedSystemCPUs",
    hasNoEffect: (input) => input.config.reservedSystemCPUs !== "" && !isStatic(input),
    why: "without the static CPU policy only their number counts: pods run on these CPUs too",
    advice: "set cpuManagerPolicy to static with strict-cpu-reservation to keep pods off them",
    harms: true,
  },
  {
    code: "reserved-memory-idle",
    field: "reservedMemory",
    hasNoEffect: ({ config }) => config.reservedMemory.length > 0 && config.memoryManagerPolicy !== "Static",
    why: "only the memory manager's policy Static reads it",
    advice: "set memoryManagerPolicy to Static, or take it out",
    fix: { reservedMemory: null },
  },
  {
    code: "qos-reserved-idle",
    field: "qosReserved",
    hasNoEffect: ({ config, isOn }) => Object.keys(config.qosReserved).length > 0 && !isOn("QOSReserved"),
    why: "the feature gate QOSReserved is off, so nothing is held back",
    advice: "switch the gate on, or take it out",
    fix: { featureGates: { QOSReserved: true } },
    harms: true,
  },
  {
    code: "throttling-factor-idle",
    field: "memoryThrottlingFactor",
    hasNoEffect: ({ config: { memoryThrottlingFactor: factor, profile }, isOn }) =>
      // another one than this is refused
      factor === (profile.behaviour.throttlingFactorWithoutGate ?? factor) &&
      factor !== profile.configuration.memoryThrottlingFactor &&
      !isOn("MemoryQoS"),
    why: "the feature gate MemoryQoS is off, so no memory.high is written",
    advice: "switch the gate on, or take it out",
    fix: { memoryThrottlingFactor: null },
  },
  {
    code: "swap-refused-by-default",
    field: "memorySwap.swapBehavior",
    hasNoEffect: ({ config }) => config.memorySwap.swapBehavior === "LimitedSwap" && config.failSwapOn,
    why: "failSwapOn is true, so the kubelet does not start where there is swap, and without swap there is none to give",
    advice: "set failSwapOn to false",
    fix: { failSwapOn: false },
    harms: true,
  },
  {
    code: "quota-period-idle",
    field: "cpuCFSQuotaPeriod",
    hasNoEffect: ({ config }) =>
      !config.cpuCFSQuota && config.cpuCFSQuotaPeriod.nanos !== config.profile.configuration.cpuCFSQuotaPeriod?.nanos,
    why: "cpuCFSQuota is false, so no quota is written and its period does not matter",
    advice: "take it out",
    fix: { cpuCFSQuotaPeriod: null },
  },
];

export const ineffectiveFindings = (input: LintInput): readonly LintFinding[] =>
  INEFFECTIVE.filter(({ hasNoEffect }) => hasNoEffect(input)).map(({ code, field, why, advice, fix = null, harms }) => {
    const found = { code, field, message: why, advice, fix };
    return harms === true ? warning(found) : note(found);
  });
