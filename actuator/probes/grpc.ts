import { goDurationText } from "../../api/decide/go/duration.ts";
import { quote } from "../../api/decide/go/strconv.ts";
import { hostPort } from "../../api/decide/probes/http-request.ts";
import type { ProbeHandler, ProbeOutcome } from "../../api/model/probe.ts";
import { bounded, type Opened } from "./bounded.ts";
import { unaryCall } from "./grpc-call.ts";
import { grpcConnect } from "./grpc-connect.ts";
import { codeOf, type GrpcStatus, statusWords } from "./grpc-status.ts";
import { HEALTH_PATH, healthRequest, healthStatus } from "./health.ts";
import type { ProbeTarget } from "./target.ts";

type Grpc = Extract<ProbeHandler, { grpc: unknown }>["grpc"];

/**
 * Asks a server for the health of a service, over a connection of its own without TLS. Only SERVING is a success;
 * whatever goes wrong is a failure, never an error. kubelet 1.36: pkg/probe/grpc.
 */
export function grpcProbe({ port, service }: Grpc, target: ProbeTarget, timeoutMs: number): Promise<ProbeOutcome> {
  const authority = hostPort(target.podIP, port);
  const within = goDurationText(BigInt(Math.round(timeoutMs * 1e6)));
  const startedMs = performance.now();
  let isConnected = false;

  const ask = async (opened: Opened): Promise<ProbeOutcome> => {
    const session = await grpcConnect(target.podIP, port, opened);
    if (session === undefined) return late();
    isConnected = true;
    const leftMs = timeoutMs - (performance.now() - startedMs);
    const call = { path: HEALTH_PATH, authority, userAgent: USER_AGENT, timeoutMs: leftMs };
    const answer = await unaryCall(session, { ...call, message: healthRequest(service) });
    const status = answer.ok ? healthStatus(answer.value) : answer;
    if (!status.ok) return failure(failureWords(status.error, within));
    if (status.value !== "SERVING") return failure(`service unhealthy (responded with ${quote(status.value)})`);
    return { result: "success", output: "service healthy" };
  };
  const late = (): ProbeOutcome =>
    failure(
      isConnected
        ? tooLate(within)
        : `timeout: failed to connect service ${quote(authority)} within ${within}: context deadline exceeded`,
    );
  return bounded(timeoutMs, ask, late, (error) =>
    failure(`error: failed to connect service at ${quote(authority)}: ${(error as Error).message}`),
  );
}

/** The kubelet's, and that of the gRPC that it is built with. kubelet 1.36: go.mod. */
const USER_AGENT = "kube-probe/1.36 grpc-go/1.79.3";
const failure = (output: string): ProbeOutcome => ({ result: "failure", output });
const tooLate = (within: string): string => `timeout: health rpc did not complete within ${within}`;
function failureWords(status: GrpcStatus, within: string): string {
  if (status.code === codeOf("Unimplemented")) {
    return `error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ${status.message}`;
  }
  if (status.code === codeOf("DeadlineExceeded")) return tooLate(within);
  return `error: health rpc probe failed: ${statusWords(status)}`;
}
