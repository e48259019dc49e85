import type { PreferredQuestion } from "../../../api/decide/devices/preferred.ts";
import type { DeviceConflict, DeviceOptions } from "../../../api/model/device-decision.ts";
import { ok, type Result } from "../../../api/model/result.ts";
import type { DevicePluginHost } from "../../deviceplugin/host.ts";
import type { ResourceAmount } from "../../deviceplugin/plugin-views.ts";
import type { PodContainer, RunnablePod } from "../../lifecycle/pod.ts";
import type { Problem } from "../../ports.ts";
import { withRegistered } from "./held.ts";
import { type DeviceKeeperPorts, type KeeperParts, keeperParts } from "./keeper-parts.ts";
import { healthyOf } from "./plugin-look.ts";
import type { DeviceDesk, DeviceFault, DeviceHands, DeviceParts } from "./port.ts";
import { bookProblems } from "./problems.ts";
import type { LivingPod } from "./running.ts";
import { startOf } from "./starter.ts";
import { type Vanished, vanishedFrom } from "./vanished.ts";
import { wantedDevices } from "./wanted.ts";
import { isChosenByPlugin, registrationOf, whyWaits } from "./wishes.ts";

/** The node's devices: what plugins have, who holds it, and what containers get for it. */
export class DeviceKeeper implements DeviceDesk, DeviceHands {
  readonly host: DevicePluginHost;
  readonly #ports: DeviceKeeperPorts;
  readonly #has: KeeperParts;
  readonly #life = new AbortController();
  readonly #startedAt: string;
  #pluginsSeen = "";
  /** A pod that wants devices waits, as of this turn. */
  #isAwaited = false;
  readonly #unlisten: () => void;

