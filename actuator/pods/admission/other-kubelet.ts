import { OWNER, type RuntimePod, type RuntimePods } from "../../containerd/cri.ts";
import type { Problem } from "../../core/interfaces.ts";
import type { KubeletTraces } from "../../machine/kubelets.ts";
import type { Counters } from "../../status/counters.ts";
import type { OtherKubeletView } from "../../status/node-status.ts";
import type { OnPodEvent, PodClock } from "../pod-clock.ts";
import { PodEvents, type ReadonlyPodRecords } from "../records/records.ts";
import { type ForeignStop, signalOf } from "./foreign-stops.ts";

/** Signs of another kubelet at the runtime at one moment. Pods are `NAMESPACE/NAME`, each once. */
export interface Observed {
  readonly traces: KubeletTraces;
  /** Pods made by a kubelet of which something runs. */
  readonly standing: readonly string[];
  /** Pods with sandboxes or containers created in the last minutes, while this daemon watched. */
  readonly came: readonly string[];
  /** Pods of this daemon whose sandbox or container another process stopped in the last minutes, one entry per stop. */
  readonly stopped: readonly string[];
}
interface OtherKubeletSign {
  readonly kind: "process" | "sandboxes" | "stops" | "listener";
  readonly text: string;
}

/** The annotation by which a kubelet marks its objects with their pod's source. kubelet 1.36: PodConfig, newPodAnnotations. */
const KUBELETS_MARK = "kubernetes.io/config.source";
/** The number of stops within `RECENT_MS` that cannot be an accident. */
const MANY_STOPS = 3;
const RECENT_MS = 300_000;
/** The time without a sign after which pods are admitted again. A restarting kubelet is back earlier. */
const CALM_MS = 30_000;
/** How long admission pauses if pods are stopped right after it resumed; it doubles each time. */
const FIRST_LONG_MS = 2 * RECENT_MS;
const MAX_LONG_MS = 3_600_000;
/** The interval between checks of all processes and ports. */
const FULL_CHECK_MS = 30_000;
const MAX_NAMED = 5;
const WHAT_TO_DO =
  "a kubelet ends all pods that are not its own: give Nodewise a containerd of its own (docs/guide/beside-a-kubelet.md, runtimeEndpoint), or set `pods: off`";

/**
 * The signs that another kubelet uses this runtime; empty: none. One sign about this very runtime is enough: a kubelet
 * process with its endpoint, or new pods of a kubelet in it. A kubelet whose runtime is unknown counts only if it has
 * effects here: its pods run in this runtime, or this daemon's are stopped. A port alone proves nothing, and a kubelet
 * with another runtime is no sign.
 */
export function signsOf({ traces, standing, came, stopped }: Observed): readonly OtherKubeletSign[] {
  const mine = traces.processes.filter(({ uses }) => uses === "this");
  const unknown = traces.processes.filter(({ uses }) => uses === "unknown");
  const signs: OtherKubeletSign[] = mine.map(({ pid, name }) => ({
    kind: "process",
    text: `process ${pid} (${name}) uses it`,
  }));
  if (came.length > 0) signs.push({ kind: "sandboxes", text: `a kubelet makes ${namedOf(came)} in it` });
  const maybe: OtherKubeletSign[] = [
    ...unknown.map(({ pid, name }) => ({ kind: "process" as const, text: `process ${pid} (${name}) may use it` })),
    ...traces.listeners.map(({ what, holder }) => ({
      kind: "listener" as const,
      text: `${what}, which is a kubelet's, is in use by ${holder === null ? "a process that cannot be seen" : `process ${holder.pid} (${holder.name})`}`,
    })),
  ];
  const stops: OtherKubeletSign = { kind: "stops", text: `another program stopped ${namedOf(stopped)}` };
  const isStopped = stopped.length >= (maybe.length > 0 || signs.length > 0 ? 1 : MANY_STOPS);
  if (signs.length === 0 && maybe.length > 0 && standing.length > 0 && !isStopped)
    return [...maybe, { kind: "sandboxes", text: `${namedOf(standing)} of a kubelet run in it` }];
  if (signs.length === 0 && !isStopped) return [];
  return [...signs, ...(signs.length === 0 ? maybe : []), ...(isStopped ? [stops] : [])];
}

/** Names five pods, in an order that is the same each time. */
function namedOf(pods: readonly string[]): string {
  const names = [...new Set(pods)].sort();
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : "";
  return `${names.slice(0, MAX_NAMED).join(", ")}${more}`;
}

