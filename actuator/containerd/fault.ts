import { type ServiceError, status } from "@grpc/grpc-js";
import type { Result } from "../../api/base/result.ts";
import { codeName, isOwnDeadline, plainDetails } from "../grpc/fault.ts";
import type { RuntimeFault } from "./cri.ts";

/** The maximum number of concurrent calls; a runtime does not answer faster with more. */
const AT_ONCE = 32;

/** Calls `ask` for each; the first fault ends the loop and is returned. */
export async function askEach<T>(
  items: Iterable<T>,
  ask: (item: T) => Promise<RuntimeFault | undefined>,
): Promise<RuntimeFault | undefined> {
  let fault: RuntimeFault | undefined;
  const queue = items[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (let next = queue.next(); !next.done && fault === undefined; next = queue.next()) {
      const failed = await ask(next.value);
      fault ??= failed;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return fault;
}

/** The answer, or null if the object does not exist. */
export async function nullIfGone<T>(asked: Promise<Result<T, RuntimeFault>>): Promise<Result<T | null, RuntimeFault>> {
  const answer = await asked;
  return !answer.ok && answer.error.code === "NOT_FOUND" ? { ok: true, value: null } : answer;
}

interface FailedCall {
  readonly call: string;
  readonly socketPath: string;
  readonly timeoutMs: number;
}

/** The fault as a sentence: `ListImages: NOT_FOUND: no such image`. */
export const faultText = ({ call, code, message }: RuntimeFault): string => `${call}: ${code}: ${message}`;

/** The fault as the kubelet logs it, in Go's gRPC words: `rpc error: code = NotFound desc = no such image`. */
export const kubeletText = ({ code, message }: RuntimeFault): string =>
  `rpc error: code = ${GO_NAMES[code] ?? code} desc = ${message}`;
const GO_NAMES: Readonly<Record<string, string>> = {
  CANCELLED: "Canceled",
  UNKNOWN: "Unknown",
  INVALID_ARGUMENT: "InvalidArgument",
  DEADLINE_EXCEEDED: "DeadlineExceeded",
  NOT_FOUND: "NotFound",
  ALREADY_EXISTS: "AlreadyExists",
  PERMISSION_DENIED: "PermissionDenied",
  RESOURCE_EXHAUSTED: "ResourceExhausted",
  FAILED_PRECONDITION: "FailedPrecondition",
  ABORTED: "Aborted",
  OUT_OF_RANGE: "OutOfRange",
  UNIMPLEMENTED: "Unimplemented",
  INTERNAL: "Internal",
  UNAVAILABLE: "Unavailable",
  DATA_LOSS: "DataLoss",
  UNAUTHENTICATED: "Unauthenticated",
};

/**
 * Whether the runtime itself gave no answer, so the request may have been carried out, or may still be. containerd
 * also returns UNKNOWN for refusals; for codes that both use, the client library's text decides.
 */
export const isUnanswered = ({ code, message }: RuntimeFault): boolean =>
  NEVER_ANSWERED.has(code) || ((code === "UNKNOWN" || code === "INTERNAL") && OF_THE_TRANSPORT.test(message));
const NEVER_ANSWERED: ReadonlySet<string> = new Set(["DEADLINE_EXCEEDED", "UNAVAILABLE", "CANCELLED"]);
const OF_THE_TRANSPORT =
  /^(?:the runtime gave no reason|Received (?:RST_STREAM|HTTP status)|No (?:status information|message) received|Write (?:error|failed))/;

/** The fault with gRPC's code name, the runtime's message and, if possible, advice. */
export function faultOf(failed: FailedCall, error: Pick<ServiceError, "code" | "details">): RuntimeFault {
  const code = codeName(error.code);
  const words = wordsOf(error.details);
  const advice = adviceOn(failed, error.code, words);
  return { call: failed.call, code, message: advice === undefined ? words : `${words}; ${advice}` };
}

/** The suffix with which the client library says how its deadline was spent. */
const WHERE_IT_WENT =
  /(?:, ?(?:(?:name resolution|metadata filters|LB pick|time to current attempt start|previous attempts): ?[\d.]+s?|waiting for (?:name resolution|metadata filters)|wait_for_ready|Waiting for LB pick|remote_addr=[^,;]*))+/gi;

const wordsOf = (details: string): string =>
  details === "" ? "the runtime gave no reason" : plainDetails(details.replace(/\s+/g, " ").replace(WHERE_IT_WENT, ""));

function adviceOn({ socketPath, timeoutMs }: FailedCall, code: status, words: string): string | undefined {
  switch (code) {
    case status.UNAVAILABLE:
      return connectionAdvice(socketPath, words);
    case status.DEADLINE_EXCEEDED:
      if (!isOwnDeadline({ code, details: words })) return undefined;
      return `the runtime at ${socketPath} gave no answer within ${timeoutMs} ms: it hangs or is overloaded, or something else listens there`;
    case status.UNIMPLEMENTED:
      return words.includes("unknown service")
        ? "this socket serves no CRI v1: either the cri plugin is switched off (disabled_plugins in containerd's config.toml), or the runtime is older than containerd 1.6 and knows only v1alpha2"
        : "this runtime is too old for the call";
    case status.RESOURCE_EXHAUSTED:
      return words.includes("larger than max") ? "the answer is larger than this client takes" : undefined;
    default:
      return undefined;
  }
}

function connectionAdvice(socketPath: string, words: string): string {
  if (words.includes("ENOENT"))
    return `there is no socket at ${socketPath}: is the runtime running, and is the endpoint right?`;
  if (/EACCES|EPERM/.test(words)) return `this user may not use ${socketPath}: run as root`;
  if (words.includes("ECONNREFUSED")) return `nothing listens at ${socketPath}: the runtime has stopped`;
  return `the connection to ${socketPath} broke: the runtime stopped, or is not a gRPC server; the next call connects again`;
}
