import type { PreferredQuestion } from "../../../api/decide/devices/preferred.ts";
import type { DeviceConflict, DeviceOptions } from "../../../api/model/device-decision.ts";
import { err, ok, type Result } from "../../../api/model/result.ts";
import type { DevicePluginHost } from "../../deviceplugin/host.ts";
import type { ResourceAmount } from "../../deviceplugin/plugin-views.ts";
import type { PodContainer, RunnablePod } from "../../lifecycle/pod.ts";
import type { Problem } from "../../ports.ts";
import type { Counters } from "../../status/counters.ts";
import type { PodClock } from "../clock.ts";
import type { ManagerFiles } from "../manager-files.ts";
import { Allocator } from "./allocator.ts";
import { DeviceBook } from "./book.ts";
import { settleBoot } from "./boot.ts";
import { keepBroken } from "./broken-copy.ts";
import { PluginCalls } from "./calls.ts";
import { DeviceChronicle } from "./chronicle.ts";
import { withRegistered } from "./held.ts";
import type { DeviceHistory } from "./history.ts";
import { DeviceLosses } from "./losses.ts";
import { ChangePace } from "./pace.ts";
import type { PluginFaults } from "./plugin-faults.ts";
import { healthyOf, PluginLook } from "./plugin-look.ts";
import type { DeviceDesk, DeviceFault, DeviceHands, DeviceParts } from "./port.ts";
import { bookProblems, conflictText } from "./problems.ts";
import { Questions } from "./questions.ts";
import type { LivingPod } from "./running.ts";
import { startOf } from "./starter.ts";
import { type Vanished, vanishedFrom } from "./vanished.ts";
import { wantedDevices } from "./wanted.ts";
import { notRegistered, WAITING, waitsFor } from "./words.ts";

export interface DeviceKeeperPorts {
  readonly host: DevicePluginHost;
  readonly files: ManagerFiles;
  readonly clock: PodClock;
  /** Of the machine; empty: not known, so that every start counts as one of the machine. */
  readonly bootId: string;
  /** How long a pod waits for a plugin that has not come since the daemon's start. */
  readonly waitMs: number;
  readonly history: DeviceHistory;
  readonly faults: PluginFaults;
  readonly counters: Pick<Counters, "deviceAllocated" | "devicePluginRegistered">;
  /** What is told once, and does not stand. */
  readonly onProblem: (problem: Problem) => void;
}
/** Conflicts that were told. */
const MOST_TOLD = 1024;

/** The node's devices: what plugins have, who holds it, and what containers get for it. */
export class DeviceKeeper implements DeviceDesk, DeviceHands {
  readonly host: DevicePluginHost;
  readonly #ports: DeviceKeeperPorts;
  readonly #book: DeviceBook;
  readonly #plugins: PluginLook;
  readonly #pace: ChangePace;
  readonly #questions: Questions;
  readonly #allocator: Allocator;
  readonly #chronicle: DeviceChronicle;
  readonly #calls: PluginCalls;
  readonly #losses: DeviceLosses;
  readonly #life = new AbortController();
  readonly #startedAt: string;
  readonly #told = new Set<string>();
  #pluginsSeen = "";
  /** A pod that wants devices waits, as of this turn. */
  #isAwaited = false;
  readonly #unlisten: () => void;
  /** What plugins answered is of this boot. */
  #isOfThisBoot = false;
  /** Why the checkpoint is not as it should be; null: it is. */
  #unwritten: string | null = null;

