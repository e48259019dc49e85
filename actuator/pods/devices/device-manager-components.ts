import type { DeviceConflict } from "../../../api/model/devices.ts";
import type { Problem } from "../../core/interfaces.ts";
import type { DevicePluginHost } from "../../deviceplugin/host.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import type { Counters } from "../../status/counters.ts";
import { ChangeNotifier } from "../change-notifier.ts";
import type { PodClock } from "../pod-clock.ts";
import { CheckpointMaintenance } from "./checkpoint-maintenance.ts";
import { DeviceAllocator, PluginCalls, PreferredAllocationRequests } from "./device-allocator.ts";
import type { DeviceAssignments } from "./device-assignments.ts";
import { DeviceEventRecorder } from "./device-event-recorder.ts";
import type { DeviceHistory } from "./history.ts";
import type { ManagerFiles } from "./manager-files.ts";
import { conflictText, PluginFaults } from "./plugin-faults.ts";
import { PluginSnapshot } from "./plugin-snapshot.ts";
import { MissingAllocations } from "./recorded-devices.ts";

/** The maximum number of reported conflicts that are remembered. */
const MAX_REPORTED = 1024;

/** Reports each conflict between two plugins' settings for a container once. */
class ConflictReporter {
  readonly #onProblem: (problem: Problem) => void;
  readonly #reported = new Set<string>();

  constructor(onProblem: (problem: Problem) => void) {
    this.#onProblem = onProblem;
  }

  report(pod: RunnablePod, container: string, conflict: DeviceConflict): void {
    const message = conflictText(pod, container, conflict);
    if (this.#reported.has(message)) return;
    if (this.#reported.size >= MAX_REPORTED) this.#reported.clear();
    this.#reported.add(message);
    this.#onProblem({ from: "pods", message });
  }
}

export interface DeviceManagerDeps {
  readonly host: DevicePluginHost;
  readonly files: ManagerFiles;
  readonly assignments: DeviceAssignments;
  readonly clock: PodClock;
  /** The machine's boot id; empty: unknown, so every start counts as a boot. */
  readonly bootId: string;
  /** The longest wait of a pod for a plugin that has not registered since the daemon's start. */
  readonly waitMs: number;
  readonly history: DeviceHistory;
  readonly counters: Pick<Counters, "deviceAllocated" | "devicePluginRegistered">;
  /** Reports single problems, as opposed to lasting ones. */
  readonly onProblem: (problem: Problem) => void;
}
/** The components of the device manager. */
export interface DeviceManagerComponents {
  readonly assignments: DeviceAssignments;
  readonly plugins: PluginSnapshot;
  readonly changes: ChangeNotifier;
  readonly preferredRequests: PreferredAllocationRequests;
  readonly allocator: DeviceAllocator;
  readonly events: DeviceEventRecorder;
  readonly faults: PluginFaults;
  readonly calls: PluginCalls;
  readonly missing: MissingAllocations;
  readonly conflicts: ConflictReporter;
  readonly maintenance: CheckpointMaintenance;
}

/** Makes the components; an unreadable checkpoint is set aside first. */
export function deviceManagerComponents(deps: DeviceManagerDeps): DeviceManagerComponents {
  const { host, files, assignments, clock, bootId, waitMs, history, counters, onProblem } = deps;
  const report = (message: string): void => onProblem({ from: "devices", message });
  const plugins = new PluginSnapshot({ host, assignments, clock, waitMs });
  const changes = new ChangeNotifier(clock);
  const events = new DeviceEventRecorder({ host, assignments, history, counters, clock });
  const faults = new PluginFaults(clock, host, (fault) => events.registrationFailed(fault));
  const calls = new PluginCalls(clock);
  const missing = new MissingAllocations(assignments, report, (entries) => events.restored(entries));
  const maintenance = new CheckpointMaintenance({ assignments, files, clock, bootId });
  if (maintenance.broken !== null) {
    report(maintenance.broken);
    events.checkpointLost(maintenance.broken);
  }
  const allocator = new DeviceAllocator({
    host,
    assignments,
    plugins,
    calls,
    onMissing: (pod, container, why) => missing.add(pod, container, why),
    waitMs,
    counters,
    onRefused: (pod, resource, fault) => events.refused(pod, resource, fault),
  });
  const preferredRequests = new PreferredAllocationRequests(host, () => changes.changed());
  const conflicts = new ConflictReporter(onProblem);
  return {
    assignments,
    plugins,
    changes,
    preferredRequests,
    allocator,
    events,
    faults,
    calls,
    missing,
    conflicts,
    maintenance,
  };
}
