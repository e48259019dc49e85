import type { SnapshotRow } from "../../db/rows.ts";
import type { DropIn } from "../decide/lint/drop-ins.ts";
import { readFlags } from "../decide/lint/flags.ts";
import { type BesideFile, lintStart } from "../decide/lint/start.ts";
import { decodeSnapshot } from "../model/decode.ts";
import { joinPath } from "../model/input-issue.ts";
import { isObject } from "../model/own.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { Snapshot } from "../model/snapshot.ts";
import type { Reply } from "../ports.ts";
import { chooseProfileFor } from "../profiles/index.ts";
import { configurationOfAnother } from "../profiles/unknown-fields.ts";
import { isId, unknownField, versionIn } from "../service/decision-request.ts";
import { touchedFindings } from "../service/lint-touched.ts";
import { historyProblem, inputProblem, invalid, type Problem } from "../service/problem.ts";
import { postedSnapshot } from "../service/replay/parsed.ts";
import { postedValue } from "./body.ts";
import { nodeNamed } from "./nodes.ts";
import { isGiven } from "./replay.ts";
import { type Exchange, json, snapshotSeen } from "./route.ts";

type Members = Readonly<Record<string, unknown>>;
const FIELDS: ReadonlySet<string> = new Set([
  "kubeletConfiguration",
  "kubeletArgs",
  "kubeletDropIns",
  "kubeletVersion",
  "snapshot",
  "snapshotId",
  "node",
]);
const SOURCES = ["snapshot", "snapshotId", "node"] as const;

/** POST /v1/lint: what is wrong with a configuration, and how many recorded decisions each finding touched. */
export async function postLint(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const input = await postedValue(exchange);
  if (!input.ok) return input;
  const body = input.value;
  if (!isObject(body)) return invalid("$", 'expected an object such as {"kubeletConfiguration": {...}}');
  for (const name in body) if (!FIELDS.has(name)) return unknownField(name, FIELDS);
  const version = versionIn(body);
  if (!version.ok) return version;
  const beside = besideIn(body);
  if (!beside.ok) return beside;
  const { args, dropIns } = beside.value;
  const about = await aboutNode(exchange, body);
  if (!about.ok) return about;
  const { node, posted } = about.value;
  const configuration = body["kubeletConfiguration"] ?? posted?.["kubeletConfiguration"] ?? undefined;
  if (configuration === undefined && args === null) {
    return invalid("kubeletConfiguration", "is needed, or a snapshot that holds one, or kubeletArgs");
  }
  if (configuration !== undefined && !isObject(configuration))
    return invalid("kubeletConfiguration", 'expected an object such as {"maxPods": 110}');
  const at = isGiven(body["snapshot"]) ? "snapshot" : "";
  const snapshot = posted === null ? ok(undefined) : snapshotIn(posted, at);
  if (!snapshot.ok) return snapshot;
  const field = joinPath(isGiven(body["kubeletConfiguration"]) ? "" : at, ["kubeletConfiguration"]);
  const other = configurationOfAnother(snapshot.value, configuration, field);
  if (other !== undefined) return invalid(other.path, other.message);
  const { profile, note } = chooseProfileFor(snapshot.value, version.value);
  const flags = args === null ? null : readFlags(args, profile);
  const findings = lintStart({ configuration, dropIns, flags }, snapshot.value, profile);
  const touched = await touchedFindings(
    exchange.ports.store,
    findings,
    node === null ? {} : { node },
    undefined,
    exchange.signal,
  );
  return touched.ok ? json({ profile: note, findings: touched.value }) : historyProblem(touched.error);
}

/** The most arguments of a kubelet's command line, and characters of one. */
export const MAX_ARGS = 512;
export const LONGEST_ARG = 8192;

/** The most drop-ins, and characters of a file's name. */
export const MAX_DROP_INS = 64;
export const LONGEST_FILE = 4096;

/** The members of a request's body about a kubelet beside its configuration. */
export function besideIn(body: Members): Result<BesideFile, Problem> {
  const args = argsIn(body);
  if (!args.ok) return args;
  const dropIns = dropInsIn(body);
  return dropIns.ok ? ok({ args: args.value, dropIns: dropIns.value }) : dropIns;
}

