/** A stream that its server reset, in Go's words. Go 1.26: http2.StreamError. */
export const streamFault = (code: number | undefined): string =>
  `stream error: stream ID 1; ${nameOf(code ?? 0)}; received from peer`;

const nameOf = (code: number): string => ERRORS[code] ?? `unknown error code 0x${code.toString(16)}`;

/** By their codes. RFC 9113, 7. */
export const ERRORS: readonly string[] = [
  "NO_ERROR",
  "PROTOCOL_ERROR",
  "INTERNAL_ERROR",
  "FLOW_CONTROL_ERROR",
  "SETTINGS_TIMEOUT",
  "STREAM_CLOSED",
  "FRAME_SIZE_ERROR",
  "REFUSED_STREAM",
  "CANCEL",
  "COMPRESSION_ERROR",
  "CONNECT_ERROR",
  "ENHANCE_YOUR_CALM",
  "INADEQUATE_SECURITY",
  "HTTP_1_1_REQUIRED",
];
