import { faultText } from "../../../actuator/containerd/fault.ts";
import {
  type ImageFileSystems,
  mountPointsOf,
  observeImageFileSystems,
} from "../../../actuator/containerd/file-systems.ts";
import { CONTAINER_LOGS, observeLogs, POD_LOGS } from "../../../actuator/containerd/logs.ts";
import { openRuntime } from "../../../actuator/containerd/runtime.ts";
import type { Missing } from "../../../actuator/machine/files.ts";
import { ok, type Result } from "../../base/result.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";

/** A person waits for it; the daemon uses the kubelet's timeout. */
const TIMEOUT_MS = 10_000;

export interface RuntimeParts {
  /** `runtime` of a NodeSnapshot. */
  readonly runtime: Readonly<Record<string, unknown>>;
  readonly imageFileSystems: ImageFileSystems;
  readonly missing: readonly Missing[];
}

/** Reads this machine's container runtime, with its logs and file systems. Errors: the endpoint, or the first call that failed. */
export async function readRuntime(endpoint: string, kubeletDirectory: string): Promise<Result<RuntimeParts, Fault>> {
  const opened = openRuntime({ endpoint, timeoutMs: TIMEOUT_MS });
  if (!opened.ok) return fault(EXIT.badInput, opened.error);
  const listed = await opened.value.list();
  opened.value.close();
  if (!listed.ok) return fault(EXIT.cannotRun, faultText(listed.error));
  const imageFileSystems = observeImageFileSystems(mountPointsOf(listed.value), kubeletDirectory);
  const { missing, ...logs } = observeLogs({ podLogs: POD_LOGS, containerLogs: CONTAINER_LOGS });
  const known = Object.fromEntries(Object.entries(logs).filter(([, names]) => names !== undefined));
  return ok({
    runtime: { ...listed.value, ...known },
    imageFileSystems,
    missing: [...missing, ...imageFileSystems.missing],
  });
}
