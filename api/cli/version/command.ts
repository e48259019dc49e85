import type { Command } from "commander";
import packageJson from "../../../package.json" with { type: "json" };
import { ok } from "../../base/result.ts";
import { PROFILES } from "../../profiles/index.ts";
import { type Cli, examples, finish, outputOption } from "../cli.ts";
import { policyVersions, VERSION_LINE } from "../program.ts";
import { EXIT, type Form, type Outcome, printData } from "../terminal.ts";

export function addVersion(program: Command, cli: Cli): void {
  const command = program
    .command("version")
    .summary("Print the version, and the kubelet versions that it knows")
    .description("Print the version of the program, and the kubelet versions that it can answer as.")
    .addOption(outputOption())
    .action(({ output }: { output: Form }) => finish(cli, async () => version(output, cli)));
  examples(command, "nodewise version", "nodewise version -o json");
}

function version(output: Form, { terminal }: Cli): Outcome {
  const kubelets = PROFILES.map((profile) => profile.version);
  const data = { version: packageJson.version, kubelets, policyVersions, node: process.versions.node };
  if (output === "table") terminal.write(`${VERSION_LINE}\n`);
  else printData(terminal, data, output);
  return ok(EXIT.ok);
}
