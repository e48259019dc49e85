import * as z from "zod";
import { type InputIssue, joinPath } from "../base/input-issue.ts";
import { LIMITS } from "../base/limits.ts";
import { withoutNulls } from "../base/nulls.ts";
import { err, ok, type Result } from "../base/result.ts";
import { count, optional, pathPart, quantity, sortedRecord, text } from "./fields.ts";
import { resourceRequirements } from "./pod.ts";

/** A posted text stays as it is on disk, since its checksum covers it; a posted object is written as JSON. */
const stateText = z.preprocess(
  (v) => (typeof v === "object" && v !== null && !Array.isArray(v) ? JSON.stringify(v) : v),
  z.string().max(LIMITS.stateText),
);

const byPod = <V extends z.ZodType>(entry: V) => sortedRecord(pathPart, entry, LIMITS.statePods);
/** A map for a pod's regular and init containers. */
const byContainer = <V extends z.ZodType>(entry: V) => sortedRecord(pathPart, entry, 2 * LIMITS.containersPerPod);

const cpuSetText = z.string().regex(/^(?:\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)?$/, "must be a CPU list such as 0-3,8");

const cpuManagerState = z.object({
  policyName: text,
  defaultCpuSet: optional(cpuSetText),
  /** Pod uid -> container name -> CPUs. */
  entries: optional(byPod(byContainer(cpuSetText))),
});
export type CpuManagerState = z.output<typeof cpuManagerState>;

const memoryBlock = z.object({ numaAffinity: z.array(count).max(64), type: text, size: count });
const memoryManagerState = z.object({
  policyName: text,
  entries: optional(byPod(byContainer(z.array(memoryBlock).max(64)))),
});
export type MemoryManagerState = z.output<typeof memoryManagerState>;

/**
 * Reads the CPUs of each container from the text of a cpu_manager_state of any version; checksums are not verified.
 * `behindData`: whether the kubelet reads the file's `data` member, where the file has one, instead of the top-level
 * fields. The error names the place.
 */
export const readCpuManagerState = (text: string, behindData: boolean): Result<CpuManagerState, InputIssue> =>
  readState("cpu_manager_state", cpuManagerState, text, behindData);
/** Reads a memory_manager_state as `readCpuManagerState` reads a cpu_manager_state. */
export const readMemoryManagerState = (text: string, behindData: boolean): Result<MemoryManagerState, InputIssue> =>
  readState("memory_manager_state", memoryManagerState, text, behindData);

function readState<S extends z.ZodType>(
  name: string,
  schema: S,
  text: string,
  behindData: boolean,
): Result<z.output<S>, InputIssue> {
  const at = `assignments.${name}`;
  let json: unknown;
  try {
    json = withoutNulls(JSON.parse(text));
    const { data } = (json ?? {}) as { data?: unknown };
    if (behindData && typeof data === "string" && data !== "") json = withoutNulls(JSON.parse(data));
  } catch {
    return err({ path: at, message: text === "" ? "the file is empty" : "the file is cut short, or no JSON" });
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return ok(parsed.data);
  const [first] = parsed.error.issues as [z.core.$ZodIssue];
  return err({ path: joinPath(at, first.path), message: first.message });
}

/** allocated_pods_state: the file wraps its JSON in a `data` text. */
const allocatedPods = z.object({
  entries: optional(
    byPod(
      z.object({
        ContainerResources: optional(byContainer(resourceRequirements)),
        PodLevelResources: optional(resourceRequirements),
        /** Sizes of in-memory volumes, by volume name. */
        EmptyDirVolumeLimits: optional(sortedRecord(pathPart, quantity, LIMITS.volumesPerPod)),
      }),
    ),
  ),
});
/** The file may be posted as its text or as its JSON. */
const allocatedPodsState = z.preprocess((v, ctx) => {
  if (typeof v !== "string") return unwrapData(v);
  try {
    return unwrapData(withoutNulls(JSON.parse(v)));
  } catch {
    ctx.issues.push({ code: "custom", message: "the text of a state file must be JSON", input: v });
    return z.NEVER;
  }
}, allocatedPods);
function unwrapData(v: unknown): unknown {
  const data = (v as { data?: unknown } | null)?.data;
  if (typeof data !== "string") return v;
  try {
    return withoutNulls(JSON.parse(data));
  } catch {
    return { entries: "`data` is not JSON" };
  }
}

/** The kubelet's own state files, under their file names. */
export const assignments = z.object({
  cpu_manager_state: optional(stateText),
  memory_manager_state: optional(stateText),
  kubelet_internal_checkpoint: optional(stateText),
  allocated_pods_state: optional(allocatedPodsState),
  dra_manager_state: optional(stateText),
  dra_health_state: optional(stateText),
});
