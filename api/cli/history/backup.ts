import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { backupFile, restoreFile } from "../../../db/sqlite/backup.ts";
import { ok } from "../../model/result.ts";
import { historyFile } from "../../server.ts";
import { rfc3339 } from "../../service/timestamp.ts";
import { humanBytes } from "../../text/size.ts";
import { printable } from "../../text/style.ts";
import { shareBar } from "../../text/table.ts";
import { stateHome } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import { EXIT, fault, type Outcome, redrawnLine } from "../terminal.ts";
import { missingHistory } from "./open-history.ts";

export interface BackupFlags {
  readonly dataDir?: string;
}
export interface RestoreFlags extends BackupFlags {
  readonly replace?: boolean;
}
const BAR = 24;

/** `nodewise history backup FILE`: the whole history in one file, beside a running API. */
export async function backup(to: string, { dataDir }: BackupFlags, { env, terminal }: Cli): Promise<Outcome> {
  const file = historyFile(dataDir ?? stateHome(env));
  if (!existsSync(file)) return missingHistory(file);
  const line = redrawnLine(process.stderr);
  const copied = await backupFile(file, to, (share) =>
    line.show(() => `${shareBar(share, BAR)}  ${Math.floor(share * 100)} %`),
  );
  line.clear();
  if (!copied.ok) return fault(EXIT.failed, copied.error.message);
  terminal.write(`${printable(to)}: ${humanBytes(statSync(to).size)}, checked\n`);
  return ok(EXIT.ok);
}

/** `nodewise history restore FILE`: that copy as the history of a data directory. */
export async function restore(from: string, flags: RestoreFlags, { env, terminal }: Cli): Promise<Outcome> {
  const file = historyFile(flags.dataDir ?? stateHome(env));
  if (!existsSync(from)) return fault(EXIT.badInput, `${from}: there is no such file`);
  if (resolve(from) === resolve(file)) return fault(EXIT.badInput, `${from} is the history itself: name a copy of it`);
  const kept = existsSync(file) ? `${file}.replaced-${rfc3339(Date.now()).replace(/[:.]/g, "-")}` : null;
  const restored = await restoreFile(from, file, flags.replace === true ? kept : null);
  if (!restored.ok) return fault(EXIT.failed, restored.error.message);
  terminal.write(`${printable(file)}: restored from ${printable(from)}, ${humanBytes(statSync(file).size)}\n`);
  if (kept !== null) terminal.write(`the history that was there is now ${printable(kept)}\n`);
  return ok(EXIT.ok);
}
