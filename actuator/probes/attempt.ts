import type { ProbeHandler, ProbeOutcome } from "../../api/model/probe.ts";
import type { PodRuntime } from "../pods/ports.ts";
import { execProbe } from "./exec.ts";
import { grpcProbe } from "./grpc.ts";
import { httpProbe } from "./http.ts";
import type { ProbeTarget } from "./target.ts";
import { tcpProbe } from "./tcp.ts";

export type { ProbeTarget } from "./target.ts";

export interface AskedProbe {
  readonly handler: ProbeHandler;
  /** More than 0; nothing of the attempt lasts longer. */
  readonly timeoutMs: number;
  readonly target: ProbeTarget;
}
export type ProbePorts = Pick<PodRuntime, "exec">;
/** One attempt; it never throws. */
export type Attempt = (asked: AskedProbe, ports: ProbePorts) => Promise<ProbeOutcome>;

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
