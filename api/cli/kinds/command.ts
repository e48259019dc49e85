import type { Command } from "commander";
import { KINDS } from "../../model/decision.ts";
import { ok } from "../../model/result.ts";
import { NEWEST } from "../../profiles/index.ts";
import { table } from "../../text/table.ts";
import { type Cli, examples, finish, outputOption } from "../cli.ts";
import { EXIT, type Form, type Outcome, printData } from "../terminal.ts";

export function addKinds(program: Command, cli: Cli): void {
  const command = program
    .command("kinds")
    .description("List what can be decided.")
    .addOption(outputOption())
    .action(({ output }: { output: Form }) => finish(cli, () => list(cli, output)));
  examples(command, "nodewise kinds", "nodewise kinds -o json");
}

async function list({ terminal }: Cli, output: Form): Promise<Outcome> {
  const { specOf } = await import("../../model/kinds.ts");
  const { policyVersion } = NEWEST;
  const kinds = KINDS.map((kind) => ({ kind, policyVersion, decides: specOf(kind).decides }));
  if (output !== "table") printData(terminal, kinds, output);
  else {
    const columns = [{ title: "KIND" }, { title: "DECIDES", shrinkTo: 20 }, { title: "POLICY", giveUp: 1 }];
    const rows = kinds.map(({ kind, decides }) => ({ cells: [kind, decides, policyVersion] }));
    terminal.write(table(columns, rows, terminal.columns, terminal.paint));
  }
  return ok(EXIT.ok);
}
