import { createHash } from "node:crypto";
import { readdirSync, readFileSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { err, ok, type Result } from "../../api/model/result.ts";
import { ownFolder } from "../folder.ts";
import { type JournalError, replaceFile } from "../journal-file.ts";
import type { PodRecord } from "../lifecycle/record.ts";

/** The daemon's own records of pods: a file a pod, read once, written when one changes. */
export class PodRecords {
  readonly #directory: string;
  readonly #records = new Map<string, PodRecord>();
  /** Uids of those that the disk has in an older form, or not at all. */
  readonly #unwritten = new Set<string>();

  private constructor(directory: string) {
    this.#directory = directory;
  }

  /** Errors: the directory cannot be made or listed. A record that cannot be read is told, and counts as none. */
  static open(directory: string, onProblem: (message: string) => void): Result<PodRecords, string> {
    const records = new PodRecords(directory);
    try {
      ownFolder(directory);
      for (const name of readdirSync(directory)) {
        if (name.endsWith(SUFFIX)) records.#read(join(directory, name), onProblem);
        // a crash, or a full disk, cut it short
        else if (name.endsWith(`${SUFFIX}.new`)) unlinkSync(join(directory, name));
      }
    } catch (e) {
      return err(`records of pods in ${directory}: ${(e as Error).message}`);
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

  /** INVARIANT: on the disk when it succeeds; else a pod that is to live is as it was before. */
  put(uid: string, record: PodRecord): Result<null, string> {
    if (record.state !== "lives") {
      this.hold(uid, record);
      return ok(null);
    }
    const written = this.#write(uid, record);
    if (!written.ok) return err(`the record of pod ${uid}: ${written.error.message}`);
    this.#records.set(uid, record);
    this.#unwritten.delete(uid);
    return ok(null);
  }

  /**
   * Of one that comes to its end, or waits: it holds whatever the disk says, or a pod that fills the disk could never be
   * ended. `writeLate` writes it; until then a crash forgets it, and the pod is ended anew.
   */
  hold(uid: string, record: PodRecord): void {
    this.#records.set(uid, record);
    if (this.#write(uid, record).ok) this.#unwritten.delete(uid);
    else this.#unwritten.add(uid);
  }

  /** Tries again to write what the disk did not take. Answers what it still does not. */
  writeLate(): readonly string[] {
    return [...this.#unwritten].flatMap((uid) => {
      const record = this.#records.get(uid);
      const written = record === undefined ? ok(0) : this.#write(uid, record);
      if (written.ok) this.#unwritten.delete(uid);
      if (written.ok) return [];
      return [`the record of pod ${uid} cannot be written yet (${written.error.errno}): it is ended all the same`];
    });
  }

  /** Kept for the next start, if the disk takes it: how long a pod has been waiting, and how often it was refused. */
  keep(uid: string, record: PodRecord): void {
    this.note(uid, record);
    if (this.#write(uid, record).ok) this.#unwritten.delete(uid);
  }

  /** Known until the next start, whatever the disk says: what a crash may forget. */
  note(uid: string, record: PodRecord): void {
    this.#records.set(uid, record);
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
    return replaceFile(this.#file(uid), [JSON.stringify({ uid, record })]);
  }

  /** Any text may be a uid; a file's name may not be any text. */
  #file(uid: string): string {
    const name = PLAIN.test(uid) ? uid : createHash("sha256").update(uid).digest("hex");
    return join(this.#directory, `${name}${SUFFIX}`);
  }

  #read(file: string, onProblem: (message: string) => void): void {
    try {
      const { uid, record } = JSON.parse(readFileSync(file, "utf8")) as { uid: string; record: PodRecord };
      if (record.version === 1 && this.#file(uid) === file) this.#records.set(uid, record);
      else onProblem(`${file} is no record of a pod, or of another version: left aside`);
    } catch (e) {
      onProblem(`${file} cannot be read: ${(e as Error).message}: left aside`);
    }
  }
}

const SUFFIX = ".pod.json";
const PLAIN = /^[A-Za-z0-9][A-Za-z0-9-]{0,127}$/;
