import type { BackOff } from "../lifecycle/record.ts";
import { AWAITED } from "./holds.ts";
import type { ContainerFault } from "./images.ts";
import type { ManagerPorts } from "./manager-ports.ts";
import type { PodSet } from "./pod-set.ts";

/** What work at a pod does while it waits for device plugins. */
export class DeviceWaits {
  readonly #ports: Pick<ManagerPorts, "devices">;
  readonly #set: PodSet;
  /** Of the work that is under way: the containers that it is to start. */
  readonly #starts = new Map<string, readonly string[]>();

  constructor(ports: Pick<ManagerPorts, "devices">, set: PodSet) {
    this.#ports = ports;
    this.#set = set;
  }

  begin(uid: string, starts: readonly string[]): void {
    this.#starts.set(uid, starts);
  }

  /** A container that waits for its plugin has not failed: its back-off is `before` again. */
  end(
    uid: string,
    before: Readonly<Record<string, BackOff>>,
    faults: Readonly<Record<string, Pick<ContainerFault, "reason">>>,
  ): void {
    this.#starts.delete(uid);
    const names = Object.entries(faults).flatMap(([name, { reason }]) => (AWAITED.has(reason) ? [name] : []));
    const record = this.#set.records.get(uid);
    if (record === undefined || names.every((name) => record.backOff[name] === before[name])) return;
    const others = Object.entries(record.backOff).filter(([name]) => !names.includes(name));
    const former = Object.entries(before).filter(([name]) => names.includes(name));
    this.#set.records.put(uid, { ...record, backOff: Object.fromEntries([...others, ...former]) });
  }

  /** What a plugin keeps waiting says so. */
  noteSlowCalls(): void {
    for (const [uid, fault] of this.#ports.devices?.slowCalls() ?? []) {
      const starts = this.#starts.get(uid) ?? [];
      const { errors } = this.#set.worked(uid);
      if (starts.every((name) => errors[name]?.message === fault.message)) continue;
      this.#set.noteWork(uid, { errors: { ...errors, ...Object.fromEntries(starts.map((name) => [name, fault])) } });
    }
  }
}
