import type { Command } from "commander";
import { type Cli, examples, finish } from "../cli.ts";
import type { ManFlags } from "./man.ts";

export function addMan(program: Command, cli: Cli): void {
  const command = program
    .command("man")
    .summary("Print the man page of a command")
    .description("Print the man page of a command, in roff; or write those of all commands into a directory.")
    .argument("[command...]", "such as decide eviction; without it: the program's own page")
    .option("--dir <dir>", "write a page for each command there, such as /usr/local/share/man/man1")
    .action((path: readonly string[], given: ManFlags) =>
      finish(cli, async () => (await import("./man.ts")).man(path, given, program, cli)),
    );
  examples(command, "nodewise man decide eviction | man -l -", "nodewise man --dir ~/.local/share/man/man1");
}
