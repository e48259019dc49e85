import { existsSync } from "node:fs";
import { join } from "node:path";
import { ok, type Result } from "../api/model/result.ts";
import type { ActuatorConfig } from "./config.ts";
import { type JournalError, readLines, renameFile } from "./journal-file.ts";
import { parseRecord } from "./journal-records.ts";

/**
 * The file of a root's journal: `/r/x` -> `journal+r+x.jsonl`, since no root has a `+`. Earlier versions wrote `-`, which
 * `/r-x` has as well: such a file is taken over by the root that its last plan was for, and an observer reads it in its
 * place. Errors: an earlier file that cannot be read.
 */
export function journalFile({
  stateDir,
  cgroupRoot,
  mode,
}: Pick<ActuatorConfig, "stateDir" | "cgroupRoot" | "mode">): Result<string, JournalError> {
  const file = join(stateDir, `journal${cgroupRoot.replaceAll("/", "+")}.jsonl`);
  const earlier = join(stateDir, `journal${cgroupRoot.replaceAll("/", "-")}.jsonl`);
  if (existsSync(file) || !existsSync(earlier)) return ok(file);
  const read = readLines(earlier);
  if (!read.ok) return read;
  const plans = read.value.lines.map(parseRecord).filter((record) => record?.type === "begin");
  if ((plans.at(-1)?.root ?? cgroupRoot) !== cgroupRoot) return ok(file);
  if (mode === "observe") return ok(earlier);
  const renamed = renameFile(earlier, file);
  return renamed.ok ? ok(file) : renamed;
}
