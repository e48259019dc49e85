import { type Command, Option } from "commander";
import { databaseOption, passwordFileOption, withApiAddressOptions } from "../api-options.ts";
import { type Cli, examples, finish, kubeletOption, outputOption } from "../cli.ts";
import { asksCluster, withClusterOptions, withoutEnv } from "../cluster-options.ts";
import type { Outcome } from "../terminal.ts";
import type { LintFlags } from "./lint.ts";
import { LINT_PARTS } from "./lint-input.ts";

const TOUCHED = `
TOUCHED, with a history: the recorded decisions whose own configuration has the same finding (code and field). Of a finding with a patch, those that the patch would have changed; of one without, those whose answer names it, such as a start error, or that would be different without the field. Checked are the newest 1,000 whose snapshot is still stored, as many as there is time for.
`;
const EXIT_CODES = `
Exit codes:
  0  nothing found, or notes only
  1  warnings or errors (with --fail-on error: errors)
  2  bad usage or bad input, such as a file that does not exist or cannot be read; other files are checked all the same
  4  the API, the cluster or the history failed
  5  the kubelet does not start with this configuration`;

/** The kubelet's command line. */
export const argsOption = (): Option =>
  new Option(
    "--kubelet-args <file>",
    "a file with the kubelet's command line, `-` for standard input: `ps -o args`, `systemctl cat kubelet`, kubeadm-flags.env; its flags override --config",
  );

export const configDirOption = (): Option =>
  new Option(
    "--config-dir <dir>",
    "the kubelet's folder of drop-ins (*.conf), which are merged over --config as the kubelet merges them",
  );

export function addLint(program: Command, cli: Cli): void {
  const command = program
    .command("lint")
    .summary("Find mistakes in a KubeletConfiguration")
    .description(
      "Check a KubeletConfiguration (JSON or YAML, `-` for standard input), and the kubelet's flags. The findings are: errors at which the kubelet does not start, in its own words; defaults that are lost because a field was set; settings that conflict, or have no effect. With files of a node, or a node of the history, its sizes, machine and state files are checked too; with a history, each finding says how many recorded decisions it touched.",
    )
    .argument("[files...]", "KubeletConfigurations, each checked by itself; one is the same as --config")
    .option("--config <file>", "KubeletConfiguration, or the kubelet's /configz; absent: that of the snapshot")
    .addOption(configDirOption())
    .addOption(argsOption())
    .option("--snapshot <file>", "a whole NodeSnapshot of the node; the options below replace parts of it");
  for (const { option, what } of LINT_PARTS) command.option(`--${option} <file>`, what);
  withApiAddressOptions(
    withClusterOptions(command)
      .addOption(kubeletOption("for which kubelet version, where the node reports none (default: the newest)"))
      .option("--node-name <name>", "a node of the history: its latest snapshot, and its decisions")
      .addOption(
        new Option("--data-dir <dir>", "where that history is (default: none is read)").env("NODEWISE_DATA_DIR"),
      )
      .addOption(databaseOption())
      .addOption(passwordFileOption()),
  )
    .addOption(outputOption(["table", "json", "yaml", "sarif", "junit", "github"]))
    .option("--json", "the same as -o json")
    .addOption(
      new Option("--fail-on <severity>", "the lowest severity that makes the exit code 1")
        .choices(["error", "warning"])
        .default("warning"),
    )
    .action((paths: readonly string[], given: LintFlags, of: Command) =>
      finish(cli, () => lintOf({ ...given, paths }, of.getOptionValueSource("dataDir") === "env", cli)),
    );
  examples(
    command,
    "nodewise lint kubelet.yaml",
    "nodewise lint nodes/*/kubelet.yaml --kubelet 1.37 -o sarif > lint.sarif",
    "nodewise lint --config kubelet.yaml --kubelet 1.35",
    "nodewise lint --config /var/lib/kubelet/config.yaml --config-dir /etc/kubernetes/kubelet.conf.d",
    "systemctl cat kubelet | nodewise lint --config /var/lib/kubelet/config.yaml --kubelet-args -",
    "nodewise lint --config kubelet.yaml --node node.json --machine epyc-2s-nps4",
    "nodewise lint --config kubelet.yaml --node-name n1 --data-dir /var/lib/nodewise",
    "nodewise lint --node-name n1 --api https://nodewise.example:8787 --token-file token",
    "nodewise lint --context prod",
    "nodewise lint --context prod --node worker-1 --config kubelet.yaml",
    "nodewise lint --config kubelet.yaml --json | jq '.findings[] | select(.fix != null) | .fix'",
  );
  command.addHelpText("after", TOUCHED + EXIT_CODES);
}

async function lintOf(given: LintFlags, usesEnvironment: boolean, cli: Cli): Promise<Outcome> {
  const { node, output: _, failOn: __, paths = [], ...others } = withoutEnv(given, cli);
  const named = { namesObject: node !== undefined, hasFiles: paths.length > 0 || Object.keys(others).length > 0 };
  if (!asksCluster(given, cli, named)) return (await import("./lint.ts")).lint({ ...given, usesEnvironment }, cli);
  return (await import("./lint-cluster.ts")).lintCluster(given, cli);
}
