import * as z from "zod";
import type { SnapshotRow } from "../../db/rows.ts";
import { joinPath } from "../base/input-issue.ts";
import { ref } from "../base/json-schema.ts";
import { type Fields, isObject } from "../base/own.ts";
import { err, ok, type Result } from "../base/result.ts";
import { readFlags } from "../decide/lint/flags.ts";
import { type FlagsAndDropIns, lintStart } from "../decide/lint/start.ts";
import type { Reply } from "../dependencies.ts";
import { decodeSnapshot } from "../model/decode.ts";
import { optional } from "../model/fields.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { chooseProfileFor } from "../profiles/index.ts";
import { configurationOfAnother } from "../profiles/unknown-fields.ts";
import { idText, readBody } from "../service/body-form.ts";
import { kubeletVersion } from "../service/decision-request.ts";
import { touchedFindings } from "../service/lint-touched.ts";
import { historyProblem, inputProblem, invalid, type Problem } from "../service/problem.ts";
import { postedSnapshot } from "../service/replay/parsed.ts";
import { postedValue } from "./body.ts";
import { nodeNamed } from "./nodes.ts";
import { type Exchange, json, snapshotSeen } from "./route.ts";

/** The most arguments of a kubelet's command line, and characters of one. */
const MAX_ARGS = 512;
const LONGEST_ARG = 8192;
const notAnArg = `expected a text of at most ${LONGEST_ARG} characters`;

/** The most drop-ins, and characters of a file's name. */
export const MAX_DROP_INS = 64;
const LONGEST_FILE = 4096;
const DROP_IN = '{"file": "10-pods.conf", "document": {"kind": "KubeletConfiguration", ...}}';
const dropIn = z.strictObject({
  file: z.string().min(1).max(LONGEST_FILE).describe("the name of the file, which the findings show"),
  document: z.unknown().describe("the content of the file as an object, with any errors"),
});
/** Reports one fault for any error in a drop-in. */
const wholeDropIn = z.preprocess((given, ctx) => {
  const isOne = dropIn.safeParse(given).success && (given as Fields)["document"] !== undefined;
  const message = `expected ${DROP_IN}, the file's name at most ${LONGEST_FILE} characters`;
  if (!isOne) ctx.addIssue({ code: "custom", message });
  return given;
}, dropIn);

/** What a kubelet is started with. */
export const startMembers = {
  kubeletConfiguration: optional(z.unknown().meta({ type: "object" })).describe(
    "the whole KubeletConfiguration as a file or /configz has it, with any errors: the answer lists them. Absent: the configuration of the snapshot, of which only the fields that decisions read are stored",
  ),
  kubeletArgs: optional(
    z
      .array(z.string(notAnArg).max(LONGEST_ARG, notAnArg), 'expected a list such as ["--max-pods=110", "--v=2"]')
      .max(MAX_ARGS, `has more than ${MAX_ARGS} arguments`),
  ).describe("the kubelet's command line without the name of the program; its flags override the configuration"),
  kubeletDropIns: optional(
    z
      .array(wholeDropIn, `expected a list of drop-ins such as ${DROP_IN}`)
      .max(MAX_DROP_INS, `has more than ${MAX_DROP_INS} files`),
  ).describe(
    "the files of the kubelet's --config-dir in their order, which are merged over kubeletConfiguration as the kubelet does it",
  ),
};
/** Members that name the node; at most one of them may be given. */
export const nodeMembers = {
  snapshot: optional(z.custom<Fields>(isObject, "expected a NodeSnapshot").meta(ref("LintedSnapshot"))).describe(
    "a snapshot of the node that the configuration is for",
  ),
  snapshotId: optional(idText("must be 32 hex digits")).describe("the id of a snapshot in the history"),
  node: optional(z.string("expected a node's name")).describe(
    "the name of a node, whose latest snapshot in the history is used",
  ),
};
export const lintForm = z.strictObject({ ...startMembers, kubeletVersion, ...nodeMembers });
type LintRequest = Omit<z.output<typeof lintForm>, "kubeletVersion">;

