import { expect } from "vitest";
import { type Command, sessionsOf } from "./sessions.ts";

/** Times, ids, numbers and bars differ in each run and are masked. The name of a pod contains its node's name. */
const MASKS: readonly (readonly [RegExp, string])[] = [
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, "TIME"],
  [/\bcontainerd \d\S*/g, "containerd VERSION"],
  [/(?:unix:\/\/)?\/(?:tmp|dev\/shm|run|etc|var\/lib)\/\S*?(?=[,):;]*(?:\s|$))/g, "PATH"],
  [/\b(?:sha256:)?(?=[0-9a-f]*\d)[0-9a-f]{12,}\b/g, "ID"],
  [/[█▏▎▍▌▋▊▉╎│▒·]{4,}/g, "BAR"],
  [/\b(?:\d+(?:\.\d+)?(?:ms|[dhms]))+\b/g, "N"],
  [/\d+(?:\.\d+)?(?: (?:[KMG]iB|ms|s)\b)?/g, "N"],
  [/\s+/g, " "],
  // the age is absent in the second in which a pass ran
  [/ · cgroups N ago:/g, ","],
];
const shapeOf = (text: string): string =>
  MASKS.reduce((masked, [pattern, word]) => masked.replace(pattern, word), text).trim();

/** The command in the document with this text after its prompt. */
function commandIn(document: string, text: string): Command {
  const commands = sessionsOf(document).flatMap(({ runBy, commands }) => (runBy === null ? [] : commands));
  const found = commands.find((command) => command.text === text);
  if (found === undefined) throw new Error(`${document} has no command \`${text}\` that a test of its own runs`);
  return found;
}

/**
 * Fails if a command that needs a daemon, containers or plugins did not print what the document shows below it. A line
 * `...` in the document matches any number of lines.
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
