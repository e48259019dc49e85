import { linkSync, readFileSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { err, ok, type Result } from "../../../api/base/result.ts";
import type { Problem } from "../../core/interfaces.ts";
import { ownFolder, replaceText } from "../../core/record-file.ts";
import type { PodClock } from "../pod-clock.ts";
import { DEVICE_CHECKPOINT, withoutResponses } from "./checkpoint-entries.ts";
import type { DeviceAssignments } from "./device-assignments.ts";
import type { ManagerFiles } from "./manager-files.ts";
import { checkpointNotWritten, type DeviceFault } from "./port.ts";

const MAX_COPIES = 3;
/** How long broken checkpoints are kept, since plugins' answers in them may be secret. */
const KEPT_MS = 7 * 24 * 60 * 60_000;

/**
 * Saves an unreadable checkpoint before it is overwritten: `.broken`, `.broken.1` and `.broken.2`, dropping the
 * oldest. Returns a sentence for people; null: there was nothing to save.
 */
function backUpUnreadable(assignments: DeviceAssignments): string | null {
  const fault = assignments.fault();
  if (fault === null) return null;
  const { file } = assignments;
  const copies = copiesOf(assignments);
  const inode = statOf(file)?.ino;
  const before = copies.find((copy) => inode !== undefined && copy.inode === inode);
  if (before !== undefined) return keptText(fault.message, before.name);
  const free = copies.find((copy) => copy.inode === undefined) ?? copies.toSorted((a, b) => a.keptMs - b.keptMs)[0];
  const name = free?.name ?? `${file}.broken`;
  try {
    rmSync(name, { force: true });
    // a hard link is enough: checkpoints are replaced, not overwritten
    linkSync(file, name);
    return keptText(fault.message, name);
  } catch (error) {
    return `${file}: ${fault.message}; it could not be kept as ${name}: ${(error as Error).message}`;
  }
}
const keptText = (message: string, copy: string): string =>
  `who held which devices could not be read (${message}): the file is kept as ${copy} for 7 days`;

/** Removes copies that are older than a week; one that cannot be removed stays. `nowMs`: since the epoch. */
function dropOldCopies(assignments: DeviceAssignments, nowMs: number): void {
  const current = statOf(assignments.file)?.ino;
  for (const { name, inode, keptMs } of copiesOf(assignments)) {
    if (inode === undefined || inode === current || nowMs - keptMs <= KEPT_MS) continue;
    try {
      rmSync(name);
    } catch {
      // the next call tries again
    }
  }
}

/** `inode` undefined: there is no copy. The status time of a copy is that of its creation, since nothing changes it later. */
const copiesOf = ({ file }: DeviceAssignments) =>
  Array.from({ length: MAX_COPIES }, (_, i) => {
    const name = i === 0 ? `${file}.broken` : `${file}.broken.${i}`;
    const stat = statOf(name);
    return { name, inode: stat?.ino, keptMs: stat?.ctimeMs ?? 0 };
  });
const statOf = (file: string) => statSync(file, { throwIfNoEntry: false });

/** The maximum size of a boot id file: a UUID from the kernel. */
const LONGEST = 128;

/**
 * Detects a reboot: after a reboot, or if it cannot be ruled out, plugins' answers are dropped. Error: the result could not
 * be written, which is required before any answer is used.
 */
function invalidateAfterReboot(assignments: DeviceAssignments, bootId: string): Result<null, string> {
  const file = join(assignments.directory, "device-plugins", "boot_id");
  if (bootId !== "" && bootIn(file) === bootId) return ok(null);
  // in this order, a crash between the two only asks plugins again
  const forgotten = assignments.edit(withoutResponses);
  if (!forgotten.ok) return forgotten;
  try {
    ownFolder(dirname(file));
    replaceText(file, `${bootId}\n`);
    return ok(null);
  } catch (error) {
    return err(`state files in ${assignments.directory}: ${(error as Error).message}`);
  }
}

/** The stored boot id; undefined: none, or unreadable. */
function bootIn(file: string): string | undefined {
  try {
    const text = readFileSync(file, "utf8").trim();
    return text.length > LONGEST ? undefined : text;
  } catch {
    return undefined;
  }
}

interface CheckpointMaintenanceDeps {
  readonly assignments: DeviceAssignments;
  readonly files: ManagerFiles;
  readonly clock: Pick<PodClock, "nowMs" | "monotonicMs">;
  /** The machine's boot id; empty: unknown. */
  readonly bootId: string;
}
/** How long an unreadable checkpoint is reported; a new one is written within seconds. */
const STANDS_MS = 10 * 60_000;
const COPIES_MS = 60 * 60_000;

/** Maintains the checkpoint on disk: whether it is from this boot, whether it is written, and copies of unreadable ones. */
export class CheckpointMaintenance {
  readonly #deps: CheckpointMaintenanceDeps;
  readonly #startedMs: number;
  #copiesMs = Number.NEGATIVE_INFINITY;
  /** True: the plugins' answers are from this boot. */
  #isOfThisBoot = false;
  /** Why that is not known; null: it is known. */
  #fault: string | null = null;
  /** A sentence about a checkpoint that could not be read at the start; null: it could be read. */
  readonly broken: string | null;

  /** Sets an unreadable checkpoint aside at once. */
  constructor(deps: CheckpointMaintenanceDeps) {
    this.#deps = deps;
    this.#startedMs = deps.clock.monotonicMs();
    this.broken = backUpUnreadable(deps.assignments);
  }

  /** Why plugins' answers may not be used; null: they may be used. */
  voidAfterReboot(): Result<never, DeviceFault> | null {
    if (this.#isOfThisBoot) return null;
    const settled = invalidateAfterReboot(this.#deps.assignments, this.#deps.bootId);
    this.#isOfThisBoot = settled.ok;
    this.#fault = settled.ok ? null : settled.error;
    return settled.ok ? null : err(checkpointNotWritten(settled.error));
  }
  /** Called once per sync. Returns whether something that could not be written can be written now. */
  run(): boolean {
    const { assignments, files, clock } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#copiesMs >= COPIES_MS) {
      this.#copiesMs = nowMs;
      dropOldCopies(assignments, clock.nowMs());
    }
    return files.tryAgain();
  }
  /** Why no more entries can be stored now; null: they can. */
  whyUnwritten(): DeviceFault | null {
    const why = this.#deps.files.unwritten(DEVICE_CHECKPOINT);
    return why === undefined ? null : checkpointNotWritten(why);
  }

  problems(): readonly Problem[] {
    const { assignments, files, clock } = this.#deps;
    // while the unreadable file still exists, its own problem reports it
    const isReported = assignments.fault() === null && clock.monotonicMs() - this.#startedMs < STANDS_MS;
    const broken = this.broken !== null && isReported ? [this.broken] : [];
    const messages = new Set([...broken, ...files.unwrittenAll(), ...(this.#fault === null ? [] : [this.#fault])]);
    return [...messages].map((message) => ({ from: "state-files", message }));
  }
}
