import * as z from "zod";
import { count, optional, pathPart, sortedRecord, text } from "./fields.ts";
import { LIMITS } from "./limits.ts";
import { withoutNulls } from "./nulls.ts";
import { resourceRequirements } from "./pod.ts";

/** State files may be posted as the file's text or as its JSON. */
const stateFile = <S extends z.ZodType>(schema: S) =>
  z.preprocess((v, ctx) => {
    if (typeof v !== "string") return v;
    try {
      return withoutNulls(JSON.parse(v));
    } catch {
      ctx.issues.push({ code: "custom", message: "the text of a state file must be JSON", input: v });
      return z.NEVER;
    }
  }, schema);

const byPod = <V extends z.ZodType>(entry: V) => sortedRecord(pathPart, entry, LIMITS.statePods);
/** A pod's regular and init containers. */
const byContainer = <V extends z.ZodType>(entry: V) => sortedRecord(pathPart, entry, 2 * LIMITS.containersPerPod);

export const cpuSetText = z.string().regex(/^(?:\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)?$/, "must be a CPU list such as 0-3,8");

const cpuManagerState = z.object({
  policyName: text,
  defaultCpuSet: optional(cpuSetText),
  /** Pod uid -> container name -> CPUs. */
  entries: optional(byPod(byContainer(cpuSetText))),
  checksum: optional(count),
});
export type CpuManagerState = z.output<typeof cpuManagerState>;

const memoryBlock = z.object({ numaAffinity: z.array(count).max(64), type: text, size: count });
const memoryManagerState = z.object({
  policyName: text,
  entries: optional(byPod(byContainer(z.array(memoryBlock).max(64)))),
  checksum: optional(count),
});
export type MemoryManagerState = z.output<typeof memoryManagerState>;

/** allocated_pods_state: the file wraps its JSON in a `data` text. */
const allocatedPods = z.object({
  entries: optional(
    byPod(
      z.object({
        ContainerResources: optional(byContainer(resourceRequirements)),
        PodLevelResources: optional(resourceRequirements),
      }),
    ),
  ),
});
export type AllocatedPodsState = z.output<typeof allocatedPods>;
const allocatedPodsState = stateFile(
  z.preprocess((v) => unwrapData(v), allocatedPods) as unknown as typeof allocatedPods,
);
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
  cpu_manager_state: optional(stateFile(cpuManagerState)),
  memory_manager_state: optional(stateFile(memoryManagerState)),
  allocated_pods_state: optional(allocatedPodsState),
});
export type Assignments = z.output<typeof assignments>;
