import { readFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { fieldsOf } from "../../../api/base/own.ts";
import type { ProbeType } from "../../../api/model/probe-spec.ts";
import { profileOf } from "../../../api/profiles/index.ts";
import type { PodRuntime } from "../../containerd/cri.ts";
import type { ActuatorConfig } from "../../core/config.ts";
import type { DecisionClient, Problem } from "../../core/interfaces.ts";
import type { PodProbeResults } from "../../lifecycle/actions.ts";
import { podAddresses } from "../../lifecycle/env.ts";
import { latestOf, shouldStart } from "../../lifecycle/instances.ts";
import type { PodContainer } from "../../lifecycle/pod.ts";
import type { PodEvent } from "../../lifecycle/record.ts";
import type { PodStatus } from "../../lifecycle/status/status.ts";
import { attempt } from "../../probes/engine/attempt.ts";
import type { ManagerSettings } from "../../probes/engine/engine.ts";
import { newlyHeldContainers, ProbeHistory } from "../../probes/engine/history.ts";
import { MAX_NAMED } from "../../probes/engine/history-entry.ts";
import { type Guarded, GuardStateFile } from "../../probes/engine/liveness-storm-guard.ts";
import { ProbeManager } from "../../probes/engine/probe-manager.ts";
import { systemProbeClock } from "../../probes/engine/probe-time.ts";
import type { ProbedContainer, ProbedPod } from "../../probes/engine/probed.ts";
import type { ProbeCounters } from "../../status/counters.ts";
import type { ContainerRow } from "../../status/node-status.ts";
import { decodeStatus } from "../../status/node-status.ts";
import { type ProbeRow, probeRows } from "../../status/probe-row.ts";
import { statusFile } from "../../status/status-file.ts";
import { systemClock } from "../pod-clock.ts";
import type { KnownPod, PodProbes } from "../records/pod-set.ts";
import { PodEvents } from "../records/records.ts";
import { listOf, textOf } from "../status/node-view.ts";

/** The probe rate above which V8's optimising compilers save more than the 12 MB that they cost. */
const MANY_PER_SECOND = 100;
/** Reverse those of the daemon's start flags (`DAEMON_FLAGS` of api/cli/start.ts) that can be changed in a running process. */
const FLAGS = ["--opt", "--maglev", "--no-optimize-for-size", "--no-flush-baseline-code"];

/** Switches the optimizing compilers on for good, once the daemon probes so often that it needs them. */
export class OptimizingCompilers {
  readonly #set: (flag: string) => void;
  #areOn = false;

  constructor(set: (flag: string) => void = setFlagsFromString) {
    this.#set = set;
  }

  get areOn(): boolean {
    return this.#areOn;
  }
  observe(attemptsPerSecond: number): void {
    if (this.#areOn || attemptsPerSecond < MANY_PER_SECOND) return;
    this.#areOn = true;
    for (const flag of FLAGS) this.#set(flag);
  }
}

interface LiveProbesOptions {
  readonly manager: ProbeManager;
  /** The node's addresses, the preferred family first. */
  readonly hostIPs: readonly string[];
  /** The results that the previous daemon last reported. */
  readonly last: LastReported;
}

/** The probes of the pods that this daemon runs, and their results. */
class LiveProbes implements PodProbes {
  readonly #options: LiveProbesOptions;
  readonly #compilers = new OptimizingCompilers();
  readonly #versions = new Map<string, number>();
  /** The container ids by pod and container, as last seen: results of other instances are not reported. */
  readonly #ids = new Map<string, ReadonlyMap<string, string | null>>();

  constructor(options: LiveProbesOptions) {
    this.#options = options;
  }

  resultOf = (containerId: string, type: ProbeType) => this.#options.manager.resultOf(containerId, type);
  versionOf = (podUid: string): number => this.#versions.get(podUid) ?? 0;

  resultsOf(podUid: string): PodProbeResults {
    const { manager } = this.#options;
    const isIt = (container: string, id: string): boolean => this.#ids.get(podUid)?.get(container) === id;
    return {
      isStarted: (container, id) => isIt(container, id) && manager.started(podUid, container),
      isReady: (container, id) => isIt(container, id) && manager.ready(podUid, container),
    };
  }

  sync(pods: readonly KnownPod[], statusOf: (known: KnownPod) => PodStatus): void {
    const { manager, hostIPs, last } = this.#options;
    const probed = pods.filter(isProbed).map((known) => probedPod({ known, status: statusOf(known), hostIPs, last }));
    manager.sync(probed);
    this.#compilers.observe(manager.perSecond);
    const now = new Map(probed.map(({ uid, containers }) => [uid, new Map(containers.map((c) => [c.name, c.id]))]));
    for (const [uid, ids] of now) {
      const before = this.#ids.get(uid);
      if ([...ids].some(([name, id]) => before?.get(name) !== id)) this.changed(uid);
      this.#ids.set(uid, ids);
    }
    for (const uid of this.#ids.keys()) {
      if (now.has(uid)) continue;
      this.#ids.delete(uid);
      this.#versions.delete(uid);
    }
  }

  /** Records that a result of one of the pod's containers has changed. */
  changed(podUid: string): void {
    this.#versions.set(podUid, this.versionOf(podUid) + 1);
  }
}

interface ProbesOptions {
  readonly config: Pick<
    ActuatorConfig,
    "nodeName" | "stateDir" | "strictProbes" | "probeSpread" | "maxExecProbes" | "probeGuard" | "kubeletVersion"
  >;
  readonly runtime: Pick<PodRuntime, "exec">;
  readonly hostIPs: readonly string[];
  readonly counters: ProbeCounters;
  readonly client: Pick<DecisionClient, "decide" | "commit">;
  readonly onEvent: (event: PodEvent) => void;
  readonly onProblem: (problem: Problem) => void;
  /** Called after a result has changed, so that there is something to do. */
  readonly onChange: () => void;
}
export interface OpenProbes {
  readonly probes: LiveProbes;
  rows(): readonly ProbeRow[];
  problems(): readonly Problem[];
  close(): void;
}

/** If half of all unrelated pods fail within half a minute, the cause is not the pods themselves. */
const GUARD = { windowSeconds: 30, least: { share: 0.5 }, holdSeconds: 120 } as const;

/** Opens the probes of the pods that run here, and reads the previous daemon's last report. */
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
    profile: profileOf(config.kubeletVersion),
  };
  const manager = new ProbeManager(
    {
      attempt,
      runtime,
      clock: systemProbeClock,
      random: Math.random,
      counters,
      history,
      guardStateFile: new GuardStateFile({ stateDir: config.stateDir, nowMs: systemProbeClock.nowMs, onFault }),
      onResult: ({ podUid }) => {
        probes.changed(podUid);
        onChange();
      },
      onEvent: ({ podUid: uid, namespace, pod: name, container, reason, message }) =>
        new PodEvents({ namespace, name, uid }, systemClock, onEvent).warning(reason, message, container),
      onGuard: (guarded) =>
        void reportGuardDecision(guarded, { nodeName: config.nodeName, client: options.client, onProblem }),
    },
    settings,
  );
  const probes = new LiveProbes({ manager, hostIPs, last: lastReported(config.stateDir) });
  return {
    probes,
    rows: () => probeRows(manager.facts()),
    problems: () => manager.problems().map((message) => ({ from: "probes", message })),
    close: () => manager.close(),
  };
}

