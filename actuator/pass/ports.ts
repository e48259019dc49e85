import type { Result } from "../../api/model/result.ts";
import type { Journal } from "../apply/journal.ts";
import type { Hierarchy } from "../cgroupfs/hierarchy.ts";
import type { DecisionClient, PodsInForce, PodsRead, Problem } from "../core/ports.ts";
import type { MachineFacts } from "../machine/facts.ts";
import type { StateFiles } from "../machine/state-files.ts";
import type { LastPassCgroups } from "../plan/state.ts";
import type { SnapshotParts } from "./snapshot.ts";

/** Everything of the world that one pass touches. */
export interface LoopPorts {
  readonly observeMachine: () => MachineFacts;
  /** `inForce`: which of two pods with one name counts; absent: as it was told last. */
  readonly readPods: (inForce?: PodsInForce) => Promise<PodsRead>;
  readonly readConfiguration: () => Promise<Result<unknown, Problem>>;
  /** Omissions of the configuration that was read last; absent: they are not reported. */
  readonly configurationNotices?: () => readonly Problem[];
  readonly readStateFiles: () => StateFiles;
  /** `devices`, `devicePlugins` and `kubelet` of a snapshot; absent: no plugins are served here. */
  readonly readDevices?: () => Pick<SnapshotParts, "devices" | "devicePlugins" | "kubelet">;
  readonly client: DecisionClient;
  /** Null where this machine has no cgroup hierarchy that could be used. */
  readonly hierarchy: Hierarchy | null;
  readonly journal: Journal | null;
  /** The cgroups that the last pass left behind, for the next one; absent: each is the first. */
  readonly lastLook?: { current: LastPassCgroups | null };
}
