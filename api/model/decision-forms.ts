import { ALLOCATABLE_REASONS, allocatableDecision, NODE_LEVEL_REASONS } from "./allocatable.ts";
import { CGROUPS_REASONS, cgroupsDecision } from "./cgroups.ts";
import { CONTAINER_GC_REASONS, containerGcDecision } from "./container-gc.ts";
import { EVICTION_REASONS, evictionDecision } from "./eviction.ts";
import { IMAGE_GC_REASONS, imageGcDecision } from "./image-gc.ts";
import {
  CPUS_REASONS,
  cpusDecision,
  DEVICES_REASONS,
  devicesDecision,
  MEMORY_REASONS,
  memoryDecision,
  TOPOLOGY_REASONS,
  topologyDecision,
} from "./managers.ts";
import { ADMISSION_REASONS, admissionDecision, PREEMPTION_REASONS, preemptionDecision } from "./preemption.ts";
import { PROBE_GUARD_REASONS, probeGuardDecision } from "./probe-guard.ts";
import { PROBES_REASONS, probesDecision } from "./probes-decision.ts";

/** The form of each kind's decision. */
export const DECISION_FORMS = {
  allocatable: allocatableDecision,
  cgroups: cgroupsDecision,
  cpus: cpusDecision,
  memory: memoryDecision,
  topology: topologyDecision,
  devices: devicesDecision,
  admission: admissionDecision,
  preemption: preemptionDecision,
  eviction: evictionDecision,
  "image-gc": imageGcDecision,
  "container-gc": containerGcDecision,
  probes: probesDecision,
  "probe-guard": probeGuardDecision,
} as const;

/** The codes of each kind's reasons. */
export const REASON_CODES = {
  allocatable: ALLOCATABLE_REASONS,
  cgroups: [...NODE_LEVEL_REASONS, ...CGROUPS_REASONS],
  cpus: CPUS_REASONS,
  memory: MEMORY_REASONS,
  topology: TOPOLOGY_REASONS,
  devices: DEVICES_REASONS,
  admission: ADMISSION_REASONS,
  preemption: PREEMPTION_REASONS,
  eviction: EVICTION_REASONS,
  "image-gc": IMAGE_GC_REASONS,
  "container-gc": CONTAINER_GC_REASONS,
  probes: PROBES_REASONS,
  "probe-guard": PROBE_GUARD_REASONS,
} as const;