/** The last reported results; empty: none readable. */
function lastReported(stateDir: string): LastReported {
  try {
    const status = decodeStatus(readFileSync(statusFile(stateDir), "utf8"));
    return new Map(status.ok ? status.value.pods.map(({ uid, containers }) => [uid, containers]) : []);
  } catch {
    return new Map();
  }
}

interface GuardListeners {
  readonly nodeName: string;
  readonly client: Pick<DecisionClient, "decide" | "commit">;
  readonly onProblem: (problem: Problem) => void;
}

/** Handles a decision of the probe guard like any other: it is reported, counted, and sent to the API now or later. */
export async function reportGuardDecision(
  { ask, decision, killedBefore }: Guarded,
  { nodeName, client, onProblem }: GuardListeners,
): Promise<void> {
  const held = newlyHeldContainers(decision);
  const named = (what: string, names: readonly string[]): string =>
    names.length === 0 ? "" : `; ${what}: ${names.slice(0, MAX_NAMED).join(", ")}`;
  const message = `${decision.message}${named("restarted before", killedBefore)}${named("held now", held)}`;
  onProblem({ from: "probes", message });
  const snapshot = { observedAt: new Date().toISOString(), node: { metadata: { name: nodeName } } };
  const answer = await client.decide("probe-guard", snapshot, ask);
  if (answer.ok) await client.commit(answer.value);
  else onProblem(answer.error);
}

