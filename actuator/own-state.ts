import { err, ok, type Result } from "../api/model/result.ts";
import type { Hierarchy } from "./cgroupfs/hierarchy.ts";
import type { ActuatorConfig } from "./config.ts";
import { ownFolder } from "./folder.ts";
import { Journal } from "./journal.ts";
import { journalFile } from "./journal-name.ts";
import { claimsDirectory, type Lock, takeLock } from "./lock.ts";
import { type Recovery, recover } from "./recover.ts";

export interface StateOptions {
  readonly config: Pick<ActuatorConfig, "stateDir" | "cgroupRoot" | "mode">;
  readonly onRecovery: (recovery: Recovery) => void;
}
export interface OwnState {
  readonly journal: Journal;
  /** Null in mode observe, which writes nothing. */
  readonly lock: Lock | null;
}

/**
 * The actuator's own files: the journal, mended, and the lock of who enforces. INVARIANT: the lock is held before the
 * journal is read. Errors: the directory cannot be used, another daemon holds the lock, a plan cannot be undone.
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
    return err(`state directory ${stateDir}: ${(e as Error).message}: name another with --state-dir`);
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
  const mended = hierarchy === null ? ok(undefined) : await mend(journal.value, hierarchy, bootId, options);
  return mended.ok ? journal : mended;
}

/** An observer writes nothing, not even to mend: the plan stays open for the daemon that enforces. */
async function mend(
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
