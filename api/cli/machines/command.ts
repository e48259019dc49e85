import type { Command } from "commander";
import { type Cli, examples, finish, outputOption } from "../cli.ts";
import type { Form } from "../terminal.ts";

export function addMachines(program: Command, cli: Cli): void {
  const command = program
    .command("machines")
    .summary("List the machine types that a what-if can name")
    .description(
      "List the machines that `decide --machine NAME` knows; with a name, show that machine, or print its data to change and use.",
    )
    .argument("[name]", "one of them")
    .addOption(outputOption())
    .action((name: string | undefined, { output }: { readonly output: Form }) =>
      finish(cli, async () => (await import("./machines.ts")).showMachines(name, output, cli.terminal)),
    );
  examples(
    command,
    "nodewise machines",
    "nodewise machines epyc-2s-nps4",
    "nodewise machines xeon-2s -o json > machine.json",
    "nodewise decide topology --machine xeon-2s --policy restricted --pod pod.yaml",
  );
}
