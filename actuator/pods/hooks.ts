import { quote } from "../../api/decide/go/strconv.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import { kubeletText } from "../containerd/fault.ts";
import { podWords } from "../lifecycle/back-off.ts";
import type { LifecycleHandler, RunnablePod } from "../lifecycle/pod.ts";
import type { PodClock } from "./clock.ts";
import { httpGet } from "./http-hook.ts";
import type { OwnedRuntime } from "./owned-runtime.ts";

export interface HookAsked {
  readonly handler: LifecycleHandler;
  readonly pod: RunnablePod;
  readonly container: { readonly id: string; readonly name: string };
  /** On the host's network: the node's. */
  readonly podIps: readonly string[];
  /** Of a command; 0: it may take as long as it likes. */
  readonly timeoutSeconds: number;
}

/**
 * Runs a hook of a container. Error: the kubelet's words, which may tell what the container printed: they are for the
 * container's status, not for an event. kubelet 1.36: handlerRunner.Run.
 */
export async function runHook(
  asked: HookAsked,
  runtime: OwnedRuntime,
  clock: PodClock,
  signal: AbortSignal,
): Promise<Result<null, string>> {
  const { handler, pod, container } = asked;
  const of = `for Container "${container.name}" in Pod "${podWords(pod)}" failed - error:`;
  if ("exec" in handler) {
    const { why, output } = await execute(handler.exec, asked, runtime);
    if (why === null) return ok(null);
    return err(`Exec lifecycle hook ([${handler.exec.join(" ")}]) ${of} ${why}, message: ${quote(output)}`);
  }
  if ("http" in handler) {
    const host = handler.http.host === "" ? asked.podIps[0] : handler.http.host;
    const answered =
      host === undefined ? err("failed to find networking container") : await httpGet(handler.http, host, signal);
    return answered.ok ? answered : err(`HTTP lifecycle hook (${handler.http.path}) ${of} ${answered.error}`);
  }
  await clock.sleep(handler.sleepSeconds * 1000, signal);
  return ok(null);
}

async function execute(command: readonly string[], asked: HookAsked, runtime: OwnedRuntime) {
  const ran = await runtime.exec(asked.container.id, command, asked.timeoutSeconds);
  if (!ran.ok) return { why: kubeletText(ran.error), output: "" };
  const { exitCode, stdout, stderr } = ran.value;
  const why = exitCode === 0 ? null : `command '${command.join(" ")}' exited with ${exitCode}: ${stderr}`;
  return { why, output: stdout + stderr };
}
