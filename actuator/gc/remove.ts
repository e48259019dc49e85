import { err, ok, type Result } from "../../api/base/result.ts";
import { indexed } from "../../api/decide/image-gc/image-names.ts";
import type { ContainerRemoval, Done } from "../../api/model/container-gc.ts";
import type { ImageRemoval } from "../../api/model/image-gc.ts";
import type { Runtime, RuntimeFault, RuntimeResult } from "../containerd/cri.ts";
import { faultText, isUnanswered, kubeletText } from "../containerd/fault.ts";
import type { LogRemoval } from "../containerd/logs.ts";
import type { DecisionAnswer, Problem } from "../core/interfaces.ts";
import type { GcDeps, RemovalReport } from "./dependencies.ts";
import type { Entry, GcKind, InterruptedPass } from "./journal.ts";
import type { NodeObservation } from "./observe-node.ts";

/**
 * The result of the check right before a removal. An unexpected state is described in words; after a fault nothing is
 * known.
 */
type Guarded =
  | { readonly state: "as-planned"; readonly stopFirst: boolean; readonly logPath: string | null }
  | { readonly state: "surprise"; readonly found: string }
  | { readonly state: "fault"; readonly message: string };

const AS_PLANNED: Guarded = { state: "as-planned", stopFirst: false, logPath: null };
const GONE = "it is not there any more";
const surprise = (found: string): Guarded => ({ state: "surprise", found });
const faulty = (fault: RuntimeFault): Guarded => ({ state: "fault", message: faultText(fault) });

/** The minimum grace period that the kubelet gives a container of unknown state. */
const STOP_SECONDS = 2;

/** Checks that a removal's target is still as the decision saw it. INVARIANT: nothing is removed without this check. */
export async function guard(
  removal: Removal,
  observation: NodeObservation,
  { runtime, readPods }: GcDeps,
): Promise<Guarded> {
  switch (removal.target) {
    case "image":
      return guardImage(removal.image, runtime);
    case "container":
      return guardContainer(removal.container, observation, runtime);
    case "sandbox":
      return guardSandbox(removal.container, observation, runtime);
    case "pod-logs":
      return guardPodLogs(removal.container, observation, readPods);
    case "log-link":
      return guardLogLink(removal.container);
  }
}

type AsPlanned = Extract<Guarded, { readonly state: "as-planned" }>;

/**
 * Removes a checked target. `failed`: the runtime or the file system refused, with its message. A call without an
 * answer may have worked, or may still: the runtime is asked what exists now, and a target that is not certainly gone
 * ends as `stopped`.
 */
export async function remove(
  removal: Removal,
  guarded: AsPlanned,
  deps: GcDeps,
): Promise<Pick<Done, "end" | "message">> {
  const removed = await tryTo(removal, guarded, deps);
  if (removed.ok) return removed.value === "removed" ? { end: "removed" } : { end: "stopped", message: GONE };
  const { words, isDoubtful } = removed.error;
  if (!isDoubtful) return { end: "failed", message: words };
  const gone = await isGone(removal, deps);
  if (!gone.ok) return { end: "stopped", message: `what became of it is not known: ${words}; then ${gone.error}` };
  if (gone.value) return { end: "removed", message: `it is gone, though its answer did not come in time: ${words}` };
  return { end: "stopped", message: `it is still there, and may go later: ${words}` };
}

interface Refused {
  readonly words: string;
  /** True: there was no answer, so the call may have worked. */
  readonly isDoubtful: boolean;
}
type RemoveOutcome = Result<"removed" | "gone", Refused>;

async function tryTo(
  removal: Removal,
  { stopFirst, logPath }: AsPlanned,
  { runtime, logs }: GcDeps,
): Promise<RemoveOutcome> {
  const { id } = removal;
  switch (removal.target) {
    case "image":
      return worded(runtime.removeImage(id, removal.runtimeHandler));
    case "container":
      return removeContainer(id, stopFirst, logPath, runtime, logs);
    case "sandbox": {
      // kubelet 1.36: removeSandbox also stops it, in the rare case that it is not stopped yet
      const stopped = await worded(runtime.stopSandbox(id));
      return stopped.ok ? worded(runtime.removeSandbox(id)) : stopped;
    }
    case "pod-logs":
      return ofFiles(await logs.removePodLogs(id));
    case "log-link":
      return ofFiles(logs.removeLogLink(id));
  }
}

/** kubelet 1.36: removeContainer removes the logs first. */
async function removeContainer(
  id: string,
  stopFirst: boolean,
  logPath: string | null,
  runtime: GcDeps["runtime"],
  logs: GcDeps["logs"],
): Promise<RemoveOutcome> {
  const stopped = stopFirst ? await worded(runtime.stopContainer(id, STOP_SECONDS)) : REMOVED;
  if (!stopped.ok) return stopped;
  const cleared = logPath === null ? ok(null) : logs.removeContainerLog(logPath);
  return cleared.ok ? worded(runtime.removeContainer(id)) : refused(cleared.error);
}

