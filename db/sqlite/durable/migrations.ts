import history from "../../../migrations/0000_history.sql";
import sharedTexts from "../../../migrations/0001_shared_texts.sql";
import removals from "../../../migrations/0002_removals.sql";
import latestAndHours from "../../../migrations/0003_latest_and_hours.sql";
import hoursByKey from "../../../migrations/0004_hours_by_key.sql";
import sweeps from "../../../migrations/0005_sweeps.sql";
import versions from "../../../migrations/0006_versions.sql";
import outcomes from "../../../migrations/0007_outcomes.sql";
import reasons from "../../../migrations/0008_reasons.sql";
import kubeletOfPolicy from "../../../migrations/0009_kubelet_of_policy.sql";
import outcomeReasons from "../../../migrations/0010_outcome_reasons.sql";
import nodeDeleted from "../../../migrations/0011_node_deleted.sql";
import series from "../../../migrations/0012_series.sql";
import decisionLog from "../../../migrations/0013_decision_log.sql";

/** The files of migrations/ as part of the bundle, in their order: an object can read no folder. */
export const MIGRATIONS: Readonly<Record<string, string>> = {
  "0000_history.sql": history,
  "0001_shared_texts.sql": sharedTexts,
  "0002_removals.sql": removals,
  "0003_latest_and_hours.sql": latestAndHours,
  "0004_hours_by_key.sql": hoursByKey,
  "0005_sweeps.sql": sweeps,
  "0006_versions.sql": versions,
  "0007_outcomes.sql": outcomes,
  "0008_reasons.sql": reasons,
  "0009_kubelet_of_policy.sql": kubeletOfPolicy,
  "0010_outcome_reasons.sql": outcomeReasons,
  "0011_node_deleted.sql": nodeDeleted,
  "0012_series.sql": series,
  "0013_decision_log.sql": decisionLog,
};
