import { err, type Result } from "../../api/model/result.ts";
import { Identities } from "./identities.ts";
import type { ManagerPorts } from "./manager-ports.ts";
import type { NodeLook } from "./node-look.ts";
import type { PodSet } from "./pod-set.ts";

/** The node as others may ask about it at any time, between two turns too. */
export class ToldNode {
  readonly #ports: Pick<ManagerPorts, "files" | "devices">;
  readonly #set: PodSet;
  readonly #look: NodeLook;
  readonly #identities = new Identities();

  constructor(ports: Pick<ManagerPorts, "files" | "devices">, set: PodSet, look: NodeLook) {
    this.#ports = ports;
    this.#set = set;
    this.#look = look;
  }

  /** Another one whenever the snapshot may be another. */
  version(): string {
    const { files, devices } = this.#ports;
    const pods = this.#set
      .living()
      .map(({ uid, record, seen }) => `${uid}:${this.#identities.of(record)}:${this.#identities.of(seen)}`);
    return `${this.#identities.of(files.read().assignments)} ${devices?.version ?? 0} ${pods.join(" ")}`;
  }

  /** Errors: a sentence; nothing has been seen yet, or the configuration cannot be read. */
  snapshot(): Result<Readonly<Record<string, unknown>>, string> {
    const snapshot = this.#look.lastSnapshot(this.#set.living());
    if (snapshot === null) return err("no turn of the daemon has ended yet");
    return snapshot.ok ? snapshot : err(snapshot.error.message);
  }
}