const REMOVED: RemoveOutcome = ok("removed");
const refused = (words: string, isDoubtful = false): RemoveOutcome => err({ words, isDoubtful });
const ofFiles = (removed: Awaited<LogRemoval>): RemoveOutcome => (removed.ok ? removed : refused(removed.error));
async function worded(answer: RuntimeResult<null>): Promise<RemoveOutcome> {
  const done = await answer;
  return done.ok ? REMOVED : refused(kubeletText(done.error), isUnanswered(done.error));
}

/** Checks that the image still exists under its id, is not pinned, and is used by no container of any state. */
export async function guardImage({ id, runtimeHandler, names }: ImageRemoval, runtime: Runtime): Promise<Guarded> {
  const now = await runtime.imageNow(id, runtimeHandler);
  if (!now.ok) return faulty(now.error);
  if (now.value === null) return surprise(GONE);
  if (now.value.id !== id) return surprise(`its id is ${now.value.id} now`);
  if (now.value.pinned) return surprise("it is pinned now");
  const used = await runtime.imagesInUse();
  if (!used.ok) return faulty(used.error);
  const own = new Set([id, ...names, ...now.value.names].flatMap(meanings));
  for (const [container, images] of used.value) {
    if (images.some((image) => meanings(image).some((one) => own.has(one))))
      return surprise(`container ${container} uses it now`);
  }
  return AS_PLANNED;
}

/** An id may lack its `sha256:`, a name its registry or tag; a digest means the same in every repository. */
const meanings = (reference: string): readonly string[] => [reference.replace(/^sha256:/, ""), indexed(reference)];

/** The container is still the same one and does not run; of unknown state it is stopped first. */
export async function guardContainer(
  { id, stopFirst }: ContainerRemoval,
  { createdAt }: NodeObservation,
  runtime: Runtime,
): Promise<Guarded> {
  const now = await runtime.containerNow(id);
  if (!now.ok) return faulty(now.error);
  if (now.value === null) return surprise(GONE);
  const { state, logPath } = now.value;
  if (now.value.id !== id || now.value.createdAt !== createdAt.get(id)) return surprise("another one has its id now");
  if (state === "CONTAINER_RUNNING") return surprise("it is running now");
  return { state: "as-planned", stopFirst: stopFirst || state === "CONTAINER_UNKNOWN", logPath };
}

/** The sandbox is still the same one, not ready, and no container is in it. */
export async function guardSandbox(
  { id }: ContainerRemoval,
  observation: NodeObservation,
  runtime: Runtime,
): Promise<Guarded> {
  const now = await runtime.sandboxNow(id);
  if (!now.ok) return faulty(now.error);
  if (now.value === null) return surprise(GONE);
  if (now.value.id !== id || now.value.createdAt !== observation.createdAt.get(id))
    return surprise("another one has its id now");
  if (now.value.state !== "SANDBOX_NOTREADY") return surprise("it is ready now");
  const containers = await runtime.imagesInUse();
  if (!containers.ok) return faulty(containers.error);
  for (const container of containers.value.keys()) {
    const sandbox = await sandboxOf(container, observation, runtime);
    if (!sandbox.ok) return faulty(sandbox.error);
    if (sandbox.value === id) return surprise(`container ${container} is in it now`);
  }
  return AS_PLANNED;
}

/** The sandbox of a container, which never changes; for a container newer than the list, the runtime is asked. */
async function sandboxOf(
  container: string,
  observation: NodeObservation,
  runtime: Runtime,
): RuntimeResult<string | null> {
  const listed = observation.sandboxOf.get(container);
  if (listed !== undefined) return { ok: true, value: listed };
  const now = await runtime.containerNow(container);
  return now.ok ? { ok: true, value: now.value?.sandboxId ?? null } : now;
}

/** Checks that the directory's pod is still removed, or has still ended, and that nothing of it runs. */
export async function guardPodLogs(
  { id }: ContainerRemoval,
  observation: NodeObservation,
  readPods: GcDeps["readPods"],
): Promise<Guarded> {
  const uid = podUidOf(id);
  if (uid === null) return surprise("its name is not NAMESPACE_NAME_UID");
  if (observation.livingPods.has(uid)) return surprise("its pod runs, though it is not among the pods: are those all?");
  const { pods, whole, problems, notices } = await readPods();
  if (pods === null || !whole) {
    const why = [...problems, ...notices][0]?.message ?? "no source";
    return { state: "fault", message: `the pods could not be read whole: ${why}` };
  }
  return lifeOf(uid, pods) === lifeOf(uid, observation.pods) ? AS_PLANNED : surprise("its pod is not as it was");
}

