import { expect } from "vitest";
import { type Command, sessionsOf } from "./sessions.ts";

/** A node is another one in each run: its times, ids, numbers and bars are masked. A pod's node stands in its name. */
const MASKS: readonly (readonly [RegExp, string])[] = [
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, "TIME"],
  [/\bcontainerd \d\S*/g, "containerd VERSION"],
  [/(?:unix:\/\/)?\/(?:tmp|dev\/shm|run|etc|var\/lib)\/\S*?(?=[,):;]*(?:\s|$))/g, "PATH"],
  [/\b(?:sha256:)?(?=[0-9a-f]*\d)[0-9a-f]{12,}\b/g, "ID"],
  [/[█▏▎▍▌▋▊▉╎│▒·]{4,}/g, "BAR"],
  [/\b(?:\d+(?:\.\d+)?(?:ms|[dhms]))+\b/g, "N"],
  [/\d+(?:\.\d+)?(?: (?:[KMG]iB|ms|s)\b)?/g, "N"],
  [/\s+/g, " "],
  // a pass of this very second has no age
  [/ · cgroups N ago:/g, ","],
];
const shapeOf = (text: string): string =>
  MASKS.reduce((masked, [pattern, word]) => masked.replace(pattern, word), text).trim();

/** The command as it stands in the document, after its prompt. */
function commandIn(document: string, text: string): Command {
  const commands = sessionsOf(document).flatMap(({ runBy, commands }) => (runBy === null ? [] : commands));
  const found = commands.find((command) => command.text === text);
  if (found === undefined) throw new Error(`${document} has no command \`${text}\` that a test of its own runs`);
  return found;
}

/**
 * Fails where a command that needs a daemon, containers or plugins printed another thing than the document shows below it.
 * A line `...` stands for any number of lines.
 */
export function expectAsShown(document: string, text: string, printed: string): void {
  const parts = commandIn(document, text)
    .output.join("\n")
    .split(/^\s*\.\.\.$/m)
    .map(shapeOf);
  let left = shapeOf(printed);
  for (const [i, part] of parts.entries()) {
    const at = i === parts.length - 1 ? left.length - part.length : left.indexOf(part);
    if (at < 0 || (i === 0 && at > 0) || !left.startsWith(part, at)) expect(left, `${document}: ${text}`).toBe(part);
    left = left.slice(at + part.length);
  }
}
