import type { QuantityList } from "../../api/model/decision.ts";
import type { ConditionState } from "../../api/model/eviction.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import type { MachineFacts } from "../machine/facts.ts";
import type { Moment } from "../pass-clock.ts";
import type { Problem } from "../ports.ts";
import type { ManagerPorts, ManagerSettings } from "./manager-ports.ts";
import type { KnownPod, PodSet } from "./pod-set.ts";
import { type NodeParts, nodeSnapshot } from "./room.ts";

interface Seen {
  readonly sequence: number;
  readonly machine: MachineFacts;
  readonly moment: Moment;
  readonly configuration: Result<unknown, Problem>;
}

/** The node as a turn sees it, whatever it asks about: the machine and its configuration are looked at once a turn. */
export class NodeLook {
  readonly #ports: ManagerPorts;
  readonly #settings: ManagerSettings;
  readonly #set: PodSet;
  /** Null: it was not decided yet. */
  readonly allocatable: () => QuantityList | null;
  /** Held by the last eviction pass. */
  conditions: readonly ConditionState[] = [];
  #seen: Seen | null = null;

  constructor(ports: ManagerPorts, settings: ManagerSettings, set: PodSet, allocatable: () => QuantityList | null) {
    this.#ports = ports;
    this.#settings = settings;
    this.#set = set;
    this.allocatable = allocatable;
  }

  /**
   * `pods`: those that are on it. `asking`: the uid of one that is asked about, with what plugins have answered about it.
   * Errors: the configuration cannot be read.
   */
  async snapshot(
    pods: readonly KnownPod[],
    sequence: number,
    asking?: string,
  ): Promise<Result<Readonly<Record<string, unknown>>, Problem>> {
    return this.#snapshot(pods, await this.#seenIn(sequence), this.#devices(asking));
  }

  /** As the last turn saw the node, for whoever cannot wait. Null: no turn has looked yet. */
  lastSnapshot(pods: readonly KnownPod[]): Result<Readonly<Record<string, unknown>>, Problem> | null {
    return this.#seen === null ? null : this.#snapshot(pods, this.#seen, this.#devices());
  }

  #devices(asking?: string): Pick<NodeParts, "devices" | "amounts"> {
    const { devices } = this.#ports;
    return devices === undefined ? {} : { devices: devices.parts(asking), amounts: devices.amounts() };
  }

  #snapshot(
    pods: readonly KnownPod[],
    { machine, configuration, sequence }: Seen,
    told: Pick<NodeParts, "devices" | "amounts">,
  ): Result<Readonly<Record<string, unknown>>, Problem> {
    if (!configuration.ok) return err(configuration.error);
    const { nodeName, cgroupMount } = this.#settings;
    return ok(
      nodeSnapshot({
        machine,
        kubeletConfiguration: configuration.value,
        pods: this.#set.objects(pods, this.#ports.clock.nowMs()),
        assignments: this.#ports.files.told().assignments,
        nodeName,
        cgroupMount,
        allocatable: this.allocatable(),
        conditions: this.conditions,
        sequence,
        ...told,
      }),
    );
  }

  /** As an eviction pass asks with it: what it remembers is of the clock as it was then. */
  async passSnapshot(
    pods: readonly KnownPod[],
    sequence: number,
  ): Promise<Result<{ readonly snapshot: Readonly<Record<string, unknown>>; readonly moment: Moment }, Problem>> {
    // no eviction depends on devices
    const seen = await this.#seenIn(sequence);
    const { moment } = seen;
    const snapshot = this.#snapshot(pods, seen, {});
    if (!snapshot.ok) return snapshot;
    return ok({ moment, snapshot: { ...snapshot.value, ...this.#ports.evictionClock.told(moment) } });
  }

  async #seenIn(sequence: number): Promise<Seen> {
    if (this.#seen?.sequence === sequence) return this.#seen;
    const { readConfiguration, observeMachine, evictionClock } = this.#ports;
    const configuration = await readConfiguration();
    const machine = observeMachine();
    const moment = evictionClock.now(Date.parse(machine.observedAt), machine.system.bootID ?? "");
    this.#seen = { sequence, configuration, machine, moment };
    return this.#seen;
  }
}
