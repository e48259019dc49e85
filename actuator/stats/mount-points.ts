import { readFileSync } from "node:fs";

/** Where something is mounted, of proc_pid_mountinfo(5); nothing where that cannot be read. */
export function mountPoints(mountinfo = "/proc/self/mountinfo"): ReadonlySet<string> {
  let text: string;
  try {
    text = readFileSync(mountinfo, "utf8");
  } catch {
    return new Set();
  }
  return new Set(text.split("\n").flatMap((line) => withoutEscapes(line.split(" ", 5)[4])));
}

/** Blanks and backslashes are octal there. */
const withoutEscapes = (path: string | undefined): readonly string[] =>
  path === undefined
    ? []
    : [path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))];
