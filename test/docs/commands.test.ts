import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { run } from "../cli/run.ts";
import { type Command, DOCUMENTS, masked, ROOT, sessionsOf, typeAll } from "./sessions.ts";

/** Whether the printed lines match the document; a line `...` in the document matches any number of lines. */
function isAsShown(shown: readonly string[], printed: readonly string[]): boolean {
  const [first, ...rest] = shown;
  if (first === undefined) return printed.length === 0;
  if (first.trim() !== "...") return printed[0] === first && isAsShown(rest, printed.slice(1));
  return Array.from({ length: printed.length + 1 }, (_, i) => printed.slice(i)).some((left) => isAsShown(rest, left));
}
const linesOf = (lines: readonly string[]): readonly string[] => {
  const all = lines.map(masked);
  while (all.at(-1) === "") all.pop();
  return all;
};
/**
 * The programs, subcommands and flags of a command, all of which its own test has to use; a flag may appear there as
 * the setting of that name.
 */
const wordsOf = (command: string): readonly string[] => {
  const [own = ""] = command.replace(/ #.*/, "").split(" -- ");
  return [
    ...programsOf(own),
    ...(/\b(?:nodewise|wrangler)((?: [a-z]+(?![-\w/.]))+)/.exec(own)?.[1]?.trim().split(" ") ?? []),
    ...(own.match(/(?<= )--[a-z][-a-z]+/g) ?? []),
  ];
};
/**
 * Words that tests need not contain: tests start the program by its launcher, which `npx` and `kubectl` also run, and a
 * test contains no shell builtins.
 */
const NOT_NAMED = new Set(["nodewise", "npx", "kubectl", "run", "export", "cd", "echo"]);
const programsOf = (command: string): readonly string[] =>
  command
    .replaceAll(/'[^']*'|"[^"]*"|\$\([^)]*\)/g, "''")
    .split(/&&|\||;|\n(?!\s)/)
    .flatMap((one) => /^\s*(?:\w+=\S* )*(npm (?:run )?\w+|[\w.-]+)/.exec(one)?.[1]?.split(" ") ?? [])
    .filter((word) => !NOT_NAMED.has(word));
const camelCase = (flag: string): string =>
  flag.replace(/^--/, "").replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
/** The program's commands in sentences, such as `nodewise lint --fail-on error`, without the program's name. */
const inlineIn = (document: string): ReadonlySet<string> =>
  new Set(
    [...readFileSync(join(ROOT, document), "utf8").matchAll(/`(?:npx |kubectl )?nodewise\s([^`]+)`/g)].map(
      ([, words = ""]) => words.replace(/\s+/g, " ").replace(/ (?:--|[>|]) .*/, ""),
    ),
  );
/** The parts of a command line that its own help does not list. */
async function unknownIn(words: string): Promise<readonly string[]> {
  // the cluster options may precede the command
  const own = words.replace(/^(?:-\S+ \S+ )+/, "");
  const [names = ""] = /^(?:[a-z][-a-z]*(?: |$))*/.exec(own) ?? [];
  const { stdout } = await run([...names.trim().split(" "), "--help"]);
  const [, command = "", rest = ""] = /^Usage: nodewise((?: [a-z][-a-z]*)*)(.*)/.exec(stdout) ?? [];
  const further = names.trim().slice(command.trim().length).trim();
  const flags = words.match(/(?<=^| )--?[a-zA-Z][-a-z]*/g) ?? [];
  return [
    ...(further !== "" && (command === "" || rest.endsWith("[command]")) ? [further] : []),
    ...flags.filter((flag) => !new RegExp(`(?<![-\\w])${flag}(?![-\\w])`).test(stdout)),
  ];
}
const all = DOCUMENTS.map((document) => ({ document, sessions: sessionsOf(document) }));

describe("commands in the documents", () => {
  test.each(all.filter(({ sessions }) => sessions.some(({ runBy }) => runBy === null)))(
    "$document: each command prints what is shown below it",
    { timeout: 180_000 },
    async ({ document }) => {
      await typeAll(document, ({ line, text, output }: Command, printed) => {
        const [shown, real] = [linesOf(output), linesOf(printed)];
        if (!isAsShown(shown, real)) expect({ line, text, lines: real }).toEqual({ line, text, lines: shown });
      });
    },
  );
  test.each(
    all.flatMap(({ document, sessions }) =>
      sessions.flatMap(({ line, runBy, commands }) => (runBy === null ? [] : [{ document, line, runBy, commands }])),
    ),
  )("$document:$line is run by $runBy, which compares its output", ({ document, runBy, commands }) => {
    const text = runBy
      .split(" ")
      .map((file) => readFileSync(join(ROOT, file), "utf8"))
      .join("");
    for (const { text: command, output } of commands) {
      for (const word of wordsOf(command))
        expect(
          [word, camelCase(word)].some((one) => text.includes(one)),
          `${runBy} runs ${command}: ${word}`,
        ).toBe(true);
      if (output.every((line) => ["", "..."].includes(line.trim()))) continue;
      for (const word of ["expectAsShown(", JSON.stringify(document), `"${command.split("\n")[0]}`])
        expect(text.includes(word), `${runBy} compares what ${command} prints: ${word}`).toBe(true);
    }
  });
  test("isAsShown finds a differing line, and lets `...` stand for lines only", () => {
    expect(isAsShown(["a", "...", "c"], ["a", "b", "b", "c"])).toBe(true);
    expect(isAsShown(["a", "...", "c"], ["a", "b", "b", "d"])).toBe(false);
    expect(isAsShown(["a"], ["a", "b"])).toBe(false);
  });
  test.each(DOCUMENTS)("%s shows no command without a prompt, which no test would run", (document) => {
    const lines = readFileSync(join(ROOT, document), "utf8").split("\n");
    expect(
      lines.filter((line) => /^\s*(?:nodewise|npx|npm|install|systemctl|ctr|crictl|curl|kubectl) /.test(line)),
    ).toEqual([]);
  });
  test.each(DOCUMENTS)("%s names no unknown command or flag", async (document) => {
    for (const words of inlineIn(document)) expect([words, await unknownIn(words)]).toEqual([words, []]);
  });
  test("unknownIn finds an unknown command or flag", async () => {
    expect(await unknownIn("lint --fail-at error")).toEqual(["--fail-at"]);
    expect(await unknownIn("history shows")).toEqual(["shows"]);
    expect(await unknownIn("decides cgroups")).toEqual(["decides cgroups"]);
  });
  test("the documents contain commands", () => {
    expect(all.flatMap(({ sessions }) => sessions.flatMap(({ commands }) => commands)).length).toBeGreaterThan(30);
  });
});