interface OtherKubeletDeps {
  readonly kubelets: (isWhole: boolean) => KubeletTraces;
  readonly records: Pick<ReadonlyPodRecords, "get">;
  readonly clock: PodClock;
  readonly onEvent: OnPodEvent;
  readonly counters?: Pick<Counters, "stoppedByOthers">;
  readonly runtimeEndpoint: string;
  readonly podLogsDirectory: string;
}
interface Timed {
  readonly pod: string;
  readonly atMs: number;
}

/** The finding for people, and for the pods that wait because of it. */
export interface OtherKubeletFound extends OtherKubeletView {
  readonly brief: string;
}

/** Checks in each sync whether another kubelet uses the runtime; while it does, and for a while after, no pod is admitted. */
export class OtherKubelet {
  readonly #deps: OtherKubeletDeps;
  /** Ids of objects that a kubelet made; null: no list was seen yet. */
  #known: ReadonlySet<string> | null = null;
  #standing: readonly string[] = [];
  #reappeared: readonly Timed[] = [];
  #stopped: readonly Timed[] = [];
  /** Stops that the pods' records do not have yet. */
  #unrecorded: readonly ForeignStop[] = [];
  #fullCheckMs = Number.NEGATIVE_INFINITY;
  #lastSignMs = Number.NEGATIVE_INFINITY;
  /** When pods were last admitted; reset when they were stopped again. */
  #openedMs = Number.NEGATIVE_INFINITY;
  /** The minimum time without admission, and its end. */
  #long: { readonly forMs: number; readonly untilMs: number } | null = null;
  #hadProcess = false;
  #view: OtherKubeletFound | null = null;
  #traces: KubeletTraces = { processes: [], listeners: [] };

  constructor(deps: OtherKubeletDeps) {
    this.#deps = deps;
  }

  /** The other kubelet; null: none is known to use the runtime. */
  get view(): OtherKubeletFound | null {
    return this.#view;
  }

  /** True if a kubelet with an unknown runtime is on the machine, so that objects in this runtime matter more. */
  get isSuspected(): boolean {
    const { processes, listeners } = this.#traces;
    return listeners.length > 0 || processes.some(({ uses }) => uses === "unknown");
  }

