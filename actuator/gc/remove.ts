import type { Done } from "../../api/model/garbage-collection.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import { isUnanswered, kubeletText } from "../containerd/fault.ts";
import type { LogRemoval } from "../containerd/logs.ts";
import type { Answered } from "../containerd/port.ts";
import type { Removal } from "./entries.ts";
import { guardContainer, guardLogLink, guardPodLogs, guardSandbox } from "./guard-container.ts";
import { guardImage } from "./guard-image.ts";
import { GONE, type Guarded } from "./guarded.ts";
import { isGone } from "./is-gone.ts";
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

/**
 * Removes what was guarded. `failed`: the runtime, or the file system, refused in these words. A call that nobody answered
 * may have worked, or may still: the runtime is asked what is there now, and what is not gone for sure ends as `stopped`.
 */
export async function remove(
  removal: Removal,
  guarded: AsPlanned,
  ports: GcPorts,
): Promise<Pick<Done, "end" | "message">> {
  const removed = await tryTo(removal, guarded, ports);
  if (removed.ok) return removed.value === "removed" ? { end: "removed" } : { end: "stopped", message: GONE };
  const { words, isDoubtful } = removed.error;
  if (!isDoubtful) return { end: "failed", message: words };
  const gone = await isGone(removal, ports);
  if (!gone.ok) return { end: "stopped", message: `what became of it is not known: ${words}; then ${gone.error}` };
  if (gone.value) return { end: "removed", message: `it is gone, though its answer did not come in time: ${words}` };
  return { end: "stopped", message: `it is still there, and may go later: ${words}` };
}

interface Refused {
  readonly words: string;
  /** Nobody answered: what was asked for may have been done. */
  readonly isDoubtful: boolean;
}
type Tried = Result<"removed" | "gone", Refused>;

async function tryTo(removal: Removal, { stopFirst, logPath }: AsPlanned, { runtime, logs }: GcPorts): Promise<Tried> {
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
      return ofFiles(await logs.removePodLogs(id));
    case "log-link":
      return ofFiles(logs.removeLogLink(id));
  }
}

/** kubelet 1.36: removeContainer takes the logs first. */
async function removeContainer(
  id: string,
  stopFirst: boolean,
  logPath: string | null,
  runtime: GcPorts["runtime"],
  logs: GcPorts["logs"],
): Promise<Tried> {
  const stopped = stopFirst ? await worded(runtime.stopContainer(id, STOP_SECONDS)) : REMOVED;
  if (!stopped.ok) return stopped;
  const cleared = logPath === null ? ok(null) : logs.removeContainerLog(logPath);
  return cleared.ok ? worded(runtime.removeContainer(id)) : refused(cleared.error);
}

const REMOVED: Tried = ok("removed");
const refused = (words: string, isDoubtful = false): Tried => err({ words, isDoubtful });
const ofFiles = (removed: Awaited<LogRemoval>): Tried => (removed.ok ? removed : refused(removed.error));
async function worded(answer: Answered<null>): Promise<Tried> {
  const done = await answer;
  return done.ok ? REMOVED : refused(kubeletText(done.error), isUnanswered(done.error));
}
