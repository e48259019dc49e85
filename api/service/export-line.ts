import { err, ok, type Result } from "../base/result.ts";
import { issuesOf } from "../model/decode.ts";
import {
  EXPORT_FORMAT,
  type ExportEnd,
  type ExportHeader,
  type ExportRow,
  exportEndForm,
  exportHeaderForm,
  exportRowForm,
} from "../model/export-row.ts";

export type ExportLine = ExportHeader | ExportRow | ExportEnd;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** A line of an exported history. Errors: one line that says what is wrong with it. */
export function readExportLine(bytes: Uint8Array): Result<ExportLine, string> {
  let value: unknown;
  try {
    value = JSON.parse(utf8.decode(bytes));
  } catch {
    return err("it is no JSON");
  }
  const type = (value as { readonly type?: unknown } | null)?.type;
  const form = type === "nodewise-history" ? exportHeaderForm : type === "end" ? exportEndForm : exportRowForm;
  const read = form.safeParse(value);
  if (!read.success) {
    const [issue] = issuesOf(read.error, value, "");
    return err(`${issue?.path}: ${issue?.message}`);
  }
  return ok(read.data);
}

/** Checks the first line. Errors: it is no header, or its form is newer than this program. */
export function checkExportHeader(line: ExportLine): Result<ExportHeader, string> {
  if (line.type !== "nodewise-history") return err("it is not the first line of an exported history: export it again");
  if (line.formatVersion > EXPORT_FORMAT)
    return err(
      `it was written by nodewise ${line.version} in form ${line.formatVersion}, and this one reads up to ${EXPORT_FORMAT}: upgrade nodewise where it is imported`,
    );
  return ok(line);
}
