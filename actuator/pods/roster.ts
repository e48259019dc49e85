import type { RunnablePod } from "../lifecycle/pod.ts";
import type { PodEnd } from "../lifecycle/pod-end.ts";
import type { PodRecord } from "../lifecycle/record.ts";
import { type RosterChange, rosterChanges } from "../lifecycle/roster.ts";
import type { Problem } from "../ports.ts";
import { type DesiredPods, heldBack } from "./desired-pods.ts";
import type { Doorkeeper } from "./doorkeeper.ts";
import { admitted, arrival } from "./entrance.ts";
import type { Leavers } from "./leavers.ts";
import { LostDirectories } from "./lost-directories.ts";
import type { ManagerPorts } from "./manager-ports.ts";
import { nameIn, type PodSet } from "./pod-set.ts";
import type { Resizer } from "./resize/resizer.ts";

export interface RosterTies {
  readonly leavers: Pick<Leavers, "forget" | "endOrphan">;
  readonly doorkeeper: Pick<Doorkeeper, "change" | "roomMade">;
  readonly resizer: Pick<Resizer, "begin" | "change">;
  readonly end: (uid: string, end: PodEnd) => void;
}

/** Notes in the records who came, changed, left, by what should run and what does. */
export class Roster {
  readonly #set: PodSet;
  readonly #ties: RosterTies;
  readonly #lost: LostDirectories;

  constructor(ports: ManagerPorts, set: PodSet, ties: RosterTies) {
    this.#set = set;
    this.#ties = ties;
    this.#lost = new LostDirectories(ports);
  }

  /** Compares with what should run. A source that could not be read asks for nothing and ends nothing. */
  note(desired: DesiredPods | null, isUnread: boolean, nowMs: number): readonly Problem[] {
    const problems: Problem[] = [];
    const fileOf = (uid: string): string | undefined => desired?.files.get(uid);
    const changes = rosterChanges({
      desired: desired?.pods ?? new Map(),
      whole: !isUnread && desired?.whole === true,
      unread: isUnread ? null : (desired?.unread ?? null),
      files: desired?.files ?? new Map(),
      refused: desired?.refusedItems ?? [],
      records: this.#set.records.entries(),
      seen: this.#set.seen,
      nowMs,
    });
    this.#ties.resizer.begin();
    for (const change of changes) {
      const noted = this.#noteOne(change, nowMs, fileOf);
      if (noted !== null) problems.push({ from: "pods", message: noted });
    }
    const stay = changes.flatMap((change) => (change.kind === "stays" ? [nameIn(this.#set, change.uid)] : []));
    if (stay.length > 0) problems.push(heldBack(stay, desired?.unread ?? []));
    const { seen, held, records } = this.#set;
    if (!isUnread && desired?.whole === true) problems.push(...this.#lost.look({ seen, held, records: records.known }));
    return problems;
  }

  /** Answers what keeps it from being noted. */
  #noteOne(change: RosterChange, nowMs: number, fileOf: (uid: string) => string | undefined): string | null {
    switch (change.kind) {
      case "comes":
        this.#set.records.note(change.pod.uid, arrival(change.pod, nowMs, fileOf(change.pod.uid)));
        return null;
      case "adopts":
        return this.#put(change.pod.uid, admitted(arrival(change.pod, nowMs, fileOf(change.pod.uid)), nowMs));
      case "changes":
        return this.#change(change.uid, change.pod);
      case "ends":
        this.#ties.end(change.uid, change.end);
        return null;
      case "leaves":
        this.#ties.leavers.forget(change.uid, () => this.#ties.doorkeeper.roomMade());
        return null;
      case "orphan":
        this.#ties.leavers.endOrphan(change.uid);
        return null;
      case "moves":
        return this.#move(change.uid, change.file);
      case "stays":
        return null;
      case "keeps":
        return `${nameIn(this.#set, change.uid)} stays as it was read last: ${change.why}`;
    }
  }

  #move(uid: string, file: string): string | null {
    const record = this.#set.records.get(uid);
    return record === undefined ? null : this.#put(uid, { ...record, file });
  }

  #change(uid: string, pod: RunnablePod): string | null {
    const known = this.#set.get(uid);
    if (known === null) return null;
    if (known.record.state !== "waits") return this.#ties.resizer.change(known, pod);
    this.#ties.doorkeeper.change(known, pod);
    return null;
  }

  #put(uid: string, record: PodRecord): string | null {
    const put = this.#set.records.put(uid, record);
    return put.ok ? null : put.error;
  }
}
