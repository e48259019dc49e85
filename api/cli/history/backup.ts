import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { storeAt } from "../../../db/open/node.ts";
import { ok } from "../../base/result.ts";
import { rfc3339 } from "../../service/timestamp.ts";
import { humanBytes } from "../../text/size.ts";
import { printable } from "../../text/style.ts";
import { shareBar } from "../../text/table.ts";
import { storeSetting } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import { missingHistory } from "../inputs/open-history.ts";
import { EXIT, fault, type Outcome, redrawnLine } from "../terminal.ts";

export interface BackupFlags {
  readonly dataDir?: string;
}
export interface RestoreFlags extends BackupFlags {
  readonly replace?: boolean;
}
const BAR = 24;

/** `nodewise history backup FILE`: the whole history in one file, while an API may run. */
export async function backup(to: string, given: BackupFlags, cli: Cli): Promise<Outcome> {
  const setting = storeSetting(given, cli);
  if (!setting.ok) return setting;
  const location = storeAt(setting.value);
  if (!location.exists()) return missingHistory(location.label);
  const line = redrawnLine(process.stderr);
  const copied = await location.backup(to, (share) =>
    line.show(() => `${shareBar(share, BAR)}  ${Math.floor(share * 100)} %`),
  );
  line.clear();
  if (!copied.ok) return fault(EXIT.failed, copied.error.message);
  cli.terminal.write(`${printable(to)}: ${humanBytes(statSync(to).size)}, checked\n`);
  return ok(EXIT.ok);
}

/** `nodewise history restore FILE`: replaces the history by a backup. */
export async function restore(from: string, given: RestoreFlags, cli: Cli): Promise<Outcome> {
  const setting = storeSetting(given, cli);
  if (!setting.ok) return setting;
  const location = storeAt(setting.value);
  const { label } = location;
  if (!existsSync(from)) return fault(EXIT.badInput, `${from}: there is no such file`);
  if (resolve(from) === resolve(label)) return fault(EXIT.badInput, `${from} is the history itself: name a copy of it`);
  const kept = location.exists() ? `${label}.replaced-${rfc3339(Date.now()).replace(/[:.]/g, "-")}` : null;
  const restored = await location.restore(from, given.replace === true ? kept : null);
  if (!restored.ok) return fault(EXIT.failed, restored.error.message);
  cli.terminal.write(`${printable(label)}: restored from ${printable(from)}, ${humanBytes(statSync(from).size)}\n`);
  if (kept !== null) cli.terminal.write(`the history that was there is now ${printable(kept)}\n`);
  return ok(EXIT.ok);
}
