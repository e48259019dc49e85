import { ok, type Result } from "../../base/result.ts";
import { type ClusterFault, clusterFaultText } from "../../cluster/fault.ts";
import type { LintFinding } from "../../decide/lint/finding.ts";
import { otherProfileReason, type ProfileNote } from "../../profiles/index.ts";
import { many, namesText } from "../../text/sentences/words.ts";
import { assumedLine } from "../../text/style.ts";
import type { Cli } from "../cli.ts";
import { withoutEnv } from "../cluster-options.ts";
import { type ClusterNode, eachClusterNode, readClusterNode, rightsText, withCluster } from "../inputs/cluster-node.ts";
import { EXIT, type Fault, fault, type Outcome, printData, printText, type Terminal } from "../terminal.ts";
import { exitOf, findingsIn, findingsText, type LintFlags, lintedFile, localInput, print, untouched } from "./lint.ts";
import { type LintNode, readLintFiles } from "./lint-input.ts";

/** The findings of one node, or why there are none. */
interface Linted {
  readonly node: string;
  /** The profile of the findings; null if there are none. */
  readonly profile: ProfileNote | null;
  readonly findings: readonly LintFinding[];
  readonly why: string | null;
}

/** Lints the kubelet of the named node, or of all nodes of a live cluster. */
export async function lintCluster({ paths = [], ...asked }: LintFlags, cli: Cli): Promise<Outcome> {
  const [config = asked.config, another] = paths;
  if (another !== undefined) return fault(EXIT.badInput, "with a cluster it is one configuration: give one file");
  const given = config === undefined ? asked : { ...asked, config };
  const { node, snapshot, nodeName, dataDir, api, ...rest } = withoutEnv(given, cli);
  if (nodeName !== undefined || dataDir !== undefined || api !== undefined) {
    return fault(EXIT.badInput, "--node-name, --data-dir and --api belong to a history: give them without a cluster");
  }
  if (snapshot !== undefined) return fault(EXIT.badInput, "--snapshot is a whole node: give it without a cluster");
  if (node === undefined) return lintAll(given, rest, cli);
  const read = await readClusterNode(given, { node }, cli);
  if (!read.ok) return read;
  const files = await configured(rest, read.value);
  if (!files.ok) return files;
  const linted = untouched(findingsIn(localInput(files.value), given.kubelet));
  return print([lintedFile(linted, files.value, given)], given, cli);
}

/** Errors: those of the files; no configuration from a file or the kubelet. */
async function configured(
  files: LintFlags,
  { name, snapshot, missing }: ClusterNode,
): Promise<Result<LintNode, Fault>> {
  const read = await readLintFiles(files, snapshot);
  if (!read.ok || read.value.file !== null || read.value.configuration !== undefined) return read;
  const { rule, why } = missing.find(({ part }) => part === "configz") ?? {};
  const [said, right] = rule === undefined ? [`: ${why}`, ""] : ["", `, or the ${rightsText([rule])}`];
  return fault(EXIT.badInput, `the configuration of ${name} is not known${said}: give --config FILE${right}`);
}

async function lintAll(given: LintFlags, files: LintFlags, cli: Cli): Promise<Outcome> {
  const output = given.json === true ? "json" : given.output;
  if (output === "sarif" || output === "junit" || output === "github")
    return fault(EXIT.badInput, `-o ${output} is of files, or of one node: give files, or --node NAME`);
  const one = async (node: string, live: Result<ClusterNode, ClusterFault>): Promise<Linted> => {
    const read = live.ok ? await configured(files, live.value) : live;
    if (read.ok) return { node, ...findingsIn(localInput(read.value), given.kubelet), why: null };
    const why = "lines" in read.error ? read.error.lines.join("; ") : clusterFaultText(read.error);
    return { node, profile: null, findings: [], why };
  };
  const linted = await withCluster(given, cli, (cluster) => eachClusterNode(cluster, {}, given, cli, one));
  if (!linted.ok) return linted;
  if (output === "table") printText(cli.terminal, nodesText(linted.value, cli.terminal));
  else printData(cli.terminal, { nodes: linted.value }, output);
  return ok(exitOfAll(linted.value, given.failOn));
}

/** Nodes with the same findings are shown together. */
function nodesText(linted: readonly Linted[], terminal: Terminal): string {
  const groups = Map.groupBy(linted, ({ profile, findings, why }) => JSON.stringify([profile?.why, findings, why]));
  const texts = Array.from(groups.values(), (same) => {
    const [{ profile, findings, why }] = same as [Linted];
    const heading = `${namesText(same.map(({ node }) => node))} (${many(same.length, "node")})`;
    const notes = findings.map((finding) => ({ ...finding, touched: null }));
    const text = why === null ? findingsText(notes, () => null, terminal) : `${terminal.paint("yellow", why)}\n`;
    return `${terminal.paint("bold", heading)}\n${assumedLine(profile && otherProfileReason(profile), terminal.paint)}${text}`;
  });
  return texts.length === 0 ? "the cluster has no nodes\n" : texts.join("\n");
}

function exitOfAll(linted: readonly Linted[], failOn: LintFlags["failOn"]): number {
  const exit = exitOf(
    linted.flatMap(({ findings }) => findings),
    failOn,
  );
  return exit === EXIT.ok && linted.some(({ why }) => why !== null) ? EXIT.failed : exit;
}
