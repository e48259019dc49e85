import type { ContainerRemoval } from "../../api/model/container-gc.ts";
import type { Answered, Runtime } from "../containerd/port.ts";
import { AS_PLANNED, faulty, GONE, type Guarded, surprise } from "./guarded.ts";
import type { Look } from "./look.ts";
import type { GcPorts } from "./ports.ts";

/** The container is still the same one and does not run; of unknown state it is stopped first. */
export async function guardContainer(
  { id, stopFirst }: ContainerRemoval,
  { createdAt }: Look,
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
export async function guardSandbox({ id }: ContainerRemoval, look: Look, runtime: Runtime): Promise<Guarded> {
  const now = await runtime.sandboxNow(id);
  if (!now.ok) return faulty(now.error);
  if (now.value === null) return surprise(GONE);
  if (now.value.id !== id || now.value.createdAt !== look.createdAt.get(id))
    return surprise("another one has its id now");
  if (now.value.state !== "SANDBOX_NOTREADY") return surprise("it is ready now");
  const containers = await runtime.imagesInUse();
  if (!containers.ok) return faulty(containers.error);
  for (const container of containers.value.keys()) {
    const sandbox = await sandboxOf(container, look, runtime);
    if (!sandbox.ok) return faulty(sandbox.error);
    if (sandbox.value === id) return surprise(`container ${container} is in it now`);
  }
  return AS_PLANNED;
}

/** A container never changes its sandbox; one that came after the list is asked about. */
async function sandboxOf(container: string, look: Look, runtime: Runtime): Answered<string | null> {
  const listed = look.sandboxOf.get(container);
  if (listed !== undefined) return { ok: true, value: listed };
  const now = await runtime.containerNow(container);
  return now.ok ? { ok: true, value: now.value?.sandboxId ?? null } : now;
}

/** The directory's pod is still gone, or as ended as it was, and the runtime runs nothing of it. */
export async function guardPodLogs(
  { id }: ContainerRemoval,
  look: Look,
  readPods: GcPorts["readPods"],
): Promise<Guarded> {
  const uid = podUidOf(id);
  if (uid === null) return surprise("its name is not NAMESPACE_NAME_UID");
  if (look.livingPods.has(uid)) return surprise("its pod runs, though it is not among the pods: are those all?");
  const { pods, whole, problems, notices } = await readPods();
  if (pods === null || !whole) {
    const why = [...problems, ...notices][0]?.message ?? "no source";
    return { state: "fault", message: `the pods could not be read whole: ${why}` };
  }
  return lifeOf(uid, pods) === lifeOf(uid, look.pods) ? AS_PLANNED : surprise("its pod is not as it was");
}

/** One part of a path: nothing outside the directory is ever named. */
export const guardLogLink = ({ id }: ContainerRemoval): Guarded =>
  isOnePart(id) && id.endsWith(".log") ? AS_PLANNED : surprise("its name is no log file's");

/** Of a name that holds more than dots, as both callers see to. */
const isOnePart = (name: string): boolean => !/[/\0]/.test(name);
function podUidOf(directory: string): string | null {
  const uid = directory.split("_").at(-1) ?? "";
  return isOnePart(directory) && directory.includes("_") && uid !== "" ? uid : null;
}

interface Pod {
  readonly metadata?: { readonly uid?: string; readonly deletionTimestamp?: string };
  readonly status?: { readonly phase?: string; readonly reason?: string };
}
/** What of a pod decides whether its content may go, as one text. */
function lifeOf(uid: string, pods: readonly unknown[]): string {
  const { metadata, status } = (pods.find((one) => (one as Pod | null)?.metadata?.uid === uid) ?? {}) as Pod;
  return JSON.stringify([metadata?.uid, metadata?.deletionTimestamp, status?.phase, status?.reason]);
}
