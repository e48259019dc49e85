import { err, ok, type Result } from "../../api/model/result.ts";
import { faultText } from "../containerd/fault.ts";
import type { Runtime } from "../containerd/port.ts";
import type { Entry } from "./journal.ts";
import type { GcPorts } from "./ports.ts";

/** Whether something that was to be removed is not there any more. Errors: why that cannot be found out. */
export async function isGone(
  { target, id, runtimeHandler }: Entry,
  { runtime, logs }: GcPorts,
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
