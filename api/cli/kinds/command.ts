import type { Command } from "commander";
import { ok } from "../../base/result.ts";
import { KINDS } from "../../model/decision.ts";
import { PROFILES } from "../../profiles/index.ts";
import { table } from "../../text/table.ts";
import { type Cli, examples, finish, outputOption } from "../cli.ts";
import { EXIT, type Form, type Outcome, printData, printText } from "../terminal.ts";

export function addKinds(program: Command, cli: Cli): void {
  const command = program
    .command("kinds")
    .summary("List the kinds of decisions")
    .description("List what can be decided.")
    .addOption(outputOption())
    .action(({ output }: { output: Form }) => finish(cli, () => list(cli, output)));
  examples(command, "nodewise kinds", "nodewise kinds -o json");
}

async function list({ terminal }: Cli, output: Form): Promise<Outcome> {
  const { specOf } = await import("../../model/kinds.ts");
  const policyVersions = PROFILES.map(({ policyVersion }) => policyVersion);
  const kinds = KINDS.map((kind) => ({ kind, policyVersions, decides: specOf(kind).decides }));
  if (output !== "table") printData(terminal, kinds, output);
  else {
    const columns = [{ title: "KIND" }, { title: "DECIDES", shrinkTo: 20 }];
    const rows = kinds.map(({ kind, decides }) => ({ cells: [kind, decides] }));
    printText(terminal, table(columns, rows, terminal.columns, terminal.paint));
    printText(terminal, `\nas a kubelet ${PROFILES.map(({ version }) => version).join(", ")} decides\n`);
  }
  return ok(EXIT.ok);
}
