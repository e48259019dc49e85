/** What a container is probed for. */
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
  /** Of the container that the probe ends; null: the pod's. */
  readonly terminationGracePeriodSeconds: number | null;
}

/**
 * How an attempt ended. An `error` is none of the probe's results: the container could not be asked, or, with the state
 * `failure`, the body of its answer could not be read. Absent: `unknown`. kubernetes 1.36: probe.Result.
 */
export type ProbeOutcome =
  | { readonly result: "success" | "warning" | "failure"; readonly output: string }
  | { readonly error: string; readonly state?: "failure" };
/** What stands of a container, for one type of probe. kubelet 1.36: results.Result. */
export type StoredResult = "Unknown" | "Success" | "Failure";
