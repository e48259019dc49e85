import type { ProbeChronicle } from "./chronicle.ts";
import type { ExecLimit } from "./exec-limit.ts";
import type { LiveWorker } from "./live-worker.ts";
import type { ManagerPorts, ManagerSettings } from "./ports.ts";
import type { ProbeTime } from "./probe-time.ts";
import type { ProbeResults } from "./results.ts";
import type { Storm } from "./storm.ts";

export interface EngineParts {
  readonly ports: ManagerPorts;
  readonly settings: ManagerSettings;
  readonly time: ProbeTime;
  readonly results: ProbeResults;
  readonly execLimit: ExecLimit;
  readonly chronicle: ProbeChronicle;
  readonly storm: Storm | null;
  readonly isStarted: (worker: LiveWorker) => boolean;
  /** The container of this worker has just become started. */
  readonly onStarted: (worker: LiveWorker) => void;
  readonly onOverdue: () => void;
}
