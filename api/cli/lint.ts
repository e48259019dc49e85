import type { Store } from "../../db/store.ts";
import { type LintFinding, lintConfiguration } from "../decide/lint/lint.ts";
import { decodeSnapshot } from "../model/decode.ts";
import { nearNames } from "../model/near-name.ts";
import { ok, type Result } from "../model/result.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { postedSnapshot } from "../replay/parsed.ts";
import { type TouchedFinding, touchedFindings } from "../routes/lint-touched.ts";
import type { Cli } from "./cli.ts";
import { EXIT, type ExitCode, type Fault, fault, type Outcome } from "./exit.ts";
import { tokenOf } from "./history.ts";
import { posterOf } from "./history-api.ts";
import { type LintFiles, type LintNode, readLintFiles } from "./lint-input.ts";
import { findingsText } from "./lint-text.ts";
import { type Form, printData } from "./output.ts";

export interface LintGiven extends LintFiles {
  readonly nodeName?: string;
  readonly dataDir?: string;
  readonly api?: string;
  readonly tokenFile?: string;
  readonly output: Form;
  readonly json?: boolean;
}

export async function lint(given: LintGiven, cli: Cli): Promise<Outcome> {
  const { nodeName, api, dataDir } = given;
  const read = await readLintFiles(given);
  if (!read.ok) return read;
  if (nodeName !== undefined && read.value.snapshot !== undefined) {
    return fault(EXIT.badInput, "--node-name takes the node's latest snapshot: give it without files of a node");
  }
  if (nodeName !== undefined && api === undefined && dataDir === undefined) {
    return fault(EXIT.badInput, "--node-name is of a history: name it with --data-dir or --api");
  }
  if (read.value.file === null && read.value.snapshot === undefined && nodeName === undefined) {
    return fault(EXIT.badInput, "nothing to look over: give --config FILE");
  }
  if (api !== undefined) return print(await askApi(api, given, read.value, cli), read.value, given, cli);
  if (dataDir === undefined) {
    const { configuration, snapshot } = localInput(read.value);
    const found = lintConfiguration(configuration, snapshot).map((finding) => ({ ...finding, touched: null }));
    return print(ok(found), read.value, given, cli);
  }
  const { withHistory } = await import("./open-history.ts");
  return withHistory(dataDir, false, async (store) =>
    print(await askStore(store, given, read.value), read.value, given, cli),
  );
}

type Findings = Result<readonly TouchedFinding[], Fault>;
const localInput = ({ file, snapshot }: LintNode) => ({
  configuration: file === null ? snapshot?.kubeletConfiguration : file.configuration,
  snapshot,
});

async function askApi(url: string, given: LintGiven, { file, snapshot }: LintNode, cli: Cli): Promise<Findings> {
  const token = await tokenOf(given, cli);
  if (!token.ok) return token;
  const post = posterOf(url, token.value);
  if (!post.ok) return post;
  const body = { kubeletConfiguration: file?.configuration, snapshot, node: given.nodeName };
  const answer = await post.value<{ readonly findings: readonly TouchedFinding[] }>("v1/lint", body);
  return answer.ok ? ok(answer.value.findings) : answer;
}

/** Of a history that is here; as nobody waits for the answer in turn, it may take a while. */
const BUDGET_MS = 30_000;

async function askStore(store: Store, { nodeName }: LintGiven, node: LintNode): Promise<Findings> {
  const about = nodeName === undefined ? ok(localInput(node)) : await latestOf(store, nodeName, node);
  if (!about.ok) return about;
  const { configuration, snapshot } = about.value;
  const known = await store.getNode(nodeName ?? snapshot?.node?.metadata.name ?? "");
  if (!known.ok) return fault(EXIT.failed, known.error.message);
  const filter = known.value === null ? {} : { node: known.value.name };
  const touched = await touchedFindings(store, lintConfiguration(configuration, snapshot), filter, BUDGET_MS);
  return touched.ok ? touched : fault(EXIT.failed, touched.error.message);
}

async function latestOf(
  store: Store,
  name: string,
  { file }: LintNode,
): Promise<Result<{ readonly configuration: unknown; readonly snapshot: Snapshot | undefined }, Fault>> {
  const nodes = await store.listNodes();
  if (!nodes.ok) return fault(EXIT.failed, nodes.error.message);
  const names = nodes.value.map((node) => node.name);
  if (!names.includes(name)) {
    const near = nearNames(name, names);
    const meant = near.length === 0 ? "" : `: did you mean ${near.join(" or ")}?`;
    return fault(EXIT.badInput, `--node-name ${name}: the history has no such node${meant}`);
  }
  const latest = await store.latestSnapshot(name);
  if (!latest.ok) return fault(EXIT.failed, latest.error.message);
  const posted = latest.value === null ? ok(null) : postedSnapshot(latest.value);
  if (!posted.ok) return fault(EXIT.failed, posted.error.message);
  const body = posted.value;
  const { kubeletConfiguration, ...rest } = body ?? {};
  const snapshot = body === null ? undefined : decodeSnapshot(rest);
  if (snapshot?.ok === false) return fault(EXIT.failed, `the latest snapshot of ${name} cannot be read`);
  const configuration = file === null ? kubeletConfiguration : file.configuration;
  if (configuration === undefined) {
    return fault(EXIT.badInput, `the latest snapshot of ${name} holds no configuration: give --config FILE`);
  }
  return ok({ configuration, snapshot: snapshot?.value });
}

function print(findings: Findings, { file }: LintNode, given: LintGiven, { terminal }: Cli): Outcome {
  if (!findings.ok) return findings;
  const output = given.json === true ? "json" : given.output;
  if (output === "table") terminal.write(findingsText(findings.value, file?.placeOf ?? (() => null), terminal));
  else printData(terminal, { findings: findings.value }, output);
  return ok(exitOf(findings.value));
}

function exitOf(findings: readonly LintFinding[]): ExitCode {
  const severities = new Set(findings.map(({ severity }) => severity));
  if (severities.has("refuses-start")) return EXIT.refusesStart;
  return severities.has("error") || severities.has("warning") ? EXIT.negative : EXIT.ok;
}