/** POST /v1/lint: what is wrong with a configuration, and how many recorded decisions each finding touched. */
export async function postLint(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const input = await postedValue(exchange);
  if (!input.ok) return input;
  const read = readBody(lintForm, input.value, '{"kubeletConfiguration": {...}}');
  if (!read.ok) return read;
  const body = read.value;
  const beside = flagsAndDropInsOf(body);
  if (!beside.ok) return beside;
  const { args, dropIns } = beside.value;
  const about = await aboutNode(exchange, body);
  if (!about.ok) return about;
  const { node, posted } = about.value;
  const configuration = body.kubeletConfiguration ?? posted?.["kubeletConfiguration"] ?? undefined;
  if (configuration === undefined && args === null) {
    return invalid("kubeletConfiguration", "is needed, or a snapshot that holds one, or kubeletArgs");
  }
  if (configuration !== undefined && !isObject(configuration))
    return invalid("kubeletConfiguration", 'expected an object such as {"maxPods": 110}');
  const at = body.snapshot === undefined ? "" : "snapshot";
  const snapshot = posted === null ? ok(undefined) : snapshotIn(posted, at);
  if (!snapshot.ok) return snapshot;
  const field = joinPath(body.kubeletConfiguration === undefined ? at : "", ["kubeletConfiguration"]);
  const other = configurationOfAnother(snapshot.value, configuration, field);
  if (other !== undefined) return invalid(other.path, other.message);
  const { profile, note } = chooseProfileFor(snapshot.value, body.kubeletVersion);
  const flags = args === null ? null : readFlags(args, profile);
  const findings = lintStart({ configuration, dropIns, flags }, snapshot.value, profile);
  const touched = await touchedFindings(
    exchange.deps.store,
    findings,
    node === null ? {} : { node },
    undefined,
    exchange.signal,
  );
  return touched.ok ? json({ profile: note, findings: touched.value }) : historyProblem(touched.error);
}

/** The parts of a request besides its configuration. Errors: drop-ins without a configuration. */
export function flagsAndDropInsOf(
  asked: Pick<LintRequest, keyof typeof startMembers>,
): Result<FlagsAndDropIns, Problem> {
  const { kubeletConfiguration, kubeletArgs: args = null, kubeletDropIns: dropIns = null } = asked;
  if (dropIns === null || kubeletConfiguration !== undefined) return ok({ args, dropIns });
  return invalid("kubeletConfiguration", "is needed: kubeletDropIns are merged over it");
}

function aboutStored(row: SnapshotRow): Result<LintSubject, Problem> {
  const posted = postedSnapshot(row);
  return posted.ok ? ok({ node: row.node, posted: posted.value }) : historyProblem(posted.error);
}

export interface LintSubject {
  /** The node whose decisions count; null: everyone's. */
  readonly node: string | null;
  /** The snapshot as posted or stored; null: no node is known. */
  readonly posted: Fields | null;
}

const SOURCES = Object.keys(nodeMembers) as (keyof typeof nodeMembers)[];
/** The node that a request is about: by its snapshot, the id of one, or its name. Errors: two of them, and one that is not there. */
export async function aboutNode(
  exchange: Exchange,
  asked: Pick<LintRequest, keyof typeof nodeMembers>,
): Promise<Result<LintSubject, Problem>> {
  const given = SOURCES.filter((name) => asked[name] !== undefined);
  if (given.length > 1) return invalid(given[1] ?? "", `it is one or the other: ${given[0]} was given as well`);
  const { caller, deps } = exchange;
  const { snapshot, snapshotId, node } = asked;
  if (node !== undefined) {
    const found = await nodeNamed(exchange, node);
    if (!found.ok) return found;
    const latest = await deps.store.latestSnapshot(node);
    if (!latest.ok) return historyProblem(latest.error);
    return latest.value === null ? ok({ node, posted: null }) : aboutStored(latest.value);
  }
  if (snapshotId !== undefined) {
    const stored = await snapshotSeen(exchange, snapshotId);
    return stored.ok ? aboutStored(stored.value) : stored;
  }
  if (snapshot === undefined) return ok({ node: caller.node, posted: null });
  const name = (snapshot as { node?: { metadata?: { name?: unknown } | null } | null }).node?.metadata?.name;
  if (caller.node !== null || typeof name !== "string") return ok({ node: caller.node, posted: snapshot });
  const known = await deps.store.getNode(name);
  if (!known.ok) return historyProblem(known.error);
  return ok({ node: known.value === null ? null : name, posted: snapshot });
}

/** The snapshot without its configuration, which may be as wrong as it likes. */
function snapshotIn({ kubeletConfiguration: _linted, ...rest }: Fields, at: string): Result<Snapshot, Problem> {
  const decoded = decodeSnapshot(rest, at);
  return decoded.ok ? decoded : err(inputProblem(decoded.error));
}
