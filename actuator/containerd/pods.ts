import { map, ok, type Result } from "../../api/model/result.ts";
import type { Exec, LocalImage, PodRuntime } from "../pods/ports.ts";
import { nullIfGone } from "./at-once.ts";
import { cdiServed } from "./cdi.ts";
import { type Connection, type ConnectionOptions, openConnection } from "./connection.ts";
import type { CriMethod, CriRequest } from "./messages.ts";
import { podLister } from "./pod-list.ts";
import type { Answered } from "./port.ts";

/** Large images over slow lines: the kubelet waits without an end, and the runtime gives up where nothing comes. */
const LONGEST_PULL_MS = 60 * 60 * 1000;

/** Pods over CRI v1. Connects at the first call. The error says what is wrong with the endpoint. */
export const openPodRuntime = (options: ConnectionOptions): Result<PodRuntime, string> =>
  map(openConnection(options), podRuntimeOver);

/**
 * The port over a connection that others use too; `close` closes it. Deadlines as in the kubelet: the connection's, twice
 * that for a sandbox, and the grace or the process's own time on top. UNIMPLEMENTED is the fault of a runtime that is too
 * old for a call.
 */
export function podRuntimeOver(connection: Connection): PodRuntime {
  const run = async <M extends CriMethod>(method: M, request: CriRequest<M>): Answered<null> => {
    const done = await connection.call(method, request);
    return done.ok ? ok(null) : done;
  };
  /** What is not there need not be ended. */
  const end = async <M extends CriMethod>(method: M, request: CriRequest<M>, extraMs?: number): Answered<null> => {
    const done = await nullIfGone(connection.call(method, request, extraMs));
    return done.ok ? ok(null) : done;
  };
  return {
    pods: podLister(connection),
    runSandbox: async (config) =>
      map(await connection.call("RunPodSandbox", { config }, connection.timeoutMs), ({ podSandboxId }) => podSandboxId),
    stopSandbox: (podSandboxId) => end("StopPodSandbox", { podSandboxId }),
    removeSandbox: (podSandboxId) => end("RemovePodSandbox", { podSandboxId }),
    createContainer: async (podSandboxId, config, sandboxConfig) => {
      const served = await cdiServed(connection, config);
      if (!served.ok) return served;
      const created = await connection.call("CreateContainer", { podSandboxId, config, sandboxConfig });
      return map(created, ({ containerId }) => containerId);
    },
    startContainer: (containerId) => run("StartContainer", { containerId }),
    stopContainer: (containerId, timeout) => end("StopContainer", { containerId, timeout }, timeout * 1000),
    removeContainer: (containerId) => end("RemoveContainer", { containerId }),
    updateContainer: (containerId, linux) => run("UpdateContainerResources", { containerId, linux }),
    exec: (id, command, timeoutSeconds) => exec(connection, id, command, timeoutSeconds),
    image: (name) => imageOf(connection, name),
    pull: async (image) =>
      map(await connection.call("PullImage", { image: { image } }, LONGEST_PULL_MS), ({ imageRef }) => imageRef),
    close: connection.close,
  };
}

/** A process that takes too long is killed by the runtime, and is the fault DEADLINE_EXCEEDED in its words. */
async function exec(
  connection: Connection,
  containerId: string,
  cmd: readonly string[],
  timeout: number,
): Answered<Exec> {
  const answer = await connection.call("ExecSync", { containerId, cmd, timeout }, timeout * 1000);
  return map(answer, ({ exitCode, stdout, stderr }) => ({ exitCode, stdout: textOf(stdout), stderr: textOf(stderr) }));
}
const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8");

async function imageOf(connection: Connection, name: string): Answered<LocalImage | null> {
  const answer = await nullIfGone(connection.call("ImageStatus", { image: { image: name } }));
  if (!answer.ok) return answer;
  const image = answer.value?.image ?? null;
  if (image === null) return ok(null);
  const { id, uid, username, size } = image;
  return ok({ id, user: uid?.value ?? (username || null), ...(size === "0" ? {} : { sizeBytes: Number(size) }) });
}
