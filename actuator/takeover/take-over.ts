import { byText } from "../../api/base/order.ts";
import { err, ok } from "../../api/base/result.ts";
import type { Profile } from "../../api/profiles/profile.ts";
import type { Exec, PodRuntime, RuntimeResult } from "../containerd/cri.ts";
import { containersToKill, effectiveGracePeriod, type StopContainer } from "../lifecycle/container-termination.ts";
import { podAddresses } from "../lifecycle/env.ts";
import {
  type ForeignSandbox,
  foreignSandboxes,
  otherNodeOf,
  runningIn,
  sandboxText,
} from "../lifecycle/foreign-sandbox.ts";
import type { RunnablePod } from "../lifecycle/pod.ts";
import type { OnPodEvent, PodClock } from "../pods/pod-clock.ts";
import type { DesiredPods } from "../pods/records/desired-pods.ts";
import { PodEvents } from "../pods/records/records.ts";
import { type StopRuntime, stopPod } from "../pods/sync/stop-container.ts";

/** How long to watch whether a stopped sandbox is started again: a kubelet does that within two seconds. */
const WATCH_MS = 10_000;
const POLL_INTERVAL_MS = 250;

export interface TakeoverDeps {
  readonly runtime: Pick<PodRuntime, "pods" | "stopContainer" | "stopSandbox" | "exec">;
  readonly clock: PodClock;
  /** The kubelet version that is reimplemented. */
  readonly profile: Profile;
  /** The daemon's own name: label OWNER. */
  readonly owner: string;
  readonly hostIPs: readonly string[];
  /** The desired pods, read again before each stop; null: they cannot be read now. */
  readonly podsToRun: () => Promise<PodsToRun | null>;
  readonly onEvent: OnPodEvent;
  /** Called for each end. */
  readonly onEnd: (end: StopEnd) => void;
}
/** `stopped`: the sandbox no longer runs, whoever stopped it; `left`: no attempt was made. */
export interface StopEnd {
  readonly stop: TakeoverStop;
  readonly outcome: "stopped" | "failed" | "left";
  /** Why the sandbox was left or the stop failed; otherwise empty. */
  readonly message: string;
  readonly tookMs: number;
}
export interface TakeoverResult {
  readonly ends: readonly StopEnd[];
  /** The process that restarts stopped sandboxes, because of which the rest was left; null: none. */
  readonly cameBack: string | null;
}

/**
 * Stops sandboxes in order: the first alone, then all of one priority in parallel. Everything is checked again
 * right before it is stopped, and nothing is stored on disk: run again after a crash, it continues with what still runs.
 */
export async function takeOver(
  deps: TakeoverDeps,
  stops: readonly TakeoverStop[],
  signal: AbortSignal,
): Promise<TakeoverResult> {
  const [first, ...rest] = stops;
  const groups = [first === undefined ? [] : [first], ...Map.groupBy(rest, priorityOf).values()];
  const ends: StopEnd[] = [];
  let cameBack: string | null = null;
  for (const group of groups) {
    if (signal.aborted || cameBack !== null) break;
    ends.push(...(await Promise.all(group.map((stop) => stopOne(deps, stop, signal)))));
    // if nothing restarts after the first and the last group, nothing restarts in between
    const isWatched = group[0] === first || group === groups.at(-1);
    cameBack = isWatched ? await findRestarted(deps, ends, signal) : null;
  }
  const begun = new Set(ends.map(({ stop }) => stop));
  const why = cameBack === null ? "interrupted" : "something else was started again";
  const left = stops.filter((stop) => !begun.has(stop)).map((stop) => endOf(deps, stop, "left", why, 0));
  return { ends: [...ends, ...left], cameBack };
}

function endOf(
  { onEnd }: TakeoverDeps,
  stop: TakeoverStop,
  outcome: StopEnd["outcome"],
  message: string,
  tookMs: number,
): StopEnd {
  const end = { stop, outcome, message, tookMs };
  onEnd(end);
  return end;
}

