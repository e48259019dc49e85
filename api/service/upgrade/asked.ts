import { decodeSnapshot } from "../../model/decode.ts";
import { type InputIssue, joinPath } from "../../model/input-issue.ts";
import { isObject } from "../../model/own.ts";
import { err, ok, type Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type ChosenProfile, chooseProfileFor } from "../../profiles/index.ts";
import { configurationOfAnother } from "../../profiles/unknown-fields.ts";
import { isWrapped } from "../own-configuration.ts";

/** The version that a node comes from: its own, else as named; the nearest where that is not known here. Errors: nobody tells one. */
export function versionBefore(
  named: ChosenProfile | null,
  snapshot: Pick<Snapshot, "node"> | undefined,
): Result<ChosenProfile, InputIssue> {
  const own = snapshot?.node?.status?.nodeInfo?.kubeletVersion ?? "";
  return own === "" && named === null
    ? err({ path: "from", message: "is needed: no snapshot tells which kubelet the node has" })
    : ok(chooseProfileFor(snapshot, named?.asked));
}

/** A node that is asked about, and the configuration with which its kubelet starts. */
export interface Subject {
  /** As a file or /configz has it, JSON already, whole and unchecked; undefined: the kubelet's defaults. */
  readonly configuration: unknown;
  /** Whether a kubelet told it, defaults and all, and not its file. */
  readonly isTold: boolean;
  /** Without its configuration, which may be as wrong as it likes; undefined: nothing is known of a node. */
  readonly snapshot: Snapshot | undefined;
}

/** A snapshot as posted or stored -> what is asked about. `configuration`: in the place of its own. Errors: every issue below `at`; a /configz of another kubelet. */
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

/** The configuration that counts: the one that is given, else that of the snapshot, which somebody asked a kubelet for. */
export const configured = (given: unknown, own: unknown): Pick<Subject, "configuration" | "isTold"> => ({
  configuration: given ?? own,
  isTold: given === undefined || isWrapped(given),
});