/** Checks that a link's name is one path segment: nothing outside the directory is removed. */
export const guardLogLink = ({ id }: ContainerRemoval): Guarded =>
  isOnePart(id) && id.endsWith(".log") ? AS_PLANNED : surprise("its name is no log file's");

/** A name that does not consist of dots alone; both callers make sure of that. */
const isOnePart = (name: string): boolean => !/[/\0]/.test(name);
function podUidOf(directory: string): string | null {
  const uid = directory.split("_").at(-1) ?? "";
  return isOnePart(directory) && directory.includes("_") && uid !== "" ? uid : null;
}

interface Pod {
  readonly metadata?: { readonly uid?: string; readonly deletionTimestamp?: string };
  readonly status?: { readonly phase?: string; readonly reason?: string };
}
/** The parts of a pod that decide whether its content may be removed, as one text. */
function lifeOf(uid: string, pods: readonly unknown[]): string {
  const { metadata, status } = (pods.find((one) => (one as Pod | null)?.metadata?.uid === uid) ?? {}) as Pod;
  return JSON.stringify([metadata?.uid, metadata?.deletionTimestamp, status?.phase, status?.reason]);
}

/** Whether the object was removed. Errors: why that cannot be determined. */
export async function isGone(
  { target, id, runtimeHandler }: Entry,
  { runtime, logs }: GcDeps,
): Promise<Result<boolean, string>> {
  if (target === "pod-logs" || target === "log-link") {
    const { podLogDirectories, danglingLogLinks, missing } = logs.observe();
    const names = target === "pod-logs" ? podLogDirectories : danglingLogLinks;
    return names === undefined
      ? err(missing.map(({ path, why }) => `${path}: ${why}`).join("; "))
      : ok(!names.includes(id));
  }
  const now = await statusOf(target, id, runtimeHandler, runtime);
  return now.ok ? ok(now.value === null) : err(faultText(now.error));
}

function statusOf(target: "image" | "container" | "sandbox", id: string, runtimeHandler: string, runtime: Runtime) {
  if (target === "image") return runtime.imageNow(id, runtimeHandler);
  return target === "container" ? runtime.containerNow(id) : runtime.sandboxNow(id);
}

/** A removal that a decision names, with what the guards compare it to. */
export type Removal = Entry &
  Pick<RemovalReport, "name" | "bytes" | "why"> &
  (
    | { readonly target: "image"; readonly image: ImageRemoval }
    | { readonly target: "container" | "sandbox" | "pod-logs" | "log-link"; readonly container: ContainerRemoval }
  );

/** A pass that a crash cut short, as it ended after all. */
export interface ClosedPass {
  readonly kind: GcKind;
  readonly done: readonly Done[];
  /** Objects whose removal was begun and which are still there: they count as not tried. */
  readonly left: readonly string[];
  readonly answer: DecisionAnswer;
}

/**
 * Completes the record of an interrupted pass, and removes nothing. Null: there is none. Errors: the runtime does not
 * answer, or nothing can be decided; nothing else may be removed before.
 */
export async function closeInterruptedPass(deps: GcDeps): Promise<Result<ClosedPass | null, Problem>> {
  const { journal, client } = deps;
  const found = journal === null ? ok(null) : journal.unclosed();
  if (!found.ok)
    return err({ from: "journal", message: `${found.error.message}; nothing is removed until it can be read` });
  const pass = found.value;
  if (pass === null) return ok(null);
  const outcome = await findOutcome(pass, deps);
  if (!outcome.ok) return err({ from: "runtime", message: `a pass that was interrupted: ${outcome.error}` });
  const { done, left } = outcome.value;
  const { kind, operation, snapshot, fileSystem } = pass;
  const space = fileSystem === null ? {} : { fileSystem };
  const answer = await client.decide(kind, snapshot, { operation, done, ...space });
  // otherwise a removal that is never accepted would block every later collection
  if (answer.ok) await client.commit(answer.value);
  const closed = journal?.close();
  if (closed?.ok === false)
    return err({ from: "journal", message: `${closed.error.message}; nothing is removed until it can be written` });
  return answer.ok ? ok({ kind, done, left, answer: answer.value }) : answer;
}

async function findOutcome(
  { done, unknown }: InterruptedPass,
  deps: GcDeps,
): Promise<Result<{ readonly done: readonly Done[]; readonly left: readonly string[] }, string>> {
  const all = [...done];
  const left: string[] = [];
  for (const entry of unknown) {
    const found = await isGone(entry, deps);
    if (!found.ok) return found;
    if (!found.value) left.push(entry.id);
    else all.push({ ...refOf(entry), end: "removed", message: "found gone after a restart" });
  }
  return ok({ done: all, left });
}
const refOf = ({ id, runtimeHandler }: Entry) => (runtimeHandler === "" ? { id } : { id, runtimeHandler });