async function stopOne(deps: TakeoverDeps, planned: TakeoverStop, signal: AbortSignal): Promise<StopEnd> {
  const { runtime, clock, profile, owner, hostIPs, onEvent } = deps;
  const fromMs = clock.monotonicMs();
  const end = (outcome: StopEnd["outcome"], message = ""): StopEnd =>
    endOf(deps, planned, outcome, message, Math.round(clock.monotonicMs() - fromMs));
  const name = fullName(planned.pod);
  const podsToRun = await deps.podsToRun();
  const pod = [...(podsToRun?.pods.values() ?? [])].find((one) => fullName(one) === name);
  if (pod === undefined)
    return end("left", podsToRun === null ? "the pods cannot be read now" : "no manifest names it now");
  const guard = new ForeignGuard(runtime, owner, planned.sandbox);
  const now = await guard.check("StopPodSandbox");
  if (!now.ok) return end("failed", now.error.message);
  if (now.value === null) return end("stopped");
  const { containers, graceSeconds } = stopOf(pod, now.value);
  const { ips } = now.value;
  const podIps = podAddresses(pod, { hostIPs, podIPs: ips });
  const events = new PodEvents(now.value, clock, onEvent);
  const context = { pod, runtime: guard, events, clock, profile, signal, podIps };
  const errors = await stopPod(context, containers, [now.value], graceSeconds);
  if (errors.length > 0) return end("failed", errors.join(", "));
  if (signal.aborted) return end("failed", "interrupted");
  const after = await guard.check("StopPodSandbox");
  if (!after.ok) return end("failed", after.error.message);
  return after.value === null ? end("stopped") : end("failed", `it still runs: ${sandboxText(after.value)}`);
}

/** Finds a running sandbox with the name of a stopped one: the same sandbox, or another. */
async function findRestarted(
  { runtime, clock, owner }: TakeoverDeps,
  ends: readonly StopEnd[],
  signal: AbortSignal,
): Promise<string | null> {
  const names = new Set(ends.filter(({ outcome }) => outcome === "stopped").map(({ stop }) => fullName(stop.pod)));
  const planned = new Set(ends.map(({ stop }) => stop.sandbox.id));
  const untilMs = clock.monotonicMs() + WATCH_MS;
  while (names.size > 0 && clock.monotonicMs() < untilMs && !signal.aborted) {
    const held = await runtime.pods();
    const foreign = held.ok ? foreignSandboxes(held.value, owner) : [];
    const back = foreign.find((one) => names.has(fullName(one)) && !planned.has(one.id));
    if (back !== undefined)
      return (
        `${fullName(back)} was started again, in ${sandboxText(back)}: a kubelet still runs on this runtime. ` +
        "Stop it for good (systemctl disable --now kubelet), then run this again"
      );
    await clock.sleep(POLL_INTERVAL_MS, signal);
  }
  return null;
}

/**
 * The runtime, restricted to stopping one foreign sandbox.
 * INVARIANT: right before each call the sandbox is checked again: same id, same pod, still foreign, and
 * no other Nodewise daemon's; only its own containers are stopped.
 */
class ForeignGuard implements StopRuntime {
  readonly #runtime: TakeoverDeps["runtime"];
  readonly #owner: string;
  readonly #planned: ForeignSandbox;

  constructor(runtime: TakeoverDeps["runtime"], owner: string, planned: ForeignSandbox) {
    this.#runtime = runtime;
    this.#owner = owner;
    this.#planned = planned;
  }

