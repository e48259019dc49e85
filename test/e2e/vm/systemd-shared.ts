import assert from "node:assert/strict";
import { join } from "node:path";
import type { PodRow } from "../../../actuator/status/node-status.ts";
import { CGROUPS, type SystemdMachine, textOf } from "./systemd-machine.ts";

export const wordsOf = (path: string): readonly string[] => (textOf(path) ?? "").split(/\s+/);

/** A machine and the pod that comes up in it, from the daemon's first start to its last stop. */
export class SystemdStory {
  readonly machine: SystemdMachine;
  /** As it was when it had come up. */
  row: PodRow | undefined;

  constructor(machine: SystemdMachine) {
    this.machine = machine;
  }
  get pod(): PodRow {
    if (this.row === undefined) throw new Error("the pod has not come up");
    return this.row;
  }
  /** Its container's. */
  get cgroup(): string {
    return join(CGROUPS, "nodewise", this.pod.cgroups[0]?.path ?? "none", this.pod.containers[0]?.id ?? "none");
  }
  /** Its processes, each with the time of its start. */
  processes(): readonly string[] {
    return wordsOf(join(this.cgroup, "cgroup.procs")).map((pid) => {
      const fields = textOf(`/proc/${pid}/stat`)?.split(") ").at(-1)?.split(" ");
      return `${pid} since ${fields?.[19]}`;
    });
  }
  /** The daemon answers, by this process, and has found the pod as it was. */
  async finds(pid: string): Promise<void> {
    const found = await this.machine.until("the pod, by the new daemon", (status) =>
      String(status.pid) === pid && status.runtime !== null
        ? status.pods.find(({ containers }) => containers[0]?.ready === true)
        : undefined,
    );
    const { id, restarts } = found.containers[0] ?? {};
    assert.deepEqual([found.uid, id, restarts], [this.pod.uid, this.pod.containers[0]?.id, 0]);
  }
}
