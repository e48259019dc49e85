import { err, type Result } from "../base/result.ts";

/** A permission that the API server or a kubelet requires, as a rule of a ClusterRole. */
export interface AccessRule {
  /** Absent for the core group. */
  readonly apiGroup?: string;
  readonly resource: string;
  readonly verbs: readonly string[];
}

export type ClusterFaultCode =
  /** There is no kubeconfig, and this process does not run in a pod. */
  | "no-kubeconfig"
  | "bad-kubeconfig"
  | "unknown-context"
  /** The kubeconfig's exec plugin, token file or identity provider gave no credentials. */
  | "no-credentials"
  | "unreachable"
  /** The server's certificate is not signed by the cluster's authority. */
  | "untrusted"
  | "unauthorized"
  | "forbidden"
  | "not-found"
  /** The server no longer has the version from which a list or a watch should continue. */
  | "gone"
  | "timed-out"
  | "too-large"
  | "not-json"
  /** Any response other than the expected one. */
  | "unexpected-answer"
  /** The caller stopped it. */
  | "stopped";

/** Why a cluster, or a part of it, could not be read. */
export interface ClusterFault {
  readonly code: ClusterFaultCode;
  /** The fault, with the address or file. */
  readonly message: string;
  /** What the user can do next; shown after the message. */
  readonly next: string;
  /** `forbidden`: the missing permission, and the user if the server names it. */
  readonly rule?: AccessRule;
  readonly user?: string;
}

export const clusterFault = (
  code: ClusterFaultCode,
  message: string,
  next: string,
  forbidden: Pick<ClusterFault, "rule" | "user"> = {},
): Result<never, ClusterFault> => err({ code, message, next, ...forbidden });

/** `https://…: connection refused: is the API server up?` */
export const clusterFaultText = ({ message, next }: Pick<ClusterFault, "message" | "next">): string =>
  next === "" ? message : `${message}: ${next}`;
