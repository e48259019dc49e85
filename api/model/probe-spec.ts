import * as z from "zod";
import { optional, text, wholeNumber } from "./fields.ts";

/**
 * v1.Probe as decisions read it. Of commands, paths and headers, which may hold secrets, only a print is kept: enough to
 * tell whether two probes ask the same, and too short to tell what they ask.
 */
const print = optional(z.string().regex(/^[0-9a-f]{4}$/));
const int32 = optional(wholeNumber(-2_147_483_648, 2_147_483_647));
const port = optional(z.union([wholeNumber(-2_147_483_648, 2_147_483_647), text]));

const exec = z
  .object({ command: optional(z.array(z.string())), print })
  // one without a command has none: no API server takes it
  .transform(({ command = [], print: known }) =>
    known !== undefined || command.length > 0 ? { print: known ?? printOf(command) } : {},
  );
const header = z.object({ name: z.string(), value: optional(z.string()) });
const httpGet = z
  .object({
    scheme: optional(text),
    host: optional(text),
    port,
    path: optional(z.string()),
    httpHeaders: optional(z.array(header)),
    print,
  })
  .transform(({ path = "", httpHeaders = [], print: known, ...rest }) => ({
    ...rest,
    print: known ?? printOf([path || "/", ...httpHeaders.flatMap(({ name, value = "" }) => [name, value])]),
  }));

export const podProbe = z.object({
  exec: optional(exec),
  httpGet: optional(httpGet),
  tcpSocket: optional(z.object({ host: optional(text), port })),
  grpc: optional(z.object({ port, service: optional(text) })),
  initialDelaySeconds: int32,
  timeoutSeconds: int32,
  periodSeconds: int32,
  successThreshold: int32,
  failureThreshold: int32,
  terminationGracePeriodSeconds: optional(wholeNumber(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)),
});
export type PodProbe = z.output<typeof podProbe>;

/** FNV-1a, folded to 16 bits. */
function printOf(parts: readonly string[]): string {
  let print = 0x811c9dc5;
  for (const part of parts) {
    for (let i = 0; i < part.length; i++) print = Math.imul(print ^ part.charCodeAt(i), 0x01000193);
    print = Math.imul(print ^ 0x1f, 0x01000193);
  }
  return ((print ^ (print >>> 16)) & 0xffff).toString(16).padStart(4, "0");
}

/** The purposes for which a container is probed. */
export const PROBE_TYPES = ["startup", "liveness", "readiness"] as const;
export type ProbeType = (typeof PROBE_TYPES)[number];

/** A port by number, or by the name that the container's ports have. */
export type ProbePort = number | string;
export interface ProbeHttpGet {
  readonly scheme: "HTTP" | "HTTPS";
  /** Empty: the pod's address. */
  readonly host: string;
  readonly port: ProbePort;
  readonly path: string;
  readonly headers: readonly { readonly name: string; readonly value: string }[];
}
/** One way of asking; kubernetes 1.36: v1.ProbeHandler. */
export type ProbeHandler =
  | { readonly exec: readonly string[] }
  | { readonly http: ProbeHttpGet }
  | { readonly tcp: { readonly host: string; readonly port: ProbePort } }
  | { readonly grpc: { readonly port: number; readonly service: string } };

/** A probe with its defaults filled in; seconds are whole. kubernetes 1.36: v1.Probe, SetDefaults_Probe. */
export interface ProbeSpec {
  readonly handler: ProbeHandler;
  readonly initialDelaySeconds: number;
  readonly timeoutSeconds: number;
  readonly periodSeconds: number;
  readonly successThreshold: number;
  readonly failureThreshold: number;
  /** The grace period of the container that the probe ends; null: the pod's. */
  readonly terminationGracePeriodSeconds: number | null;
}

/**
 * How an attempt ended. An `error` is none of the probe's results: the container could not be asked, or, with the state
 * `failure`, the body of its answer could not be read. Absent: `unknown`. kubernetes 1.36: probe.Result.
 */
export type ProbeOutcome =
  | { readonly result: "success" | "warning" | "failure"; readonly output: string }
  | { readonly error: string; readonly state?: "failure" };
/** The stored result of a container, for one type of probe. kubelet 1.36: results.Result. */
export type StoredResult = "Unknown" | "Success" | "Failure";
