import type { DecisionFilter } from "../../../db/store.ts";
import type { Result } from "../../base/result.ts";
import type { FlagsAndDropIns } from "../../decide/lint/start.ts";
import type { ChosenProfile } from "../../profiles/index.ts";
import type { UpgradeReport } from "../../service/upgrade/report.ts";
import type { UpgradePage } from "../../service/upgrade/upgrade-page.ts";
import type { Fault } from "../terminal.ts";

export interface UpgradeRequest {
  readonly to: ChosenProfile;
  /** Null for each node's own version. */
  readonly from: ChosenProfile | null;
  readonly filter: Pick<DecisionFilter, "kind" | "sinceMs" | "untilMs">;
}
/** A history, local or over an API. */
export interface UpgradeSource {
  /** The names of its nodes, at most `MAX_NODES`. */
  nodes(): Promise<Result<readonly string[], Fault>>;
  /** `configuration`: replaces the node's own; `beside`: what else its kubelet is started with. A text says why the node has no report. */
  reportOf(
    node: string,
    configuration: unknown,
    beside: FlagsAndDropIns,
  ): Promise<Result<UpgradeReport | string, Fault>>;
  /** A page of a node's history, or of all nodes'. */
  page(node: string | undefined, pageToken: string | undefined): Promise<Result<UpgradePage, Fault>>;
}

/** Whether a report was refused because of the configuration, not of the rest of the snapshot or the request. */
export const isOfConfiguration = (path: string): boolean => /^kubeletConfiguration[.[]/.test(path);

/** The most nodes with a report. */
export const MAX_NODES = 1000;
