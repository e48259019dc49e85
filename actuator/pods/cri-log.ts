import { readTail } from "./file-tail.ts";

/** What the kubelet shows of a log in a container's last words. */
const MOST_LINES = 80;
const MOST_BYTES = 2048;
/** More than these lines take in a runtime that breaks lines at 16 KiB. */
const LOOK_AT = 64 * 1024;
/** `2026-01-01T00:00:00.000000000Z stdout F text`; P is a part, which the next line continues. */
const LINE = /^\S+ (?:stdout|stderr) ([FP])\S* /;

/**
 * The end of a container's log in CRI's format, both streams, without times: at most 80 lines and 2048 bytes. Throws
 * what the system answers. kubelet 1.36: readLastStringFromContainerLogs.
 */
export function lastOfLog(path: string): string {
  const { bytes, isCut } = readTail(path, LOOK_AT);
  const lines = splitLines(bytes);
  // the first one lacks its beginning; where it is the only one, nothing but its text is there
  const texts =
    isCut && lines.length === 1
      ? lines
      : lines
          .slice(isCut ? 1 : 0)
          .slice(-MOST_LINES)
          .map(textOf);
  return Buffer.concat(texts).subarray(-MOST_BYTES).toString("utf8");
}

/** Each with its line feed; bytes, since a part may end within a character. */
function splitLines(bytes: Buffer): readonly Buffer[] {
  const lines: Buffer[] = [];
  for (let from = 0; from < bytes.length; ) {
    const feed = bytes.indexOf(0x0a, from);
    const to = feed < 0 ? bytes.length : feed + 1;
    lines.push(bytes.subarray(from, to));
    from = to;
  }
  return lines;
}

/** A line of another form is nobody's output. */
function textOf(line: Buffer): Buffer {
  const head = LINE.exec(line.subarray(0, 128).toString("latin1"));
  if (head === null) return Buffer.alloc(0);
  const isPart = head[1] === "P" && line.at(-1) === 0x0a;
  return line.subarray(head[0].length, isPart ? -1 : undefined);
}
