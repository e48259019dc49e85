import type { Problem } from "../ports.ts";
import { keepNext } from "./keep-next.ts";
import { DEVICE_CHECKPOINT } from "./manager-files.ts";
import type { ManagerPorts } from "./manager-ports.ts";
import type { NodeLook } from "./node-look.ts";
import type { PodSet } from "./pod-set.ts";

/** CPUs, memory and devices of pods that have left go back before anybody else is asked about. */
export class TakeBack {
  readonly #ports: ManagerPorts;
  readonly #set: PodSet;
  readonly #look: NodeLook;
  #doneAt = -1;

  constructor(ports: ManagerPorts, set: PodSet, look: NodeLook) {
    this.#ports = ports;
    this.#set = set;
    this.#look = look;
  }

  /** Once for each `room`: it grows when a pod has left. Answers what is in the way. */
  async run(room: number, sequence: number): Promise<Problem[]> {
    const { files, client } = this.#ports;
    const { assignments } = files.read();
    if (this.#doneAt === room || assignments === undefined) return [];
    const snapshot = await this.#look.snapshot(this.#set.living(), sequence);
    if (!snapshot.ok) return [snapshot.error];
    // what the history is to tell of devices is in a decision of that kind
    const holdsDevices = assignments[DEVICE_CHECKPOINT]?.includes('"PodUID"') ?? false;
    const answer = await client.decide(holdsDevices ? "devices" : "cpus", snapshot.value);
    if (!answer.ok) return [answer.error];
    const kept = keepNext(this.#ports, answer.value.next);
    if (!kept.ok) return [{ from: "state-files", message: kept.error }];
    if (holdsDevices && kept.value) await client.settle(answer.value);
    this.#doneAt = room;
    return [];
  }
}
