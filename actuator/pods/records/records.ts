import { createHash } from "node:crypto";
import { readdirSync, readFileSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { err, ok, type Result } from "../../../api/base/result.ts";
import type { PodIdentity } from "../../../api/documents/problem.ts";
import { faultText } from "../../core/error-text.ts";
import { type JournalError, ownFolder, replaceFile } from "../../core/record-file.ts";
import { type Durability, durabilityOf } from "../../lifecycle/pod-state.ts";
import {
  type PodEvent,
  type PodRecord,
  recordOfStored,
  type StoredRecord,
  storedRecord,
} from "../../lifecycle/record.ts";
import type { OnPodEvent, PodClock } from "../pod-clock.ts";

/** Emits events about one pod. */
export class PodEvents {
  readonly #pod: PodEvent["pod"];
  readonly #clock: PodClock;
  readonly #on: OnPodEvent;

  constructor({ namespace, name, uid }: PodIdentity, clock: PodClock, on: OnPodEvent) {
    this.#pod = { namespace, name, uid };
    this.#clock = clock;
    this.#on = on;
  }

  normal(reason: string, message: string, container: string | null = null): void {
    this.record("Normal", reason, message, container);
  }
  warning(reason: string, message: string, container: string | null = null): void {
    this.record("Warning", reason, message, container);
  }

  /** `container` null: the event is about the whole pod. */
  record(type: PodEvent["type"], reason: string, message: string, container: string | null = null): void {
    const at = new Date(this.#clock.nowMs()).toISOString();
    this.#on({ at, type, reason, message, pod: this.#pod, container });
  }
}

export type PodEventRecorder = (pod: PodIdentity) => PodEvents;
export const podEventRecorder =
  (clock: PodClock, on: OnPodEvent): PodEventRecorder =>
  (pod) =>
    new PodEvents(pod, clock, on);

/** The records' directory below a state directory. */
export const recordsIn = (stateDir: string): string => join(stateDir, "pods");

/** The records for readers; only `PodLifecycle` changes them. */
export type ReadonlyPodRecords = Pick<PodRecords, "get" | "entries" | "known" | "size">;

/** The daemon's own records of pods: one file per pod, read once, written when the record changes. */
export class PodRecords {
  readonly #directory: string;
  readonly #records = new Map<string, PodRecord>();
  /** Uids of records of which the disk has an older version, or none. */
  readonly #unwritten = new Set<string>();

  private constructor(directory: string) {
    this.#directory = directory;
  }

  /**
   * Opens the records. Errors: the directory cannot be created or listed. An unreadable record is reported, and counts
   * as none.
   */
  static open(directory: string, onProblem: (message: string) => void): Result<PodRecords, string> {
    const records = new PodRecords(directory);
    try {
      ownFolder(directory);
      for (const name of readdirSync(directory)) {
        if (name.endsWith(SUFFIX)) records.#read(join(directory, name), onProblem);
        // a crash or a full disk interrupted the writing of this file
        else if (name.endsWith(`${SUFFIX}.new`)) unlinkSync(join(directory, name));
      }
    } catch (e) {
      return err(`records of pods in ${directory}: ${faultText(e, "write")}`);
    }
    return ok(records);
  }

  get(uid: string): PodRecord | undefined {
    return this.#records.get(uid);
  }
  entries(): IterableIterator<[string, PodRecord]> {
    return this.#records.entries();
  }
  get known(): ReadonlyMap<string, PodRecord> {
    return this.#records;
  }
  get size(): number {
    return this.#records.size;
  }

  /** Error: a record whose durability is `required` could not be written, and nothing has changed. */
  persist(uid: string, record: PodRecord, durability: Durability = durabilityOf(record)): Result<null, string> {
    const written = durability === "memory" ? null : this.#write(uid, record);
    if (durability === "required" && written?.ok === false)
      return err(`the record of pod ${uid}: ${written.error.message}`);
    this.#records.set(uid, record);
    if (written?.ok === true) this.#unwritten.delete(uid);
    else if (durability === "eventual") this.#unwritten.add(uid);
    return ok(null);
  }

  /** Tries again to write the unwritten records, which a crash would lose. Returns a message for each that still fails. */
  writeLate(): readonly string[] {
    return [...this.#unwritten].flatMap((uid) => {
      const record = this.#records.get(uid);
      const written = record === undefined ? ok(0) : this.#write(uid, record);
      if (written.ok) this.#unwritten.delete(uid);
      if (written.ok) return [];
      return [`the record of pod ${uid} cannot be written yet (${written.error.errno}): it is ended all the same`];
    });
  }

  delete(uid: string): Result<null, string> {
    try {
      unlinkSync(this.#file(uid));
    } catch (e) {
      if ((e as NodeJS.ErrnoException).code !== "ENOENT")
        return err(`the record of pod ${uid}: ${(e as Error).message}`);
    }
    this.#records.delete(uid);
    this.#unwritten.delete(uid);
    return ok(null);
  }

  #write(uid: string, record: PodRecord): Result<number, JournalError> {
    return replaceFile(this.#file(uid), [JSON.stringify({ uid, record: storedRecord(record) })]);
  }

  /** The file of a uid, which may contain characters that no file name has. */
  #file(uid: string): string {
    const name = PLAIN.test(uid) ? uid : createHash("sha256").update(uid).digest("hex");
    return join(this.#directory, `${name}${SUFFIX}`);
  }

  #read(file: string, onProblem: (message: string) => void): void {
    try {
      const { uid, record: stored } = JSON.parse(readFileSync(file, "utf8")) as { uid: string; record: StoredRecord };
      const record = recordOfStored(stored);
      if (record !== null && this.#file(uid) === file) this.#records.set(uid, record);
      else onProblem(`${file} is no record of a pod, or of another version: left aside`);
    } catch (e) {
      onProblem(`${file} cannot be read: ${faultText(e, "read")}: left aside`);
    }
  }
}

const SUFFIX = ".pod.json";
const PLAIN = /^[A-Za-z0-9][A-Za-z0-9-]{0,127}$/;
