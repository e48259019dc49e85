import { quote } from "../../../api/decide/go/strconv.ts";
import { http } from "../../core/http.ts";

/** The status of a call that was no success. */
export interface GrpcStatus {
  readonly code: number;
  readonly message: string;
}
/** By their numbers, as Go prints them. Go: google.golang.org/grpc/codes. */
const NAMES: readonly string[] = [
  "OK",
  "Canceled",
  "Unknown",
  "InvalidArgument",
  "DeadlineExceeded",
  "NotFound",
  "AlreadyExists",
  "PermissionDenied",
  "ResourceExhausted",
  "FailedPrecondition",
  "Aborted",
  "OutOfRange",
  "Unimplemented",
  "Internal",
  "Unavailable",
  "DataLoss",
  "Unauthenticated",
];
export const codeOf = (name: string): number => NAMES.indexOf(name);
/** `rpc error: code = NotFound desc = unknown service` */
export const statusWords = ({ code, message }: GrpcStatus): string =>
  `rpc error: code = ${NAMES[code] ?? `Code(${code})`} desc = ${message}`;
export const internal = (message: string): GrpcStatus => ({ code: codeOf("Internal"), message });

/** The status of an answer of HTTP that is none of gRPC. Go: grpc/internal/transport, HTTPStatusConvTab. */
export function httpStatusFault(status: number, contentType: string | undefined): GrpcStatus {
  const what =
    contentType === undefined
      ? "malformed header: missing HTTP content-type"
      : `transport: received unexpected content-type ${quote(contentType)}`;
  const words = `${status} (${http.STATUS_CODES[status] ?? ""})`;
  return {
    code: codeOf(OF_HTTP[status] ?? "Unknown"),
    message: `unexpected HTTP status code received from server: ${words}; ${what}`,
  };
}
const OF_HTTP: Readonly<Record<number, string>> = {
  400: "Internal",
  401: "Unauthenticated",
  403: "PermissionDenied",
  404: "Unimplemented",
  429: "Unavailable",
  502: "Unavailable",
  503: "Unavailable",
  504: "Unavailable",
};

/**
 * Returns the fault of a stream that its server reset, by HTTP/2's name of the error. Go: grpc/internal/transport,
 * http2ErrConvTab.
 */
export const resetFault = (error: string): GrpcStatus => ({
  code: codeOf(OF_RESET[error] ?? "Internal"),
  message: `stream terminated by RST_STREAM with error code: ${error}`,
});
const OF_RESET: Readonly<Record<string, string>> = {
  FLOW_CONTROL_ERROR: "ResourceExhausted",
  REFUSED_STREAM: "Unavailable",
  CANCEL: "Canceled",
  ENHANCE_YOUR_CALM: "ResourceExhausted",
  INADEQUATE_SECURITY: "PermissionDenied",
};

/** The status in trailers; undefined: they have none. */
export function trailersStatus(status: string | undefined, message: string): GrpcStatus | undefined {
  if (status === undefined) return undefined;
  if (/^-?\d{1,9}$/.test(status)) return { code: Number(status), message: decoded(message) };
  const why = `strconv.ParseInt: parsing ${quote(status)}: invalid syntax`;
  return { code: codeOf("Unknown"), message: `transport: malformed grpc-status: ${why}` };
}
/** Decodes escapes; any other text stays as it is. */
const decoded = (message: string): string =>
  Buffer.from(
    message.replace(/%([0-9A-Fa-f]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16))),
    "latin1",
  ).toString("utf8");
