import { mkdirSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { err, ok, type Result } from "../../../api/base/result.ts";
import type { ActuatorConfig } from "../../core/config.ts";
import { codeOf, faultText } from "../../core/error-text.ts";
import { claimsDirectory, type Holder, heldClaims, type Lock, takeLock } from "../../core/lock.ts";

const CLAIMED = ["stateDir", "podsDirectory", "podLogsDirectory", "containerLogsDirectory"] as const;
type ClaimedDirectory = (typeof CLAIMED)[number];

/**
 * Claims the directories of pods for this process, with all directories above and below them. Each is claimed by its resolved
 * path and by its inode, which is the same wherever it is mounted. Several daemons may share a runtime: their objects there
 * carry the name of the cgroup root, which is unique on a machine.
 * Errors: who has the directory, and what to do; a directory that cannot be made or read.
 */
export async function claimDirectories(
  config: Pick<ActuatorConfig, ClaimedDirectory>,
  bootId: string,
  claims = claimsDirectory(),
): Promise<Result<Lock, string>> {
  const held: Lock[] = [];
  const release = (): void => {
    for (const lock of held.splice(0)) lock.release();
  };
  try {
    // the first look at the directory fixes which file system the pods' directories are on
    mkdirSync(config.podsDirectory, { recursive: true, mode: 0o750 });
    for (const setting of CLAIMED) {
      for (const root of rootsOf(setting, config[setting])) {
        const lock = await takeLock(claims, root, bootId, (holder) => refusal(setting, config[setting], holder));
        if (lock.ok) held.push(lock.value);
        else release();
        if (!lock.ok) return lock;
      }
    }
    return ok({ release });
  } catch (e) {
    release();
    return err(`directories of pods: ${faultText(e, "write")}`);
  }
}

/** The id of the process that runs pods below exactly this cgroup root and has claimed directories of pods. Null: none is visible. */
export function podsDaemon(cgroupRoot: string, bootId: string, claims = claimsDirectory()): number | null {
  try {
    const held = heldClaims(claims, bootId);
    const podDaemons = new Set(
      held.filter(({ root }) => root.startsWith(`${pathClaim("stateDir")}/`)).map(({ pid }) => pid),
    );
    return held.find(({ root, pid }) => root === cgroupRoot && podDaemons.has(pid))?.pid ?? null;
  } catch {
    return null;
  }
}

const pathClaim = (setting: ClaimedDirectory): string => `/pods-${setting}`;

function rootsOf(setting: ClaimedDirectory, path: string): readonly string[] {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  const inode = stats === undefined ? [] : [`/inode-${setting}/${stats.dev}-${stats.ino}`];
  return [`${pathClaim(setting)}${encodeURI(realPathOf(path))}`, ...inode];
}

/** Resolves a path. A missing path is resolved through the existing directories above it. */
function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT" || dirname(path) === path) throw error;
    return join(realPathOf(dirname(path)), basename(path));
  }
}

function refusal(setting: ClaimedDirectory, path: string, { pid, root, file }: Holder): string {
  const prefix = pathClaim(setting);
  const theirs = root.startsWith(`${prefix}/`) ? decodeURI(root.slice(prefix.length)) : path;
  const where = theirs === path ? "it" : `${theirs}, which is above or below it or the same`;
  return `${setting} ${path}: process ${pid}, another daemon, keeps ${where} (${file}): give each daemon its own ${CLAIMED.join(", ")} and cgroupRoot, or end that process first`;
}
