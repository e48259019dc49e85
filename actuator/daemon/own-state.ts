import { err, ok, type Result } from "../../api/base/result.ts";
import { Journal, journalFile, type Recovery, recover } from "../apply/journal.ts";
import type { Hierarchy } from "../cgroupfs/hierarchy.ts";
import type { ActuatorConfig } from "../core/config.ts";
import { faultText } from "../core/error-text.ts";
import type { Problem } from "../core/interfaces.ts";
import { claimsDirectory, type Lock, takeLock } from "../core/lock.ts";
import { ownFolder, unwritable } from "../core/record-file.ts";

interface StateOptions {
  readonly config: Pick<ActuatorConfig, "stateDir" | "cgroupRoot" | "mode">;
  readonly onRecovery: (recovery: Recovery) => void;
}
interface OwnState {
  readonly journal: Journal;
  /** The lock; null in mode observe, which writes nothing. */
  readonly lock: Lock | null;
}

/** The age up to which an answer about their being writable is reused. */
const CHECK_INTERVAL_MS = 2000;

/** Checks on request, at most every 2 seconds, that the daemon's own files can be written. */
export class StateFileCheck {
  readonly #directories: readonly string[];
  readonly #files: readonly string[];
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  #faults: readonly string[] = [];

  /** `directories`: in which files are replaced. `journal`: null if no cgroup is written. */
  constructor(directories: readonly string[], journal: Pick<Journal, "file"> | null) {
    this.#directories = directories;
    this.#files = journal === null ? [] : [journal.file];
  }

  /** `PATH: system error` for each file that cannot be written. */
  faults(): readonly string[] {
    if (performance.now() - this.#checkedAtMs >= CHECK_INTERVAL_MS) {
      this.#faults = unwritable(this.#directories, this.#files);
      this.#checkedAtMs = performance.now();
    }
    return this.#faults;
  }

  /** One problem for all files, since they usually fail for the same cause. */
  problems(): readonly Problem[] {
    const [first, ...others] = this.faults();
    if (first === undefined) return [];
    const more = others.length === 0 ? "" : ` (/readyz names ${others.length} more of its files and directories)`;
    const message = `${first}${more}: what a crash must not forget cannot be kept, and the daemon is not ready; make room or rights there`;
    return [{ from: "state", message }];
  }
}

/**
 * Opens the actuator's own files: the recovered journal, and the lock of the enforcing daemon. INVARIANT: the lock is held before
 * the journal is read. Errors: the directory cannot be used, another daemon holds the lock, a plan cannot be undone.
 */
export async function openState(
  options: StateOptions,
  hierarchy: Hierarchy | null,
  bootId: string,
): Promise<Result<OwnState, string>> {
  const { stateDir, cgroupRoot, mode } = options.config;
  try {
    ownFolder(stateDir);
  } catch (e) {
    return err(`state directory ${stateDir}: ${faultText(e, "write")}: name another with --state-dir`);
  }
  const lock = mode === "enforce" ? await takeLock(claimsDirectory(), cgroupRoot, bootId) : ok(null);
  if (!lock.ok) return lock;
  const journal = await openJournal(hierarchy, bootId, options);
  if (journal.ok) return ok({ journal: journal.value, lock: lock.value });
  lock.value?.release();
  return journal;
}

async function openJournal(
  hierarchy: Hierarchy | null,
  bootId: string,
  options: StateOptions,
): Promise<Result<Journal, string>> {
  const file = journalFile(options.config);
  if (!file.ok) return err(file.error.message);
  const journal = Journal.open(file.value, bootId);
  if (!journal.ok) return err(journal.error.message);
  const recovered =
    hierarchy === null ? ok(undefined) : await recoverJournal(journal.value, hierarchy, bootId, options);
  return recovered.ok ? journal : recovered;
}

/** An observer writes nothing, not even to mend: the plan stays open for the daemon that enforces. */
async function recoverJournal(
  journal: Journal,
  hierarchy: Hierarchy,
  bootId: string,
  options: StateOptions,
): Promise<Result<undefined, string>> {
  if (options.config.mode === "observe") return ok(undefined);
  const recovery = await recover(journal, hierarchy, bootId);
  if (recovery.outcome !== "nothing") options.onRecovery(recovery);
  if (recovery.outcome === "other_root") {
    return err(
      `an unfinished plan of cgroup root ${recovery.plan?.root} must be undone first: start once with that root`,
    );
  }
  return recovery.journalError === null ? ok(undefined) : err(recovery.journalError.message);
}
