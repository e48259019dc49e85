import { goDurationText, quote } from "../../../api/decide/go/strconv.ts";
import type { ProbeHandler, ProbeOutcome } from "../../../api/model/probe.ts";
import type { PodRuntime, RuntimeFault } from "../../containerd/cri.ts";
import { kubeletText } from "../../containerd/fault.ts";
import { expandAll } from "../../lifecycle/env.ts";
import type { EnvVar } from "../../lifecycle/pod.ts";
import { grpcProbe } from "../grpc/grpc.ts";
import { httpProbe } from "../http/http.ts";
import { bounded, type ProbeTarget, tcpProbe } from "../net/dial.ts";

interface Waiting {
  readonly start: () => void;
}

/**
 * Lets so many run at once, the rest waits: pods in turn, and of one pod the first that came goes first. Nobody's timeout
 * begins before it runs.
 */
export class ExecLimit {
  readonly #most: number;
  /** By pod, in the order in which they have their turn. */
  readonly #queues = new Map<string, Waiting[]>();
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

  /** `run` is begun now or later and must not reject; what is returned takes it back as long as it waits. */
  add(podUid: string, run: () => Promise<void>): () => void {
    const waiting: Waiting = { start: () => void this.#run(run) };
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
      const first = queue.shift() as Waiting;
      this.#queues.delete(podUid);
      if (queue.length > 0) this.#queues.set(podUid, queue);
      this.#waiting--;
      first.start();
    }
  }

  #remove(podUid: string, waiting: Waiting): void {
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
 * A command in the container: another exit code than 0 is a failure, and so is one that takes too long, which the
 * runtime kills; what the runtime does not run is an error. At the timeout the attempt is over even if the runtime says
 * nothing: its call ends by itself later. kubelet 1.36: pkg/probe/exec, remoteRuntimeService.ExecSync.
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
    // CRI counts whole seconds, and none is without end
    const ran = await exec(target.containerId, expanded, Math.max(1, Math.ceil(timeoutMs / 1000)));
    if (!ran.ok) return ran.error.code === "DEADLINE_EXCEEDED" ? late : { error: errorOf(ran.error) };
    const { exitCode, stdout, stderr } = ran.value;
    return { result: exitCode === 0 ? "success" : "failure", output: beginning(stdout + stderr) };
  };
  return bounded(
    timeoutMs,
    run,
    () => late,
    (error) => ({ error: (error as Error).message }),
  );
}

/** An answer that is too large is told by the client library, which the kubelet's words differently. */
const errorOf = (fault: RuntimeFault): string =>
  kubeletText({
    ...fault,
    message: fault.message.replace(TOO_LARGE, "grpc: received message larger than max ($1 vs. $2)"),
  });
const TOO_LARGE = /^Received message larger than max \((\d+) vs (\d+)\).*$/;

const timedOut = (command: readonly string[], timeoutMs: number): string =>
  `command timed out: ${quote(command.join(" "))} timed out after ${goDurationText(BigInt(Math.round(timeoutMs * 1e6)))}`;

/** Only what stands in the manifest; a value from elsewhere is empty. kubelet 1.36: ExpandContainerCommandOnlyStatic. */
const staticPairs = (env: readonly EnvVar[]) =>
  env.map((variable) => ({ key: variable.name, value: "value" in variable ? variable.value : "" }));

function beginning(output: string): string {
  const bytes = Buffer.from(output);
  return bytes.length <= MAX_OUTPUT_BYTES ? output : bytes.toString("utf8", 0, MAX_OUTPUT_BYTES);
}

export interface ProbeRequest {
  readonly handler: ProbeHandler;
  /** More than 0; nothing of the attempt lasts longer. */
  readonly timeoutMs: number;
  readonly target: ProbeTarget;
}
export type ProbeDeps = Pick<PodRuntime, "exec">;
/** One attempt; it never throws. */
export type Attempt = (asked: ProbeRequest, deps: ProbeDeps) => Promise<ProbeOutcome>;

/**
 * Asks a container once. Errors are the kubelet's words for what it could not ask: a port that is none, an answer that
 * breaks off, a runtime that does not run a command. kubelet 1.36: prober.runProbe.
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
/** To Go's client an empty host is this very machine: a kubelet would ask itself. */
const NO_ADDRESS: ProbeOutcome = { error: "the pod has no address yet" };
