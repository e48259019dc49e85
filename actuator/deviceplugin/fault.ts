import { type ServiceError, status } from "@grpc/grpc-js";
import type { Result } from "../../api/base/result.ts";
import { codeName, isOwnDeadline, plainDetails } from "../grpc/fault.ts";
import { MAX_MESSAGE_BYTES } from "./names.ts";

/** A failure between a plugin and this node: gRPC's code by name, or a code of this folder. */
export interface PluginFault {
  readonly resource: string;
  /** The plugin's socket, a path; empty: none was named. */
  readonly endpoint: string;
  /** `Register`, `ListAndWatch`, `Allocate`. */
  readonly call: string;
  readonly code: string;
  readonly message: string;
  /** True: the fault lasts while the host's `standing()` lists it; absent: it was an event. */
  readonly stands?: true;
}
export type PluginResult<T> = Promise<Result<T, PluginFault>>;
/** The plugin that a call goes to. */
export type PluginCall = Pick<PluginFault, "resource" | "endpoint" | "call">;

/**
 * The fault as a sentence: ``Allocate of `example.com/gpu` at /dir/gpu.sock: UNKNOWN: no such device``; unknown parts
 * are left out.
 */
export function faultText({ resource, endpoint, call, code, message }: PluginFault): string {
  const whose = resource === "" ? "" : ` of \`${resource}\``;
  return `${call}${whose}${endpoint === "" ? "" : ` at ${endpoint}`}: ${code}: ${message}`;
}

/** A fault in a plugin's message that this side found. */
export const invalidAnswer = (of: PluginCall, message: string): PluginFault => ({
  ...of,
  code: "INVALID_ANSWER",
  message,
});

/** The fault of a call that gRPC ended. */
export function faultOf(of: PluginCall, error: Pick<ServiceError, "code" | "details">, timeoutMs: number): PluginFault {
  const words = wordsOf(error.details);
  return {
    ...of,
    code: codeName(error.code),
    message: `${words}${adviceOn(error, words, timeoutMs)}`,
  };
}

const wordsOf = (details: string): string =>
  details === ""
    ? "the plugin gave no reason"
    : plainDetails(details)
        // removes how long each part of the client library took
        .replace(/^Deadline exceeded after [\d.]+s(?:,.*)?$/, "Deadline exceeded")
        .slice(0, LONGEST_WORDS);
/** The maximum length of a plugin's own message, which goes into histories. */
const LONGEST_WORDS = 2048;

function adviceOn(error: Pick<ServiceError, "code" | "details">, words: string, timeoutMs: number): string {
  const { code } = error;
  if (isOwnDeadline(error)) {
    return `; the plugin gave no answer within ${timeoutMs} ms: it hangs, or something else listens there`;
  }
  if (code === status.RESOURCE_EXHAUSTED && words.includes("larger than max")) {
    return `; a message of a plugin may have ${MAX_MESSAGE_BYTES} bytes`;
  }
  if (code !== status.UNAVAILABLE) return "";
  if (words.includes("ENOENT")) return "; there is no such socket";
  return words.includes("ECONNREFUSED") ? "; nothing listens there: the plugin has stopped" : "";
}
