import { type Command, Option } from "commander";
import { AGREEMENT_VERDICTS, OUTCOME_KINDS } from "../../model/outcome.ts";
import { withHistoryOrApiOptions } from "../api-options.ts";
import { type Cli, examples, finish, limitOption, outputOption, reasonOption } from "../cli.ts";
import type { AgreementFlags } from "./agreement.ts";

const EXIT_CODES = `
Exit codes:
  0  nothing differs, or nothing could be compared
  1  something differs
  2  bad usage or bad input
  4  the API or the history failed`;

export function addAgreement(program: Command, cli: Cli): void {
  const command = withHistoryOrApiOptions(
    program
      .command("agreement")
      .summary("Count how often decisions agree with what the kubelets did")
      .description(
        "Compare the outcomes of kubelets (admissions, evictions, preemptions, conditions, resizes, restarts by probes, removed images) with the decisions on the last snapshot before each: counts by kind, and both sides of each difference. `nodewise collect` reports the outcomes.",
      )
      .addOption(
        new Option("--since <time>", "from this time: RFC 3339, or a duration back from now such as 24h").default("7d"),
      )
      .option("--until <time>", "until this time: RFC 3339, or a duration back from now such as 24h")
      .option("--node <name>", "only this node")
      .addOption(new Option("--kind <kind>", "only this kind").choices(OUTCOME_KINDS))
      .addOption(reasonOption("OutOfcpu or Evicted", true))
      .option("--pod <pod>", "only this pod: uid, namespace/name, or name")
      .option("-n, --namespace <namespace>", "only pods of this namespace")
      .addOption(
        new Option(
          "--verdict <verdict>",
          "list those with this verdict (default: differs; all with --reason, --pod, --namespace, or as CSV)",
        ).choices([...AGREEMENT_VERDICTS, "all"]),
      )
      .addOption(limitOption()),
  )
    .addOption(outputOption(["table", "json", "yaml", "csv"]))
    .action((given: AgreementFlags) => finish(cli, async () => (await import("./agreement.ts")).agreement(given, cli)));
  examples(
    command,
    "nodewise agreement --since 30d",
    "nodewise agreement --reason OutOfcpu --since 12h --limit 10000 -o csv",
    "nodewise agreement --kind eviction --verdict not-comparable --limit 5",
    "nodewise agreement --node n1 --api https://nodewise.example:8787 --token-file token",
  );
  command.addHelpText("after", EXIT_CODES);
}
