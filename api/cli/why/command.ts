import type { Command } from "commander";
import { withHistoryOptions } from "../api-options.ts";
import { type Cli, examples, finish, outputOption } from "../cli.ts";
import { withClusterOptions } from "../cluster-options.ts";
import type { WhyFlags } from "./why.ts";

const EXIT_CODES = `
Exit codes:
  0  no problem was found in what was read
  1  a problem was found
  2  bad usage or bad input: no such pod, or documents that contradict each other
  4  the API or the history failed`;

export function addWhy(program: Command, cli: Cli): void {
  const command = withHistoryOptions(
    program
      .command("why")
      .summary("Explain why a pod was evicted, refused, throttled or restarted, or why it waits")
      .description(
        "Why a pod is in its state: the findings and since when, the decision behind them with its numbers, what would change it, and which pod is next. Documents are recognised by their content, on standard input too: pods, nodes, events and lists of them, /configz, /stats/summary, cpu.stat, what crictl prints, NodeSnapshots and decisions. Without a pod it lists all pods with a problem, the worst first.",
      )
      .argument("[pod...]", "NAME, NAMESPACE/NAME or uid; pod/NAME; deploy/NAME: its pod with the worst finding")
      .option("-n, --namespace <namespace>", "the pod's namespace (default: any; with a cluster that of the context)")
      .option("-A, --all-namespaces", "with a cluster: pods of all namespaces")
      .option(
        "-f, --filename <file...>",
        "documents, JSON or YAML, `-` for standard input (the default if something is piped in)",
      ),
  );
  withClusterOptions(command)
    .option("--api <url>", "ask this API's history instead")
    .option("--token-file <file>", "file with the token for --api (or set NODEWISE_TOKEN)")
    .option("--node <name>", "only this node, from the history")
    .addOption(outputOption())
    .action((words: readonly string[], given: WhyFlags) =>
      finish(cli, async () => {
        const isAsked =
          command.getOptionValueSource("dataDir") === "cli" || (given.database ?? given.api) !== undefined;
        return (await import("./why.ts")).why(words, given, isAsked, cli);
      }),
    );
  examples(
    command,
    "nodewise why web-0 -n shop --context prod",
    "nodewise why deploy/web -n shop --context prod",
    "nodewise why -A --context prod",
    "kubectl get pods,nodes,events -A -o json | nodewise why web-0 -n shop",
    "nodewise why shop/web-0 -f pods.json events.json node.json summary.json configz.json",
    "kubectl exec web-0 -- cat /sys/fs/cgroup/cpu.stat | nodewise why web-0 -f pod.json -",
    "kubectl get pods,nodes,events -A -o json | nodewise why",
    "nodewise why shop/web-0 --api http://127.0.0.1:8787 -o json",
  );
  command.addHelpText("after", EXIT_CODES);
}