  /** At once: after a reboot what plugins answered is void. */
  constructor(ports: DeviceKeeperPorts) {
    const { host, clock, waitMs, faults } = ports;
    this.#ports = ports;
    this.host = host;
    this.#startedAt = new Date(clock.nowMs()).toISOString();
    this.#has = keeperParts(ports);
    faults.onNew = (fault) => this.#has.chronicle.faulty(fault);
    this.#unlisten = host.onChange(() => this.#has.pace.changed());
    this.#has.upkeep.settleBoot();
    // who waits for a plugin waits no longer then, and says why
    void clock.sleep(waitMs, this.#life.signal).then(() => this.#has.pace.changed());
  }

  get version(): number {
    return this.#has.pace.version;
  }
  /** Told when `version` has grown, at most four times a second. Answers how to stop it. */
  onChange(listener: () => void): () => void {
    return this.#has.pace.onChange(listener);
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
    return isOther || this.#isAwaited || this.#has.losses.lacking().size > 0;
  }

  parts(podUid?: string): DeviceParts {
    if (podUid !== undefined) this.#has.book.mayHold(podUid);
    const devicePlugins = this.#has.questions.told(this.host.plugins(), podUid);
    return { devices: this.host.devices(), devicePlugins, kubelet: { startedAt: this.#startedAt } };
  }

  /** One that only the last daemon knew has none until its plugin is back. kubelet 1.36: readCheckpoint. */
  amounts(): ReadonlyMap<string, ResourceAmount> {
    const now = this.host.amounts();
    const away = [...this.#has.plugins.known()].filter((resource) => !now.has(resource));
    return new Map([...now, ...away.map((resource) => [resource, { capacity: 0, allocatable: 0 }] as const)]);
  }

  whyWaits(pod: RunnablePod): (DeviceFault & { readonly isTold: boolean }) | null {
    if (wantedDevices(pod).size === 0) return null;
    this.#isAwaited = true;
    this.#has.chronicle.named(pod);
    const unwritten = this.#has.upkeep.whyNot();
    if (unwritten !== null) return { ...unwritten, isTold: false };
    return whyWaits({ plugins: this.#has.plugins, losses: this.#has.losses, waitMs: this.#ports.waitMs }, pod);
  }

  isChosenByPlugin(pod: RunnablePod): boolean {
    return isChosenByPlugin(this.#has.plugins, pod);
  }
  hasFailed(podUid: string): boolean {
    return this.#has.questions.hasFailed(podUid);
  }
  registrationOf(pod: RunnablePod): string {
    return registrationOf(this.#has.plugins, pod);
  }
  recover(living: readonly LivingPod[]): void {
    for (const { pod } of living) if (wantedDevices(pod).size > 0) this.#has.chronicle.named(pod);
    this.#has.losses.recover(living);
  }
  lacking(): ReadonlyMap<string, ReadonlySet<string>> {
    return this.#has.losses.lacking();
  }
  decidedAnew(podUid: string, why: string | null): void {
    this.#has.losses.decidedAnew(podUid, why);
    if (why === null) this.#has.pace.changed();
  }
  slowCalls(): ReadonlyMap<string, DeviceFault> {
    return this.#has.calls.slow();
  }
  vanished(): readonly Vanished[] {
    return vanishedFrom(this.#has.book.now(), this.host.states());
  }

  ask(podUid: string, questions: readonly PreferredQuestion[]): boolean {
    return this.#has.questions.ask(podUid, questions);
  }
  forget(podUid: string): void {
    this.#has.questions.forget(podUid);
  }
  merged(next: unknown): unknown {
    return this.#has.book.merged(next);
  }

  problems(): readonly Problem[] {
    const faults = this.#ports.faults.standing().map((message): Problem => ({ from: "devices", message }));
    const lost = this.#has.losses.standing().map((message): Problem => ({ from: "state-files", message }));
    const gone = this.vanished().map(({ podUid, message }): Problem => {
      return { from: "devices", message: `pod ${this.#has.chronicle.nameOf(podUid)}: ${message}` };
    });
    return [
      ...faults,
      ...this.#has.upkeep.problems(),
      ...lost,
      ...gone,
      ...bookProblems(this.#has.book, this.#has.chronicle.leaks),
    ];
  }

  look(living: ReadonlySet<string>): void {
    this.#isAwaited = false;
    this.#has.chronicle.look(living);
    if (this.#has.upkeep.look()) this.#has.pace.changed();
    if (this.#has.upkeep.settleBoot() !== null) return;
    // what cannot be read stays for people to look at, until something is held again
    if (this.#has.book.fault() !== null) return;
    const healthy = (resource: string) => healthyOf(this.#has.plugins.stateOf(resource));
    this.#has.book.edit((now) => withRegistered(now, this.#has.plugins.known(), healthy));
  }

  async prepare(
    pod: RunnablePod,
    signal: AbortSignal,
    starting?: ReadonlySet<string>,
  ): Promise<Result<null, DeviceFault>> {
    if (wantedDevices(pod).size === 0) return ok(null);
    this.#has.chronicle.named(pod);
    this.#has.chronicle.note();
    const prepared = this.#has.upkeep.settleBoot() ?? (await this.#has.allocator.prepare(pod, signal, starting));
    this.#has.chronicle.note();
    return prepared;
  }

  async startOf(pod: RunnablePod, container: PodContainer): Promise<Result<DeviceOptions | null, DeviceFault>> {
    if (!wantedDevices(pod).has(container.name)) return ok(null);
    const { host, waitMs } = this.#ports;
    const onConflict = (conflict: DeviceConflict): void => this.#has.conflicts.tell(pod, container.name, conflict);
    const ports = {
      host,
      book: this.#has.book,
      plugins: this.#has.plugins,
      calls: this.#has.calls,
      waitMs,
      onConflict,
    };
    return this.#has.upkeep.settleBoot() ?? startOf(ports, pod, container);
  }

  /** Nobody is told of anything any more; ends all calls to plugins, and removes kubelet.sock. */
  close(): void {
    this.#life.abort();
    this.#unlisten();
    this.#has.pace.close();
    this.host.close();
  }
}
