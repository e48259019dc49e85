import { err, ok } from "../../api/model/result.ts";
import { kubeletText } from "../containerd/fault.ts";
import type { LogRemoval } from "../containerd/logs.ts";
import type { Answered } from "../containerd/port.ts";
import type { Removal } from "./entries.ts";
import { guardContainer, guardLogLink, guardPodLogs, guardSandbox } from "./guard-container.ts";
import { guardImage } from "./guard-image.ts";
import type { Guarded } from "./guarded.ts";
import type { Look } from "./look.ts";
import type { GcPorts } from "./ports.ts";

/** The least grace that the kubelet gives a container of unknown state. */
const STOP_SECONDS = 2;

/** Looks whether a removal is still what the decision saw. INVARIANT: nothing is removed that was not looked at here. */
export async function guard(removal: Removal, look: Look, { runtime, readPods }: GcPorts): Promise<Guarded> {
  switch (removal.target) {
    case "image":
      return guardImage(removal.image, runtime);
    case "container":
      return guardContainer(removal.container, look, runtime);
    case "sandbox":
      return guardSandbox(removal.container, look, runtime);
    case "pod-logs":
      return guardPodLogs(removal.container, look, readPods);
    case "log-link":
      return guardLogLink(removal.container);
  }
}

type AsPlanned = Extract<Guarded, { readonly state: "as-planned" }>;

/** Removes what was guarded; `gone`: it was not there. The error is the runtime's, or the file system's, own words. */
export async function remove(
  removal: Removal,
  { stopFirst, logPath }: AsPlanned,
  { runtime, logs }: GcPorts,
): Promise<LogRemoval> {
  const { id } = removal;
  switch (removal.target) {
    case "image":
      return worded(runtime.removeImage(id, removal.runtimeHandler));
    case "container":
      return removeContainer(id, stopFirst, logPath, runtime, logs);
    case "sandbox": {
      // kubelet 1.36: removeSandbox stops it, in the rare case that nobody has
      const stopped = await worded(runtime.stopSandbox(id));
      return stopped.ok ? worded(runtime.removeSandbox(id)) : stopped;
    }
    case "pod-logs":
      return logs.removePodLogs(id);
    case "log-link":
      return logs.removeLogLink(id);
  }
}

/** kubelet 1.36: removeContainer takes the logs first. */
async function removeContainer(
  id: string,
  stopFirst: boolean,
  logPath: string | null,
  runtime: GcPorts["runtime"],
  logs: GcPorts["logs"],
): Promise<LogRemoval> {
  const stopped = stopFirst ? await worded(runtime.stopContainer(id, STOP_SECONDS)) : REMOVED;
  if (!stopped.ok) return stopped;
  const cleared = logPath === null ? ok(null) : logs.removeContainerLog(logPath);
  return cleared.ok ? worded(runtime.removeContainer(id)) : cleared;
}

const REMOVED: LogRemoval = ok("removed");
async function worded(answer: Answered<null>): Promise<LogRemoval> {
  const done = await answer;
  return done.ok ? REMOVED : err(kubeletText(done.error));
}
