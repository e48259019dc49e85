import { type Command, Option } from "commander";
import { EXIT, type Outcome } from "./exit.ts";
import type { Terminal } from "./terminal.ts";

/** What every command gets from the process. */
export interface Cli {
  readonly terminal: Terminal;
  readonly env: Readonly<Record<string, string | undefined>>;
}

const MAX_LINES = 20;

/** Runs a command's work and turns its end into lines on standard error and the exit code. */
export async function finish({ terminal }: Cli, work: () => Promise<Outcome>): Promise<void> {
  // Work that never settles ends the process all the same, and must not look done.
  process.exitCode = EXIT.failed;
  try {
    const outcome = await work();
    process.exitCode = outcome.ok ? outcome.value : outcome.error.exit;
    const lines = outcome.ok ? [] : outcome.error.lines;
    for (const line of lines.slice(0, MAX_LINES)) terminal.warn(`nodewise: ${line}`);
    if (lines.length > MAX_LINES) terminal.warn(`nodewise: and ${lines.length - MAX_LINES} more like these`);
  } catch (error) {
    process.exitCode = reportCrash(terminal, error);
  }
}

/** Nothing a person types ends here, except that packages are missing. */
export function reportCrash(terminal: Terminal, thrown: unknown): number {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  const code = "code" in error ? error.code : undefined;
  if (code === "ERR_MODULE_NOT_FOUND" || code === "ERR_DLOPEN_FAILED") {
    const [what] = error.message.split("\n");
    terminal.warn(`nodewise: a package is missing or not made for this machine (${what}): run \`npm install\` again`);
    return EXIT.cannotRun;
  }
  terminal.warn(`nodewise: internal error: ${error.message}; please report it with these lines`);
  for (const line of (error.stack ?? "").split("\n").slice(1)) terminal.warn(line);
  return EXIT.failed;
}

/** `-o table|json|yaml`. */
export const outputOption = (choices: readonly string[] = ["table", "json", "yaml"]): Option =>
  new Option("-o, --output <form>", "how to print the answer").choices(choices).default(choices[0]);

export const examples = (command: Command, ...lines: readonly string[]): Command =>
  command.addHelpText("after", `\nExamples:\n${lines.map((line) => `  ${line}`).join("\n")}`);
