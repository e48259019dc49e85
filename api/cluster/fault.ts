import { err, type Result } from "../model/result.ts";

/** A right that the API server or a kubelet asks for, as a rule of a ClusterRole names it. */
export interface AccessRule {
  /** Absent: the core group. */
  readonly apiGroup?: string;
  readonly resource: string;
  readonly verbs: readonly string[];
}

export type ClusterFaultCode =
  /** No kubeconfig is there, and this process does not run in a pod of a cluster. */
  | "no-kubeconfig"
  | "bad-kubeconfig"
  | "unknown-context"
  /** The kubeconfig's exec plugin, token file or identity provider gave no credentials. */
  | "no-credentials"
  | "unreachable"
  /** The server's certificate is not that of the cluster. */
  | "untrusted"
  | "unauthorized"
  | "forbidden"
  | "not-found"
  /** The server no longer has the version from which a list or a watch was to go on. */
  | "gone"
  | "timed-out"
  | "too-large"
  | "not-json"
  /** Any other answer than the one that was asked for. */
  | "unexpected-answer"
  /** The caller ended it. */
  | "stopped";

/** Why a cluster, or a part of it, could not be read. */
export interface ClusterFault {
  readonly code: ClusterFaultCode;
  /** The fault, with the address or file. */
  readonly message: string;
  /** The next step for a person; it follows the message. */
  readonly next: string;
  /** `forbidden`: the right that is missing, and who lacks it where the server says it. */
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
