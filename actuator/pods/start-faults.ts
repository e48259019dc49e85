import type { AllocatableDecision } from "../../api/model/decision.ts";
import type { Managed } from "../../api/model/managers.ts";
import { decideHere } from "../decide-here.ts";
import type { Problem } from "../ports.ts";
import type { ManagerPorts } from "./manager-ports.ts";
import type { NodeLook } from "./node-look.ts";
import type { PodSet } from "./pod-set.ts";

/** So often the configuration is read again, which a person may have changed. */
const LOOK_MS = 3000;

/**
 * What would keep a kubelet from starting on this node, while it is so: its configuration does not go with the state files
 * that are there, as after another cpuManagerPolicy. A kubelet says so at its start; this daemon takes a configuration
 * while it runs, so it says so then, and not only to the next pod.
 */
export class StartFaults {
  readonly #ports: Pick<ManagerPorts, "readConfiguration" | "files" | "clock">;
  readonly #set: PodSet;
  readonly #look: NodeLook;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #key = "";
  #standing: readonly Problem[] = [];

  constructor(ports: Pick<ManagerPorts, "readConfiguration" | "files" | "clock">, set: PodSet, look: NodeLook) {
    this.#ports = ports;
    this.#set = set;
    this.#look = look;
  }

  /** Once a turn. */
  async run(sequence: number): Promise<readonly Problem[]> {
    const { readConfiguration, files, clock } = this.#ports;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#lookedAtMs < LOOK_MS || this.#set.seen === null) return this.#standing;
    this.#lookedAtMs = nowMs;
    const configuration = await readConfiguration();
    // told by whoever needs it
    if (!configuration.ok) return this.#standing;
    const key = JSON.stringify([configuration.value, files.version]);
    if (key === this.#key) return this.#standing;
    const snapshot = await this.#look.snapshot(this.#set.living(), sequence);
    if (!snapshot.ok) return this.#standing;
    this.#key = key;
    this.#standing = startErrors(snapshot.value).map((error) => ({
      from: "configuration",
      message: `a kubelet would not start with it, so no pod is let in: ${files.explained(error)}; or set the configuration back to what it was`,
    }));
    return this.#standing;
  }
}

function startErrors(snapshot: unknown): readonly string[] {
  const cpus = decideHere("cpus", snapshot, { explain: "off" });
  const allocatable = decideHere("allocatable", snapshot, { explain: "off" });
  return [
    ...new Set([
      ...(cpus.ok ? (cpus.value.decision as Managed).startErrors : []),
      ...(allocatable.ok ? (allocatable.value.decision as AllocatableDecision).errors : []),
    ]),
  ];
}
