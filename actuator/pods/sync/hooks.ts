import { err, ok, type Result } from "../../../api/base/result.ts";
import { quote } from "../../../api/decide/go/strconv.ts";
import { type HttpRequest, httpRequest } from "../../../api/decide/probes/http-request.ts";
import type { Profile } from "../../../api/profiles/profile.ts";
import { kubeletText } from "../../containerd/fault.ts";
import { podWords } from "../../lifecycle/back-off.ts";
import type { LifecycleHandler, RunnablePod } from "../../lifecycle/pod.ts";
import { follow, prepared } from "../../probes/http/http.ts";
import { OpenConnections } from "../../probes/net/dial.ts";
import type { PodClock } from "../pod-clock.ts";
import type { OwnedRuntime } from "./owned-runtime.ts";

export type HttpGet = Extract<LifecycleHandler, { http: unknown }>["http"];

/**
 * Sends a hook's request. Any response is a success, whatever its status; redirects are followed on the same host only.
 * Certificates are not checked. Error: why there was no response, in Go's words. kubelet 1.36: runHTTPHandler.
 * @param host the pod's address, used if the hook names no host
 */
export async function httpGet(
  get: HttpGet,
  host: string,
  profile: Profile,
  signal: AbortSignal,
): Promise<Result<null, string>> {
  const scheme = get.scheme === "https" ? "HTTPS" : "HTTP";
  const request = httpRequest({ ...get, scheme }, [], host, "lifecycle", profile);
  if (!request.ok) return request;
  const first = await ask(request.value, signal);
  // some servers speak plain HTTP although the pod says HTTPS
  return first.ok || !first.error.includes(IS_PLAIN) ? first : ask(plain(request.value), signal);
}
const IS_PLAIN = "server gave HTTP response to HTTPS client";
/** Leaves out the credentials, which plain HTTP would send readable. */
function plain({ url, host, headers }: HttpRequest): HttpRequest {
  const kept = [...headers].filter(([name]) => name !== "Authorization");
  return { url: { ...url, scheme: "http", user: null }, host, headers: new Map(kept) };
}

async function ask(request: HttpRequest, signal: AbortSignal): Promise<Result<null, string>> {
  const opened = new OpenConnections();
  const stop = (): void => opened.closeAll();
  signal.addEventListener("abort", stop);
  try {
    if (signal.aborted) stop();
    const answer = await follow({ ...prepared(request), isInBody: false }, 0, opened);
    return answer.ok ? ok(null) : answer;
  } finally {
    signal.removeEventListener("abort", stop);
    stop();
  }
}

interface HookRequest {
  readonly handler: LifecycleHandler;
  readonly pod: RunnablePod;
  readonly container: { readonly id: string; readonly name: string };
  /** The pod's addresses; on the host network, the node's. */
  readonly podIps: readonly string[];
  /** Timeout of a command; 0: no limit. */
  readonly timeoutSeconds: number;
  /** The kubelet version that is reimplemented. */
  readonly profile: Profile;
}

/**
 * Runs a hook of a container. Error: the kubelet's words, which may contain the container's output: they belong in the
 * container's status, not in an event. kubelet 1.36: handlerRunner.Run.
 */
export async function runHook(
  asked: HookRequest,
  runtime: Pick<OwnedRuntime, "exec">,
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
      host === undefined
        ? err("failed to find networking container")
        : await httpGet(handler.http, host, asked.profile, signal);
    return answered.ok ? answered : err(`HTTP lifecycle hook (${handler.http.path}) ${of} ${answered.error}`);
  }
  await clock.sleep(handler.sleepSeconds * 1000, signal);
  return ok(null);
}

async function execute(command: readonly string[], asked: HookRequest, runtime: Pick<OwnedRuntime, "exec">) {
  const ran = await runtime.exec(asked.container.id, command, asked.timeoutSeconds);
  if (!ran.ok) return { why: kubeletText(ran.error), output: "" };
  const { exitCode, stdout, stderr } = ran.value;
  const why = exitCode === 0 ? null : `command '${command.join(" ")}' exited with ${exitCode}: ${stderr}`;
  return { why, output: stdout + stderr };
}
