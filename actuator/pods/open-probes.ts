import { readFileSync } from "node:fs";
import type { ActuatorConfig } from "../config.ts";
import type { PodEvent } from "../lifecycle/event.ts";
import type { DecisionClient, Problem } from "../ports.ts";
import { attempt } from "../probes/attempt.ts";
import { systemProbeClock } from "../probes/clock.ts";
import { GuardMemory } from "../probes/guard-memory.ts";
import { ProbeHistory } from "../probes/history.ts";
import { ProbeManager } from "../probes/manager.ts";
import type { ManagerSettings } from "../probes/ports.ts";
import { decodeStatus } from "../status/decode-status.ts";
import type { ProbeCounters } from "../status/probe-counters.ts";
import type { ProbeRow } from "../status/probe-row.ts";
import { probeRows } from "../status/probe-rows.ts";
import { statusFile } from "../status/status-file.ts";
import { systemClock } from "./clock.ts";
import { LiveProbes } from "./live-probes.ts";
import { PodEvents } from "./pod-events.ts";
import type { PodRuntime } from "./ports.ts";
import type { LastTold } from "./probed-pods.ts";
import { tellGuard } from "./tell-guard.ts";

export interface ProbesOptions {
  readonly config: Pick<
    ActuatorConfig,
    "nodeName" | "stateDir" | "strictProbes" | "probeSpread" | "maxExecProbes" | "probeGuard"
  >;
  readonly runtime: Pick<PodRuntime, "exec">;
  readonly hostIPs: readonly string[];
  readonly counters: ProbeCounters;
  readonly client: Pick<DecisionClient, "decide" | "settle">;
  readonly onEvent: (event: PodEvent) => void;
  readonly onProblem: (problem: Problem) => void;
  /** A result is another one: there is something to do. */
  readonly onChange: () => void;
}
export interface OpenProbes {
  readonly probes: LiveProbes;
  rows(): readonly ProbeRow[];
  problems(): readonly Problem[];
  close(): void;
}

/** Half of all pods that are unrelated to each other, within half a minute, are no trouble of their own. */
const GUARD = { windowSeconds: 30, least: { share: 0.5 }, holdSeconds: 120 } as const;

/** The probes of the pods that are run here. What the daemon before this one told last is read now. */
export function openProbes(options: ProbesOptions): OpenProbes {
  const { config, runtime, hostIPs, counters, onEvent, onProblem, onChange } = options;
  const onFault = (message: string): void => onProblem({ from: "probes", message });
  const history = new ProbeHistory({ stateDir: config.stateDir, clock: systemProbeClock, onFault });
  const settings: ManagerSettings = {
    startedAtMs: Date.now(),
    strict: config.strictProbes,
    spread: config.probeSpread === "even",
    execLimit: config.maxExecProbes,
    guard: config.probeGuard === "hold" ? GUARD : null,
  };
  const manager = new ProbeManager(
    {
      attempt,
      runtime,
      clock: systemProbeClock,
      random: Math.random,
      counters,
      history,
      guardMemory: new GuardMemory({ stateDir: config.stateDir, nowMs: systemProbeClock.nowMs, onFault }),
      onResult: ({ podUid }) => {
        probes.changed(podUid);
        onChange();
      },
      onEvent: ({ podUid: uid, namespace, pod: name, container, reason, message }) =>
        new PodEvents({ namespace, name, uid }, systemClock, onEvent).warning(reason, message, container),
      onGuard: (guarded) => void tellGuard(guarded, { nodeName: config.nodeName, client: options.client, onProblem }),
    },
    settings,
  );
  const probes = new LiveProbes({ manager, hostIPs, last: lastTold(config.stateDir) });
  return {
    probes,
    rows: () => probeRows(manager.facts()),
    problems: () => manager.problems().map((message) => ({ from: "probes", message })),
    close: () => manager.close(),
  };
}

/** Empty where nobody told anything that can be read. */
function lastTold(stateDir: string): LastTold {
  try {
    const status = decodeStatus(readFileSync(statusFile(stateDir), "utf8"));
    return new Map(status.ok ? status.value.pods.map(({ uid, containers }) => [uid, containers]) : []);
  } catch {
    return new Map();
  }
}