  /** At once: after a reboot what plugins answered is void. */
  constructor(ports: DeviceKeeperPorts) {
    const { host, files, clock, waitMs, history, faults, counters } = ports;
    this.#ports = ports;
    this.host = host;
    this.#startedAt = new Date(clock.nowMs()).toISOString();
    const book = new DeviceBook(files);
    this.#book = book;
    const plugins = new PluginLook({ host, book, clock, waitMs });
    this.#plugins = plugins;
    this.#pace = new ChangePace(clock);
    this.#questions = new Questions(host, () => this.#pace.changed());
    this.#chronicle = new DeviceChronicle({ host, book, history, counters, clock });
    this.#calls = new PluginCalls(clock);
    const onTold = (message: string): void => ports.onProblem({ from: "devices", message });
    this.#losses = new DeviceLosses(book, onTold);
    const broken = keepBroken(book);
    if (broken !== null) onTold(broken);
    this.#allocator = new Allocator({
      host,
      book,
      plugins,
      calls: this.#calls,
      onLacking: (pod, container, why) => this.#losses.lacks(pod, container, why),
      waitMs,
      counters,
      onRefused: (pod, resource, fault) => this.#chronicle.refused(pod, resource, fault),
      onUnwritten: (message) => {
        this.#unwritten = message;
      },
    });
    faults.onNew = (fault) => this.#chronicle.faulty(fault);
    this.#unlisten = host.onChange(() => this.#pace.changed());
    this.#settleBoot();
    // who waits for a plugin waits no longer then, and says why
    void clock.sleep(waitMs, this.#life.signal).then(() => this.#pace.changed());
  }

  get version(): number {
    return this.#pace.version;
  }
  /** Told when `version` has grown, at most four times a second. Answers how to stop it. */
  onChange(listener: () => void): () => void {
    return this.#pace.onChange(listener);
  }

  /**
   * Whether a change is worth a turn of its own: somebody waits for devices, or plugins came or went since this was last
   * asked. Of health that flips, the next turn learns soon enough.
   */
  isWorthATurn(): boolean {
    const states = this.host.states();
    const plugins = states.map((s) => `${s.resource} ${s.generation} ${s.state} ${s.listed}`).join();
    const isOther = plugins !== this.#pluginsSeen;
    this.#pluginsSeen = plugins;
    return isOther || this.#isAwaited || this.#losses.lacking().size > 0;
  }

  parts(podUid?: string): DeviceParts {
    if (podUid !== undefined) this.#book.mayHold(podUid);
    const devicePlugins = this.#questions.told(this.host.plugins(), podUid);
    return { devices: this.host.devices(), devicePlugins, kubelet: { startedAt: this.#startedAt } };
  }

  /** One that only the last daemon knew has none until its plugin is back. kubelet 1.36: readCheckpoint. */
  amounts(): ReadonlyMap<string, ResourceAmount> {
    const now = this.host.amounts();
    const away = [...this.#plugins.known()].filter((resource) => !now.has(resource));
    return new Map([...now, ...away.map((resource) => [resource, { capacity: 0, allocatable: 0 }] as const)]);
  }

  whyWaits(pod: RunnablePod): (DeviceFault & { readonly isTold: boolean }) | null {
    const wanted = wantedDevices(pod);
    if (wanted.size === 0) return null;
    this.#isAwaited = true;
    this.#chronicle.named(pod);
    const resources = [...new Set([...wanted.values()].flatMap((amounts) => [...amounts.keys()]))].sort();
    const away = resources.filter((resource) => !this.#plugins.isReady(resource));
    const lost = this.#losses.whyWaits(pod);
    if (lost !== null) return { ...lost, isTold: false };
    if (away.length === 0) return null;
    if (this.#plugins.isEarly) return { ...waitsFor(away, this.#ports.waitMs), isTold: false };
    // a kubelet would run the pod without them
    const unknown = away.filter((resource) => !this.#plugins.isDeviceResource(resource));
    return unknown.length === 0 ? null : { ...notRegistered(unknown), isTold: true };
  }

  isChosenByPlugin(pod: RunnablePod): boolean {
    const offers = (resource: string): boolean => {
      const state = this.#plugins.stateOf(resource);
      return state?.state === "registered" && state.options.getPreferredAllocationAvailable;
    };
    return [...wantedDevices(pod).values()].some((amounts) => [...amounts.keys()].some(offers));
  }

  hasFailed(podUid: string): boolean {
    return this.#questions.hasFailed(podUid);
  }
  registrationOf(pod: RunnablePod): string {
    const resources = [...new Set([...wantedDevices(pod).values()].flatMap((amounts) => [...amounts.keys()]))].sort();
    return resources.map((resource) => `${resource} ${this.#plugins.stateOf(resource)?.generation ?? 0}`).join(", ");
  }
  recover(living: readonly LivingPod[]): void {
    for (const { pod } of living) if (wantedDevices(pod).size > 0) this.#chronicle.named(pod);
    const fault = this.#losses.recover(living);
    if (fault !== null) this.#unwritten = fault;
  }
  lacking(): ReadonlyMap<string, ReadonlySet<string>> {
    return this.#losses.lacking();
  }
  decidedAnew(podUid: string, why: string | null): void {
    this.#losses.decidedAnew(podUid, why);
    if (why === null) this.#pace.changed();
  }
  slowCalls(): ReadonlyMap<string, DeviceFault> {
    return this.#calls.slow();
  }
  vanished(): readonly Vanished[] {
    return vanishedFrom(this.#book.now(), this.host.states());
  }

  ask(podUid: string, questions: readonly PreferredQuestion[]): boolean {
    return this.#questions.ask(podUid, questions);
  }
  forget(podUid: string): void {
    this.#questions.forget(podUid);
  }
  merged(next: unknown): unknown {
    return this.#book.merged(next);
  }

  problems(): readonly Problem[] {
    const faults = this.#ports.faults.standing().map((message): Problem => ({ from: "devices", message }));
    const unwritten = this.#unwritten === null ? [] : [{ from: "state-files", message: this.#unwritten } as const];
    const lost = this.#losses.standing().map((message): Problem => ({ from: "state-files", message }));
    const gone = this.vanished().map(({ podUid, message }): Problem => {
      return { from: "devices", message: `pod ${this.#chronicle.nameOf(podUid)}: ${message}` };
    });
    return [...faults, ...unwritten, ...lost, ...gone, ...bookProblems(this.#book, this.#chronicle.leaks)];
  }

  look(living: ReadonlySet<string>): void {
    this.#isAwaited = false;
    this.#chronicle.look(living);
    if (this.#settleBoot() !== null) return;
    // what cannot be read stays for people to look at, until something is held again
    if (this.#book.fault() !== null) return;
    const healthy = (resource: string) => healthyOf(this.#plugins.stateOf(resource));
    const kept = this.#book.edit((now) => withRegistered(now, this.#plugins.known(), healthy));
    this.#unwritten = kept.ok ? null : kept.error;
  }

  async prepare(
    pod: RunnablePod,
    signal: AbortSignal,
    starting?: ReadonlySet<string>,
  ): Promise<Result<null, DeviceFault>> {
    if (wantedDevices(pod).size === 0) return ok(null);
    this.#chronicle.named(pod);
    this.#chronicle.note();
    const prepared = this.#settleBoot() ?? (await this.#allocator.prepare(pod, signal, starting));
    this.#chronicle.note();
    return prepared;
  }

  async startOf(pod: RunnablePod, container: PodContainer): Promise<Result<DeviceOptions | null, DeviceFault>> {
    if (!wantedDevices(pod).has(container.name)) return ok(null);
    const { host, waitMs } = this.#ports;
    const onConflict = (conflict: DeviceConflict): void => this.#tellOnce(pod, container.name, conflict);
    const ports = { host, book: this.#book, plugins: this.#plugins, calls: this.#calls, waitMs, onConflict };
    return this.#settleBoot() ?? startOf(ports, pod, container);
  }

  /** Nobody is told of anything any more; ends all calls to plugins, and removes kubelet.sock. */
  close(): void {
    this.#life.abort();
    this.#unlisten();
    this.#pace.close();
    this.host.close();
  }

  /** Null: answers of plugins may be used. */
  #settleBoot(): Result<never, DeviceFault> | null {
    if (this.#isOfThisBoot) return null;
    const settled = settleBoot(this.#book, this.#ports.bootId);
    this.#isOfThisBoot = settled.ok;
    this.#unwritten = settled.ok ? null : settled.error;
    return settled.ok ? null : err({ reason: WAITING, message: settled.error, keeps: true });
  }

  #tellOnce(pod: RunnablePod, container: string, conflict: DeviceConflict): void {
    const message = conflictText(pod, container, conflict);
    if (this.#told.has(message)) return;
    if (this.#told.size >= MOST_TOLD) this.#told.clear();
    this.#told.add(message);
    this.#ports.onProblem({ from: "pods", message });
  }
}
