import type { ProbeHandler, ProbeOutcome } from "../../api/model/probe.ts";
import type { ContainerPort, EnvVar } from "../lifecycle/pod.ts";
import type { PodRuntime } from "../pods/ports.ts";

/** The container that is asked. */
export interface ProbeTarget {
  /** Empty: the pod has none yet. */
  readonly podIP: string;
  readonly ports: readonly Pick<ContainerPort, "name" | "containerPort">[];
  /** As the runtime knows it. */
  readonly containerId: string;
  readonly env: readonly EnvVar[];
}
export interface AskedProbe {
  readonly handler: ProbeHandler;
  /** More than 0; nothing of the attempt lasts longer. */
  readonly timeoutMs: number;
  readonly target: ProbeTarget;
}
export type ProbePorts = Pick<PodRuntime, "exec">;
/** One attempt; it never throws. */
export type Attempt = (asked: AskedProbe, ports: ProbePorts) => Promise<ProbeOutcome>;
