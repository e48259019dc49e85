import { goDurationText, quote } from "../../../api/decide/go/strconv.ts";
import type { ProbeHandler, ProbeOutcome } from "../../../api/model/probe-spec.ts";
import type { PodRuntime, RuntimeFault } from "../../containerd/cri.ts";
import { kubeletText } from "../../containerd/fault.ts";
import { expandAll } from "../../lifecycle/env.ts";
import type { EnvVar } from "../../lifecycle/pod.ts";
import { grpcProbe } from "../grpc/grpc.ts";
import { httpProbe } from "../http/http.ts";
import { bounded, type ProbeTarget, tcpProbe } from "../net/dial.ts";

interface QueuedAttempt {
  readonly start: () => void;
}

/**
 * Limits how many execs run at once; the others wait: pods take turns, and each pod's execs run in order. A timeout does not
 * begin before its exec runs.
 */
export class ExecLimit {
  readonly #most: number;
  /** The queues by pod, in the order of the pods' turns. */
  readonly #queues = new Map<string, QueuedAttempt[]>();
  #running = 0;
  #waiting = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get running(): number {
    return this.#running;
  }
  get waiting(): number {
    return this.#waiting;
  }

  /** Starts `run`, which must not reject, now or later. Returns a function that cancels it while it waits. */
  add(podUid: string, run: () => Promise<void>): () => void {
    const waiting: QueuedAttempt = { start: () => void this.#run(run) };
    const queue = this.#queues.get(podUid);
    if (queue === undefined) this.#queues.set(podUid, [waiting]);
    else queue.push(waiting);
    this.#waiting++;
    this.#next();
    return () => this.#remove(podUid, waiting);
  }

  async #run(run: () => Promise<void>): Promise<void> {
    this.#running++;
    try {
      await run();
    } finally {
      this.#running--;
      this.#next();
    }
  }

  #next(): void {
    while (this.#running < this.#most) {
      const [turn] = this.#queues;
      if (turn === undefined) return;
      const [podUid, queue] = turn;
      const first = queue.shift() as QueuedAttempt;
      this.#queues.delete(podUid);
      if (queue.length > 0) this.#queues.set(podUid, queue);
      this.#waiting--;
      first.start();
    }
  }

  #remove(podUid: string, waiting: QueuedAttempt): void {
    const queue = this.#queues.get(podUid);
    const at = queue?.indexOf(waiting) ?? -1;
    if (queue === undefined || at < 0) return;
    queue.splice(at, 1);
    if (queue.length === 0) this.#queues.delete(podUid);
    this.#waiting--;
  }
}

/** kubelet 1.36: pkg/probe/exec, maxReadLength. */
const MAX_OUTPUT_BYTES = 10 * 1024;

/**
 * Runs a command in the container. A non-zero exit code is a failure, and so is a command that exceeds the timeout, which the
 * runtime kills; an error of the runtime is an error. The attempt ends at the timeout even if the runtime does not answer:
 * the call itself ends later. kubelet 1.36: pkg/probe/exec, remoteRuntimeService.ExecSync.
 */
export function execProbe(
  command: readonly string[],
  target: ProbeTarget,
  timeoutMs: number,
  exec: PodRuntime["exec"],
): Promise<ProbeOutcome> {
  const expanded = expandAll(command, staticPairs(target.env));
  const late: ProbeOutcome = { result: "failure", output: timedOut(expanded, timeoutMs) };
  const run = async (): Promise<ProbeOutcome> => {
    // CRI counts whole seconds, and 0 means no timeout
    const ran = await exec(target.containerId, expanded, Math.max(1, Math.ceil(timeoutMs / 1000)));
    if (!ran.ok) return ran.error.code === "DEADLINE_EXCEEDED" ? late : { error: errorOf(ran.error) };
    const { exitCode, stdout, stderr } = ran.value;
    return { result: exitCode === 0 ? "success" : "failure", output: truncatedOutput(stdout + stderr) };
  };
  return bounded(
    timeoutMs,
    run,
    () => late,
    (error) => ({ error: (error as Error).message }),
  );
}

/** The error's text; the client library words a response that is too large differently from the kubelet's. */
const errorOf = (fault: RuntimeFault): string =>
  kubeletText({
    ...fault,
    message: fault.message.replace(TOO_LARGE, "grpc: received message larger than max ($1 vs. $2)"),
  });
const TOO_LARGE = /^Received message larger than max \((\d+) vs (\d+)\).*$/;

const timedOut = (command: readonly string[], timeoutMs: number): string =>
  `command timed out: ${quote(command.join(" "))} timed out after ${goDurationText(BigInt(Math.round(timeoutMs * 1e6)))}`;

/** Variables with a literal value in the manifest; others are empty. kubelet 1.36: ExpandContainerCommandOnlyStatic. */
const staticPairs = (env: readonly EnvVar[]) =>
  env.map((variable) => ({ key: variable.name, value: "value" in variable ? variable.value : "" }));

function truncatedOutput(output: string): string {
  const bytes = Buffer.from(output);
  return bytes.length <= MAX_OUTPUT_BYTES ? output : bytes.toString("utf8", 0, MAX_OUTPUT_BYTES);
}

export interface ProbeRequest {
  readonly handler: ProbeHandler;
  /** Positive; the limit for everything in the attempt. */
  readonly timeoutMs: number;
  readonly target: ProbeTarget;
}
export type ProbeDeps = Pick<PodRuntime, "exec">;
/** One probe attempt; it never throws. */
export type Attempt = (asked: ProbeRequest, deps: ProbeDeps) => Promise<ProbeOutcome>;

/**
 * Probes a container once. Errors are the kubelet's words for an attempt without a result: an invalid port, a response that
 * breaks off, a runtime that does not run the command. kubelet 1.36: prober.runProbe.
 */
export const attempt: Attempt = ({ handler, timeoutMs, target }, { exec }) => {
  if ("exec" in handler) return execProbe(handler.exec, target, timeoutMs, exec);
  if (target.podIP === "" && hostOf(handler) === "") return Promise.resolve(NO_ADDRESS);
  if ("http" in handler) return httpProbe(handler.http, target, timeoutMs);
  if ("tcp" in handler) return tcpProbe(handler.tcp, target, timeoutMs);
  return grpcProbe(handler.grpc, target, timeoutMs);
};
const hostOf = (handler: Exclude<ProbeHandler, { exec: unknown }>): string =>
  "http" in handler ? handler.http.host : "tcp" in handler ? handler.tcp.host : "";
/** Go's client takes an empty host for the machine itself: a kubelet would probe itself. */
const NO_ADDRESS: ProbeOutcome = { error: "the pod has no address yet" };