  /** Null: nothing of it runs any more. Errors: the runtime's, and that the sandbox has changed. */
  async check(call: string): RuntimeResult<ForeignSandbox | null> {
    const held = await this.#runtime.pods();
    if (!held.ok) return held;
    const { id, uid } = this.#planned;
    const now = foreignSandboxes(held.value, this.#owner).find((one) => one.id === id);
    if (now === undefined) return ok(null);
    const isSame = now.uid === uid && fullName(now) === fullName(this.#planned) && now.otherOwner === null;
    return isSame
      ? ok(now)
      : err({ call, code: "CHANGED", message: `sandbox ${id} is ${fullName(now)}'s now, uid ${now.uid}` });
  }

  async stopContainer(id: string, graceSeconds: number): RuntimeResult<null> {
    const now = await this.#container("StopContainer", id);
    return now.ok && now.value ? this.#runtime.stopContainer(id, graceSeconds) : nothing(now);
  }
  async exec(id: string, command: readonly string[], timeoutSeconds: number): RuntimeResult<Exec> {
    const now = await this.#container("ExecSync", id);
    if (now.ok && now.value) return this.#runtime.exec(id, command, timeoutSeconds);
    return now.ok ? err({ call: "ExecSync", code: "NOT_FOUND", message: `container ${id} does not run` }) : now;
  }
  async stopSandbox(id: string): RuntimeResult<null> {
    const now = await this.check("StopPodSandbox");
    return now.ok && now.value?.id === id ? this.#runtime.stopSandbox(id) : nothing(now);
  }

  /** Checks that it is a container of that sandbox, and runs. */
  async #container(call: string, id: string): RuntimeResult<boolean> {
    const now = await this.check(call);
    return now.ok ? ok(now.value !== null && runningIn(now.value).some((one) => one.id === id)) : now;
  }
}
const nothing = <T>(result: Awaited<RuntimeResult<T>>): Awaited<RuntimeResult<null>> => (result.ok ? ok(null) : result);

/** A sandbox that is stopped, with its containers in the order in which they may end. */
export interface TakeoverStop {
  readonly pod: RunnablePod;
  readonly sandbox: ForeignSandbox;
  readonly containers: readonly StopContainer[];
  /** Seconds from the beginning of a container's end to its kill. */
  readonly graceSeconds: number;
}
/** A sandbox that stays, and why. */
interface TakeoverStay {
  readonly sandbox: ForeignSandbox;
  readonly why: string;
}
export interface TakeoverPlan {
  /** The stops in order: pods of the lowest priority first, as in a node's shutdown. */
  readonly stops: readonly TakeoverStop[];
  readonly stays: readonly TakeoverStay[];
}
export type PodsToRun = Pick<DesiredPods, "pods" | "refused">;

/**
 * Plans which foreign sandboxes a take-over would stop. Pure. INVARIANT: only sandboxes whose namespace and name
 * belong to a pod that Nodewise is to run, and can run. `asked`: names (`NAMESPACE/NAME`) to which it is
 * limited; null: all.
 */
export function takeoverPlan(
  foreign: readonly ForeignSandbox[],
  { pods, refused }: PodsToRun,
  asked: ReadonlySet<string> | null,
): TakeoverPlan {
  const byName = new Map([...pods.values()].map((pod) => [fullName(pod), pod]));
  const stops: TakeoverStop[] = [];
  const stays: TakeoverStay[] = [];
  for (const sandbox of foreign) {
    const name = fullName(sandbox);
    const pod = byName.get(name);
    const unfit = refused.find((one) => one.pod === name);
    const stay = (why: string) => stays.push({ sandbox, why });
    if (sandbox.otherOwner !== null)
      stay(`the Nodewise daemon of cgroup root ${sandbox.otherOwner} runs it: let that one end it`);
    else if (unfit !== undefined)
      stay(`its manifest cannot be run here: ${unfit.faults[0]?.path}: ${unfit.faults[0]?.message}`);
    else if (pod === undefined) stay(reasonNotOwned(sandbox, pods));
    else if (asked !== null && !asked.has(name)) stay("not asked for");
    else stops.push(stopOf(pod, sandbox));
  }
  return { stops: stops.toSorted(inOrder), stays };
}

export const fullName = ({ namespace, name }: Pick<RunnablePod, "namespace" | "name">): string =>
  `${namespace}/${name}`;

const stopOf = (pod: RunnablePod, sandbox: ForeignSandbox): TakeoverStop => ({
  pod,
  sandbox,
  containers: containersToKill(pod, { ...sandbox, sandboxes: [] }),
  graceSeconds: effectiveGracePeriod(pod, null),
});

function reasonNotOwned(sandbox: ForeignSandbox, pods: PodsToRun["pods"]): string {
  for (const pod of pods.values()) {
    const nodeName = otherNodeOf(pod, sandbox);
    if (nodeName !== null)
      return `seems to be ${fullName(pod)} of a kubelet that calls this node \`${nodeName}\`: give Nodewise that nodeName`;
  }
  return "no manifest names it";
}

const inOrder = (a: TakeoverStop, b: TakeoverStop): number =>
  priorityOf(a) - priorityOf(b) ||
  byText(fullName(a.pod), fullName(b.pod)) ||
  a.sandbox.createdAtMs - b.sandbox.createdAtMs ||
  byText(a.sandbox.id, b.sandbox.id);
export const priorityOf = ({ pod }: TakeoverStop): number => pod.spec.priority ?? 0;
