import assert from "node:assert/strict";
import type { PassReport } from "../../../actuator/pass/loop.ts";
import type { PodRow } from "../../../actuator/status/node-status.ts";
import type { GuestNode } from "./guest-node.ts";
import { differences } from "./pods-values.ts";

/** The checks share the rows of the pods as of the moment when they were running. */
export class Story {
  readonly node: GuestNode;
  readonly #rows = new Map<string, PodRow>();

  constructor(node: GuestNode) {
    this.node = node;
  }
  row(name: string): PodRow {
    const found = this.#rows.get(name);
    if (found === undefined) throw new Error(`${name} has not come up`);
    return found;
  }
  /** Waits until all of these pods run and a pass has seen them running. */
  async settle(...names: readonly string[]): Promise<PassReport> {
    const pass = await this.node.settled(...names);
    for (const name of names) this.#rows.set(name, await this.node.running(name));
    return pass;
  }
  id(name: string): string {
    return this.row(name).containers.find((container) => container.name === "app")?.id ?? "none";
  }
  path(name: string): string {
    return this.row(name).cgroups[0]?.path ?? "none";
  }
  /** The contents of these files in the pod's cgroup. */
  pod(name: string, ...files: readonly string[]): readonly string[] {
    return files.map((file) => this.node.read(this.path(name), file));
  }
  /** The contents of these files in the cgroup of the pod's container. */
  app(name: string, ...files: readonly string[]): readonly string[] {
    return files.map((file) => this.node.read(`${this.path(name)}/${this.id(name)}`, file));
  }
  expectAsDecided({ cgroups }: PassReport): void {
    assert.ok(cgroups !== null, "nothing was decided");
    assert.deepEqual(
      differences(cgroups, (path, file) => this.node.read(path, file)),
      [],
    );
  }
}