/** Null: there are none. */
function dropInsIn({ kubeletDropIns: all, kubeletConfiguration }: Members): Result<BesideFile["dropIns"], Problem> {
  if (!isGiven(all)) return ok(null);
  const form = '{"file": "10-pods.conf", "document": {"kind": "KubeletConfiguration", ...}}';
  if (!Array.isArray(all)) return invalid("kubeletDropIns", `expected a list of drop-ins such as ${form}`);
  if (all.length > MAX_DROP_INS) return invalid("kubeletDropIns", `has more than ${MAX_DROP_INS} files`);
  const dropIns: DropIn[] = [];
  for (const [i, one] of all.entries()) {
    if (!isDropIn(one)) {
      return invalid(`kubeletDropIns[${i}]`, `expected ${form}, the file's name at most ${LONGEST_FILE} characters`);
    }
    dropIns.push({ file: one.file, document: one.document });
  }
  if (isGiven(kubeletConfiguration)) return ok(dropIns);
  return invalid("kubeletConfiguration", "is needed: kubeletDropIns are merged over it");
}

function isDropIn(one: unknown): one is DropIn {
  if (!isObject(one) || Object.keys(one).some((name) => name !== "file" && name !== "document")) return false;
  const { file, document } = one as Members;
  return typeof file === "string" && file !== "" && file.length <= LONGEST_FILE && document !== undefined;
}

/** The kubelet's command line in a request's body; null: there is none. */
function argsIn({ kubeletArgs }: Members): Result<readonly string[] | null, Problem> {
  if (!isGiven(kubeletArgs)) return ok(null);
  if (!Array.isArray(kubeletArgs)) return invalid("kubeletArgs", 'expected a list such as ["--max-pods=110", "--v=2"]');
  if (kubeletArgs.length > MAX_ARGS) return invalid("kubeletArgs", `has more than ${MAX_ARGS} arguments`);
  const wrong = kubeletArgs.findIndex((arg) => typeof arg !== "string" || arg.length > LONGEST_ARG);
  if (wrong >= 0) return invalid(`kubeletArgs[${wrong}]`, `expected a text of at most ${LONGEST_ARG} characters`);
  return ok(kubeletArgs as readonly string[]);
}

function aboutStored(row: SnapshotRow): Result<LintSubject, Problem> {
  const posted = postedSnapshot(row);
  return posted.ok ? ok({ node: row.node, posted: posted.value }) : historyProblem(posted.error);
}

export interface LintSubject {
  /** The node whose decisions count; null: everyone's. */
  readonly node: string | null;
  /** As posted or stored; null: nothing is known of a node. */
  readonly posted: Members | null;
}

/** The node that a request's body is about: by its snapshot, the id of one, or its name. Errors: two of them, and one that is not there. */
export async function aboutNode(exchange: Exchange, body: Members): Promise<Result<LintSubject, Problem>> {
  const given = SOURCES.filter((name) => isGiven(body[name]));
  if (given.length > 1) return invalid(given[1] ?? "", `it is one or the other: ${given[0]} was given as well`);
  const { caller, ports } = exchange;
  const { snapshot, snapshotId, node } = body;
  if (isGiven(node)) {
    if (typeof node !== "string") return invalid("node", "expected a node's name");
    const found = await nodeNamed(exchange, node);
    if (!found.ok) return found;
    const latest = await ports.store.latestSnapshot(node);
    if (!latest.ok) return historyProblem(latest.error);
    return latest.value === null ? ok({ node, posted: null }) : aboutStored(latest.value);
  }
  if (isGiven(snapshotId)) {
    if (typeof snapshotId !== "string" || !isId(snapshotId)) return invalid("snapshotId", "must be 32 hex digits");
    const stored = await snapshotSeen(exchange, snapshotId);
    return stored.ok ? aboutStored(stored.value) : stored;
  }
  if (!isGiven(snapshot)) return ok({ node: caller.node, posted: null });
  if (!isObject(snapshot)) return invalid("snapshot", "expected a NodeSnapshot");
  const name = (snapshot as { node?: { metadata?: { name?: unknown } | null } | null }).node?.metadata?.name;
  if (caller.node !== null || typeof name !== "string") return ok({ node: caller.node, posted: snapshot });
  const known = await ports.store.getNode(name);
  if (!known.ok) return historyProblem(known.error);
  return ok({ node: known.value === null ? null : name, posted: snapshot });
}

/** The snapshot without its configuration, which may be as wrong as it likes. */
function snapshotIn({ kubeletConfiguration: _linted, ...rest }: Members, at: string): Result<Snapshot, Problem> {
  const decoded = decodeSnapshot(rest, at);
  return decoded.ok ? decoded : err(inputProblem(decoded.error));
}
