import { createReadStream, readFileSync } from "node:fs";
import { err, ok, type Result } from "../../api/base/result.ts";
import type { ProblemCode, ReadProblem } from "../../api/documents/problem.ts";
import { missingRight } from "./error-text.ts";

/**
 * The text of a file or stream, UTF-8 with or without a mark, of at most `maxBytes`. Errors: not-found, not-a-file,
 * unreadable, too-large, not-text.
 */
export async function readText(
  source: string | AsyncIterable<Buffer>,
  file: string,
  maxBytes: number,
): Promise<Result<string, ReadProblem>> {
  const fail = (code: ProblemCode, message: string) => err({ code, file, message });
  const chunks: Buffer[] = [];
  let total = 0;
  try {
    // one byte beyond the limit distinguishes a file that is too large from one that just fits
    const stream = typeof source === "string" ? createReadStream(source, { end: maxBytes }) : source;
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      total += chunk.length;
      if (total > maxBytes) return fail("too-large", `is larger than ${maxBytes} bytes: split it`);
      chunks.push(chunk);
    }
  } catch (error) {
    return fail(...reasonOf(error as NodeJS.ErrnoException));
  }
  try {
    return ok(new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks, total)));
  } catch {
    return fail("not-text", "is not UTF-8 text: expected YAML or JSON");
  }
}

export function reasonOf(error: NodeJS.ErrnoException): [ProblemCode, string] {
  switch (error.code) {
    case "ENOENT":
    case "ENOTDIR":
      return ["not-found", "no such file: check the path"];
    case "EISDIR":
      return ["not-a-file", "is a directory: name a file in it"];
    default:
      return [
        "unreadable",
        `cannot be read (${error.code ?? error.message})${missingRight(error, "read") || ": check its permissions"}`,
      ];
  }
}

/** A small file, such as one of /proc; empty if it cannot be read. */
export function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