  /** Observes once. `held`: everything in the runtime; null: it did not answer in this sync. */
  observe(held: RuntimePods | null): OtherKubeletFound | null {
    const nowMs = this.#deps.clock.monotonicMs();
    if (held !== null) this.#updateHeld(held, nowMs);
    const isWhole = nowMs - this.#fullCheckMs >= FULL_CHECK_MS;
    if (isWhole) this.#fullCheckMs = nowMs;
    const traces = this.#deps.kubelets(isWhole);
    this.#traces = traces;
    const hasProcess = traces.processes.some(({ uses }) => uses === "this");
    // its earlier stops no longer count once it is gone
    if (this.#hadProcess && !hasProcess) [this.#reappeared, this.#stopped, this.#long] = [[], [], null];
    this.#hadProcess = hasProcess;
    const isRecent = ({ atMs }: Timed): boolean => nowMs - atMs < RECENT_MS;
    this.#reappeared = this.#reappeared.filter(isRecent);
    this.#stopped = this.#stopped.filter(isRecent);
    const names = (timed: readonly Timed[]): readonly string[] => timed.map(({ pod }) => pod);
    const signs = signsOf({
      traces,
      standing: this.#standing,
      came: names(this.#reappeared),
      stopped: names(this.#stopped),
    });
    if (signs.length > 0) this.#shut(signs, nowMs);
    else if (nowMs - this.#lastSignMs >= CALM_MS && nowMs >= (this.#long?.untilMs ?? 0)) this.#open(nowMs);
    return this.#view;
  }

  #shut(signs: readonly OtherKubeletSign[], nowMs: number): void {
    const isSoon = nowMs - this.#openedMs < RECENT_MS;
    if (isSoon && signs.some(({ kind }) => kind === "stops")) {
      // a kubelet that is not visible may still be there, so admission pauses for longer each time
      const forMs = Math.min(this.#long === null ? FIRST_LONG_MS : 2 * this.#long.forMs, MAX_LONG_MS);
      this.#long = { forMs, untilMs: nowMs + forMs };
      this.#openedMs = Number.NEGATIVE_INFINITY;
    } else if (this.#view === null && !isSoon) this.#long = null;
    this.#lastSignMs = nowMs;
    this.#view = this.#viewOf(signs, nowMs);
  }
  #open(nowMs: number): void {
    if (this.#view !== null) this.#openedMs = nowMs;
    this.#view = null;
  }

  /** Current problems: the user of the runtime, and a collector that removes the logs of this daemon's pods. */
  problems(): readonly Problem[] {
    const { podLogsDirectory } = this.#deps;
    const collector = this.#traces.processes.find(({ collectsLogs }) => collectsLogs);
    const found = this.#view === null ? [] : [this.#view.message];
    const logs = `process ${collector?.pid} (${collector?.name}) removes from ${podLogsDirectory} the logs of all pods that are not its own: set podLogsDirectory, such as /var/log/nodewise/pods`;
    return [...found, ...(collector === undefined ? [] : [logs])].map((message) => ({ from: "pods", message }));
  }

  /** Counts and reports a stop. A terminating pod may have been stopped for the previous daemon. */
  recordStop(stop: ForeignStop): void {
    const { pod, how, containers } = stop;
    const { records, clock, counters, onEvent } = this.#deps;
    if (records.get(pod.uid)?.state !== "active") return;
    counters?.stoppedByOthers(how, containers.length);
    this.#unrecorded = [...this.#unrecorded, stop];
    const events = new PodEvents(pod, clock, onEvent);
    const [only] = containers;
    const names = containers.map(({ name }) => name).join(", ");
    if (how === "sandbox")
      events.warning(
        STOPPED,
        `The sandbox${names === "" ? "" : `, with ${names},`} was stopped by another program, not by this daemon`,
      );
    else if (how === "removed")
      events.warning(STOPPED, "The container was removed by another program while it ran", only?.name);
    else {
      const signal = `exit code ${only?.exitCode} (${signalOf(only?.exitCode ?? null)})`;
      const message = `Ended with ${signal}, which this daemon did not ask for, and not because memory was short: another program stopped it, or it ended itself so`;
      events.warning(STOPPED, message, only?.name);
    }
    // a signal may have been the kernel's, or the container's own
    if (how === "signal") return;
    this.#stopped = [...this.#stopped, { pod: `${pod.namespace}/${pod.name}`, atMs: clock.monotonicMs() }];
    this.#fullCheckMs = Number.NEGATIVE_INFINITY;
  }

  /** Returns the stops since the last call; the caller records them. */
  takeStops(): readonly ForeignStop[] {
    const stops = this.#unrecorded;
    this.#unrecorded = [];
    return stops;
  }

  #updateHeld(held: RuntimePods, nowMs: number): void {
    const pods = [...held.values()].map(kubeletsPartOf).filter((pod) => pod.ids.length > 0);
    const known = this.#known;
    const came = known === null ? [] : pods.filter(({ ids }) => ids.some((id) => !known.has(id)));
    this.#reappeared = [...this.#reappeared, ...came.map(({ name }) => ({ pod: name, atMs: nowMs }))];
    this.#known = new Set(pods.flatMap(({ ids }) => ids));
    this.#standing = pods.filter(({ isReady }) => isReady).map(({ name }) => name);
  }

  #viewOf(signs: readonly OtherKubeletSign[], nowMs: number): OtherKubeletFound {
    const { clock, runtimeEndpoint } = this.#deps;
    const since = this.#view?.since ?? new Date(clock.nowMs()).toISOString();
    const isKubelet = signs.some(({ kind }) => kind !== "stops");
    const evidence = signs.map(({ text }) => text).join("; ");
    const brief = isKubelet ? "another kubelet uses this runtime" : "another program stops pods in this runtime";
    const long =
      this.#long === null || this.#long.untilMs <= nowMs
        ? ""
        : ` for ${this.#long.forMs / 60_000} minutes, since pods were stopped again right after they had been admitted (a restart of the daemon admits them at once)`;
    const message = `${brief} (${runtimeEndpoint}), so no pod is admitted or started${long}: ${evidence}: ${WHAT_TO_DO}`;
    return { since, signs: [...new Set(signs.map(({ kind }) => kind))], message, brief };
  }
}
const STOPPED = "StoppedByOthers";

/** A pod's sandboxes and containers with a kubelet's labels that no Nodewise daemon owns. */
function kubeletsPartOf({ namespace, name, sandboxes, containers }: RuntimePod) {
  const theirs = sandboxes.filter(
    ({ labels, annotations }) => labels[OWNER] === undefined && KUBELETS_MARK in annotations,
  );
  const sandboxIds = new Set(theirs.map(({ id }) => id));
  const ids = [...sandboxIds, ...containers.filter(({ sandboxId }) => sandboxIds.has(sandboxId)).map(({ id }) => id)];
  return { name: `${namespace}/${name}`, ids, isReady: theirs.some(({ isReady }) => isReady) };
}
