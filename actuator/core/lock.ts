import { randomUUID } from "node:crypto";
import { accessSync, closeSync, constants, openSync, readdirSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { err, ok, type Result } from "../../api/base/result.ts";
import { faultText } from "./error-text.ts";
import { textOf } from "./read-text.ts";
import { remove } from "./record-file.ts";

/** A lock held by the one daemon that may write below a cgroup root; `release` releases it. */
export interface Lock {
  release(): void;
}

/** The process that has a conflicting claim. */
export interface Holder {
  readonly file: string;
  readonly pid: number;
  readonly root: string;
}
interface Claim extends Holder {
  /** False: the owner is still checking whether it may take the root. */
  readonly isHeld: boolean;
}

const NAME = /^nodewise-claim-[0-9a-f-]{36}\.lock$/;
const ROUNDS = 100;
const ROUND_MS = 20;

/** The directory belongs to the machine, not to a state directory: only one process may write below a root. */
export function claimsDirectory(): string {
  try {
    accessSync("/run", constants.W_OK);
    return "/run";
  } catch {
    return tmpdir();
  }
}

/**
 * Claims a cgroup root, with everything above and below it, for this process. Each process writes its own claim and
 * then reads the others': the later of two processes sees the earlier one, and no process removes a file that another
 * may still use. If two processes claim at the same moment, the smaller name wins. Claims of processes that have ended, or of another boot, do not
 * count; a process that is being killed is awaited for two seconds. Errors: who has claimed the root, or one above or below
 * it; the directory cannot be written. `root` has no white space. `refused`: the error text if the claim is not for a
 * cgroup root.
 */
export async function takeLock(
  directory: string,
  root: string,
  bootId: string,
  refused: (holder: Holder, requested: string) => string = refusal,
): Promise<Result<Lock, string>> {
  const file = join(directory, `nodewise-claim-${randomUUID()}.lock`);
  try {
    writeFileSync(file, `? ${process.pid} ${startOf(process.pid) ?? ""} ${bootId} ${root}\n`, {
      mode: 0o644,
      flag: "wx",
    });
    for (let round = 0; round < ROUNDS; round++) {
      const others = liveClaims(directory, bootId).filter((one) => one.file !== file && overlap(one.root, root));
      const winner = others.find(({ isHeld }) => isHeld) ?? others.find((one) => one.file < file);
      if (winner !== undefined && !(round < ROUNDS - 1 && isDying(winner.pid)))
        return give(file, refused(winner, root));
      if (others.length === 0) {
        markHeld(file);
        return ok({ release: () => remove(file) });
      }
      await sleep(ROUND_MS);
    }
    return give(file, `cgroup root ${root}: other processes take it at the same time: start again`);
  } catch (e) {
    return give(file, `lock ${file}: ${faultText(e, "write")}`);
  }
}

function give(file: string, why: string): Result<never, string> {
  remove(file);
  return err(why);
}

function refusal({ pid, root, file }: Holder, requested: string): string {
  const side = inside(requested, root) ? "inside" : "around";
  const where = root === requested ? "here" : `below cgroup root ${root}, and ${requested} lies ${side} it`;
  return `process ${pid} already writes ${where} (${file}): end it first`;
}

const overlap = (a: string, b: string): boolean => inside(a, b) || inside(b, a);
const inside = (path: string, root: string): boolean => `${path}/`.startsWith(root === "/" ? root : `${root}/`);

/** Overwrites one byte, so readers never see a missing or partial claim. */
function markHeld(file: string): void {
  const handle = openSync(file, "r+");
  try {
    writeSync(handle, "+", 0);
  } finally {
    closeSync(handle);
  }
}

/** Claims that processes of this boot hold now. */
export const heldClaims = (directory: string, bootId: string): readonly Holder[] =>
  liveClaims(directory, bootId).filter(({ isHeld }) => isHeld);

/** Claims of running processes. Claims that ended processes left are removed; nobody writes those again. */
function liveClaims(directory: string, bootId: string): readonly Claim[] {
  const claims: Claim[] = [];
  for (const name of readdirSync(directory).filter((one) => NAME.test(one))) {
    const file = join(directory, name);
    const found = /^([+?]) (\d+) (\d*) (\S*) (\/\S*)\n$/.exec(textOf(file));
    // half written: its owner has not looked yet, and will see our claim
    if (found === null) continue;
    const [, state, pid, start, boot, root = "/"] = found;
    if (boot === bootId && startOf(Number(pid)) === start)
      claims.push({ file, isHeld: state === "+", pid: Number(pid), root });
    else remove(file);
  }
  return claims;
}

/** Clock ticks since boot at which the process started; undefined when it does not run. proc(5), fields 3 and 22 of stat. */
function startOf(pid: number): string | undefined {
  const stat = textOf(`/proc/${pid}/stat`);
  const [state, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  // an ended process holds nothing, so nobody must wait for it
  return state === "Z" || state === "X" ? undefined : fields[18];
}

/** Whether a process is certain to die: SIGKILL is pending, or it is exiting. proc(5), field 9 of stat. */
function isDying(pid: number): boolean {
  const stat = textOf(`/proc/${pid}/stat`);
  const flags = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[6]);
  const pending = textOf(`/proc/${pid}/status`).matchAll(/^(?:SigPnd|ShdPnd):\s*([0-9a-f]+)$/gm);
  return (flags & PF_EXITING) !== 0 || [...pending].some(([, mask]) => (BigInt(`0x${mask}`) & SIGKILL) !== 0n);
}
/** Linux: include/linux/sched.h. */
const PF_EXITING = 0x4;
/** Signal 9 in a mask. */
const SIGKILL = 1n << 8n;
