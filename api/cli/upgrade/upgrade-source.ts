import type { DecisionFilter } from "../../../db/store.ts";
import type { BesideFile } from "../../decide/lint/start.ts";
import type { Result } from "../../model/result.ts";
import type { ChosenProfile } from "../../profiles/index.ts";
import type { UpgradeReport } from "../../service/upgrade/report.ts";
import type { UpgradePage } from "../../service/upgrade/upgrade-page.ts";
import type { Fault } from "../terminal.ts";

export interface UpgradeRequest {
  readonly to: ChosenProfile;
  /** Null: that of each node. */
  readonly from: ChosenProfile | null;
  readonly filter: Pick<DecisionFilter, "kind" | "sinceMs" | "untilMs">;
}
/** A history that is asked, here or over an API. */
export interface UpgradeSource {
  /** The names of its nodes, at most `MAX_NODES`. */
  nodes(): Promise<Result<readonly string[], Fault>>;
  /**
   * `configuration`: in the place of the node's own; `beside`: what else its kubelet is started with. A text: why nothing can be
   * said of this node.
   */
  reportOf(node: string, configuration: unknown, beside: BesideFile): Promise<Result<UpgradeReport | string, Fault>>;
  /** A page of a node's history, or of all nodes'. */
  page(node: string | undefined, pageToken: string | undefined): Promise<Result<UpgradePage, Fault>>;
}

/** Whether a node's report was refused for its configuration, and not for the rest of its snapshot or the request. */
export const isOfConfiguration = (path: string): boolean => /^kubeletConfiguration[.[]/.test(path);

/** Nodes whose reports are made. */
export const MAX_NODES = 1000;
