import { type InputIssue, joinPath } from "../../base/input-issue.ts";
import { isObject } from "../../base/own.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { decodeSnapshot } from "../../model/decode.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type ChosenProfile, chooseProfileFor } from "../../profiles/index.ts";
import { configurationOfAnother } from "../../profiles/unknown-fields.ts";
import { isWrapped } from "../own-configuration.ts";

/** The version that a node upgrades from: its own, or else the given one; if unknown, the nearest known. Errors: neither exists. */
export function versionBefore(
  named: ChosenProfile | null,
  snapshot: Pick<Snapshot, "node"> | undefined,
): Result<ChosenProfile, InputIssue> {
  const own = snapshot?.node?.status?.nodeInfo?.kubeletVersion ?? "";
  return own === "" && named === null
    ? err({ path: "from", message: "is needed: no snapshot has the node's kubelet version" })
    : ok(chooseProfileFor(snapshot, named?.asked));
}

/** A node to report on, and the configuration with which its kubelet starts. */
export interface Subject {
  /** The configuration from a file or /configz: parsed JSON, not validated; undefined for the kubelet's defaults. */
  readonly configuration: unknown;
  /** True: a running kubelet reported it, with all defaults; false: it is the file. */
  readonly isReported: boolean;
  /** The snapshot without its configuration, which may be invalid; undefined if no node is known. */
  readonly snapshot: Snapshot | undefined;
}

/**
 * The subject of a posted or stored snapshot. `configuration`: replaces the snapshot's. Errors: every issue below `at`; a /configz
 * of another kubelet.
 */
export function subjectOf(
  posted: Readonly<Record<string, unknown>>,
  configuration: unknown,
  at = "",
): Result<Subject, readonly InputIssue[]> {
  const { kubeletConfiguration, ...rest } = posted;
  const snapshot = decodeSnapshot(rest, at);
  if (!snapshot.ok) return snapshot;
  const own = isObject(kubeletConfiguration) ? kubeletConfiguration : undefined;
  const asked = { ...configured(configuration, own), snapshot: snapshot.value };
  const field = configuration === undefined ? joinPath(at, [CONFIGURATION]) : CONFIGURATION;
  const other = configurationOfAnother(asked.snapshot, asked.configuration, field);
  return other === undefined ? ok(asked) : err([other]);
}

const CONFIGURATION = "kubeletConfiguration";

/** The effective configuration: the given one, or else the snapshot's, which a kubelet reported. */
export const configured = (given: unknown, own: unknown): Pick<Subject, "configuration" | "isReported"> => ({
  configuration: given ?? own,
  isReported: given === undefined || isWrapped(given),
});
