import assert from "node:assert/strict";
import { join } from "node:path";
import type { PodRow } from "../../../actuator/status/node-status.ts";
import { CGROUPS, type SystemdMachine, textOf } from "./systemd-machine.ts";

export const wordsOf = (path: string): readonly string[] => (textOf(path) ?? "").split(/\s+/);

/** A machine and its pod, from the daemon's first start to its last stop. */
export class SystemdStory {
  readonly machine: SystemdMachine;
  /** The pod's row at the moment when it was running. */
  row: PodRow | undefined;

  constructor(machine: SystemdMachine) {
    this.machine = machine;
  }
  get pod(): PodRow {
    if (this.row === undefined) throw new Error("the pod has not come up");
    return this.row;
  }
  /** The cgroup of the pod's container. */
  get cgroup(): string {
    return join(CGROUPS, "nodewise", this.pod.cgroups[0]?.path ?? "none", this.pod.containers[0]?.id ?? "none");
  }
  /** The pod's processes, each with its start time. */
  processes(): readonly string[] {
    return wordsOf(join(this.cgroup, "cgroup.procs")).map((pid) => {
      const fields = textOf(`/proc/${pid}/stat`)?.split(") ").at(-1)?.split(" ");
      return `${pid} since ${fields?.[19]}`;
    });
  }
  /** Waits until the daemon with this pid answers; checks that it has found the pod unchanged. */
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