/** The last report of the previous daemon on a pod's containers. */
type LastReported = ReadonlyMap<string, readonly Pick<ContainerRow, "name" | "id" | "ready" | "started">[]>;

interface ProbedParts {
  readonly known: KnownPod;
  readonly status: PodStatus;
  readonly hostIPs: readonly string[];
  readonly last: LastReported;
}

const probedIn = ({ pod: { spec } }: KnownPod): readonly PodContainer[] => [
  ...spec.initContainers.filter(({ isSidecar }) => isSidecar),
  ...spec.containers,
];
/** True if a container of the pod has a probe. */
const isProbed = (known: KnownPod): boolean =>
  probedIn(known).some(({ probes }) => Object.values(probes).some((probe) => probe !== null));

/** Converts a pod for its probes. */
function probedPod({ known, status, hostIPs, last }: ProbedParts): ProbedPod {
  const { uid, pod, record, runtimePod } = known;
  const before = last.get(uid) ?? [];
  const podIPs = runtimePod?.sandboxes[0]?.ips ?? [];
  const isReady = status.conditions.find(({ type }) => type === "Ready")?.status === "True";
  return {
    uid,
    namespace: pod.namespace,
    name: pod.name,
    owner: ownerOf(pod.object),
    podIP: podAddresses(pod, { hostIPs, podIPs })[0] ?? "",
    deletionAtMs: record.state === "terminating" ? (record.end?.sinceMs ?? null) : (pod.deletion?.atMs ?? null),
    phase: status.phase,
    wasReady: isReady || (before.length > 0 && before.every(({ ready }) => ready)),
    containers: probedIn(known).map((container) => probedContainer(known, container, before)),
  };
}

function probedContainer(
  { pod, runtimePod }: KnownPod,
  container: PodContainer,
  last: readonly LastRow[],
): ProbedContainer {
  const { name, isSidecar, ports, env, probes } = container;
  const latest = runtimePod === null ? undefined : latestOf(runtimePod, name);
  const before = last.find((row) => row.name === name);
  return {
    name,
    isSidecar,
    ports,
    env,
    probes,
    // a probe of a container that has an id and does not run has failed: the container would be killed as soon as it starts
    id: latest === undefined || latest.state === "created" ? null : latest.id,
    state: latest?.state === "running" ? "running" : latest?.state === "exited" ? "terminated" : "waiting",
    startedAtMs: latest?.startedAtMs ?? null,
    willRestart: shouldStart(pod, container, latest),
    wasStarted: before !== undefined && before.id === latest?.id ? (before.started ?? null) : null,
  };
}
type LastRow = LastReported extends ReadonlyMap<string, readonly (infer Row)[]> ? Row : never;

/** The owner of a pod, its controller; null: it has none. */
function ownerOf(object: Readonly<Record<string, unknown>>): string | null {
  const { ownerReferences } = fieldsOf(object["metadata"]);
  const owner = listOf(ownerReferences).find(({ controller }) => controller === true);
  return owner === undefined ? null : `${textOf(owner["kind"])}/${textOf(owner["uid"])}`;
}
