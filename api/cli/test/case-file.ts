import { readdirSync, statSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { Command } from "commander";
import * as z from "zod";
import { joinPath } from "../../base/input-issue.ts";
import { nearName, similarNames, suggestionText } from "../../base/near-name.ts";
import { fieldsOf, isObject } from "../../base/own.ts";
import { ok, type Result } from "../../base/result.ts";
import type { InputDocument } from "../../documents/inputs/origin.ts";
import { placedIssue } from "../../documents/problem.ts";
import { isKind, KINDS, type Kind, REFUSAL_CODES, VERDICTS } from "../../model/decision.ts";
import { specOf } from "../../model/kinds.ts";
import { knownVersion } from "../../profiles/index.ts";
import { withClusterOptions } from "../cluster-options.ts";
import { addKindOptions } from "../decide/kind-options.ts";
import { readDocument, readInput, valueAt } from "../inputs/read.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";

const text = z.string().min(1);
const scalar = z.union([z.string(), z.number(), z.boolean()]);
const someJson = z.unknown();
const members = z.record(z.string(), someJson);

const OPTION = /^[a-z][a-z-]*$/;
const givenForm = z
  .record(
    z.string().regex(OPTION, "must be the long name of an option, such as snapshot or cgroup-version"),
    z.union([scalar, z.array(someJson), members]),
  )
  .describe(
    "options of `nodewise decide KIND` by their long names. A file is a path relative to the folder of the case, or its content; an option that may be repeated is a list",
  );

const expectForm = z
  .strictObject({
    verdict: z.enum(VERDICTS).describe("the decision's verdict, such as refused"),
    decision: members.describe(
      "members that the decision must have. Objects may have other members too; lists must have exactly these entries. An object in the place of a list selects entries by their number, or by the value of a member such as `name=app`",
    ),
    reasons: z.array(text).describe("reason codes of the kind that must be among the reasons of the answer"),
    needs: z.array(text).describe("inputs that the answer names as missing"),
    next: members.describe("members that the facts for the next pass must have"),
    refusal: z
      .strictObject({ code: z.enum(REFUSAL_CODES), message: text, needs: z.array(text) })
      .partial()
      .describe("the expected refusal: no decision is made, for this reason"),
    error: text.describe("the expected input error: a line of its message contains this text"),
  })
  .partial()
  .refine((expected) => Object.keys(expected).length > 0, "must expect something")
  .describe("the expected answer; a member that is left out is not checked");

const version = z.union([z.string(), z.number()]).transform(String);
const common = {
  kind: z.enum(KINDS),
  kubelet: z
    .union([version, z.array(version).min(1)])
    .transform((one) => [one].flat())
    .describe(
      "the kubelet version to use if the node reports none; with a list of versions the case runs once for each",
    ),
  now: text.describe("the time of the snapshot, such as 2026-01-31T12:00:00Z"),
  given: givenForm,
};
const caseForm = z.strictObject({ name: text, expect: expectForm, ...z.strictObject(common).partial().shape });

/** A case file: one case, or `cases` with their common members. */
export const caseFileForm = z
  .union([caseForm, z.strictObject({ cases: z.array(caseForm).min(1), ...z.strictObject(common).partial().shape })])
  .describe("a case of `nodewise test`, or a list `cases` that share the other members");

export type Expected = z.output<typeof expectForm>;
type Step = string | number;

/** One case. */
export interface Case {
  readonly name: string;
  readonly file: string;
  readonly line: number;
  readonly kind: Kind;
  /** Undefined for the node's own, or the newest. */
  readonly kubelet: string | undefined;
  readonly now: string | undefined;
  /** By the option's name, with its path in the file. */
  readonly given: ReadonlyMap<string, { readonly value: unknown; readonly path: readonly Step[] }>;
  readonly expect: Expected;
}

const CASE_FILE = /\.(?:ya?ml|json)$/;
/** Members by which a case file is recognised, even if others are misspelt; other files are input for cases. */
const CASE_MEMBERS = ["expect", "cases", "given"];
const isCaseFile = (value: unknown): boolean =>
  isObject(value) && !("apiVersion" in value) && Object.keys(value).some((key) => nearName(key, CASE_MEMBERS) !== null);
/** Whether a text that cannot be parsed looks like a case file. */
const looksLikeCases = (lines: string): boolean => /(?:^|[\s{,"'])(?:expect\w*|cases)["']?\s*:/.test(lines);

/** A fault of a case file: `FILE:LINE:COLUMN: ...`, and its case. */
export interface CaseFileFault {
  readonly file: string;
  readonly line: string;
  /** The name of the case that cannot be run; null if none of the file can, or it has no name. */
  readonly name: string | null;
}
/** The cases that were read, and faults of the others. */
interface ReadCases {
  readonly cases: readonly Case[];
  readonly faults: readonly CaseFileFault[];
  /** Files in folders that have no case and are no case's input. */
  readonly passedOver: readonly string[];
}

/** The cases of files, and of all files in folders. Errors: a path that does not exist; no case at all. */
export async function readCases(paths: readonly string[]): Promise<Result<ReadCases, Fault>> {
  const cases: Case[] = [];
  const faults: CaseFileFault[] = [];
  /** Files in folders that have no case, with the reason if one cannot be read. */
  const others = new Map<string, readonly string[]>();
  for (const path of paths) {
    const found = filesAt(path);
    if (!found.ok) return found;
    for (const file of found.value) {
      const document = await readDocument(file);
      const isCases = document.ok ? isCaseFile(document.value.value) : looksLikeCases(await textOf(file));
      if (file !== path && !isCases) others.set(file, document.ok ? [] : document.error.lines);
      else if (!document.ok) faults.push(...document.error.lines.map((line) => ({ file, line, name: null })));
      else {
        const read = casesIn(document.value);
        cases.push(...read.cases);
        faults.push(...read.faults);
      }
    }
  }
  // a case's input may be broken: the case reports that
  const named = new Set(
    cases.flatMap(({ file, given }) => Array.from(given.values(), ({ value }) => pathBeside(file, value))),
  );
  const alone = [...others].filter(([file]) => !named.has(file));
  faults.push(...alone.flatMap(([file, lines]) => lines.map((line) => ({ file, line, name: null }))));
  if (cases.length === 0 && faults.length === 0)
    return fault(EXIT.badInput, `${paths.join(", ")}: there is no case: a YAML file with \`expect\`, or \`cases\``);
  return ok({ cases, faults, passedOver: alone.filter(([, lines]) => lines.length === 0).map(([file]) => file) });
}
const pathBeside = (file: string, value: unknown): string => fileBeside(file, String(value).replace(/#\/.*$/, ""));
/** The file that a case names, relative to the case's own folder. */
export const fileBeside = (file: string, name: string): string => (isAbsolute(name) ? name : join(dirname(file), name));
async function textOf(file: string): Promise<string> {
  const input = await readInput(file);
  return input.ok ? input.value.text : "";
}

function filesAt(path: string): Result<readonly string[], Fault> {
  try {
    if (!statSync(path).isDirectory()) return ok([path]);
    const files = readdirSync(path, { recursive: true, encoding: "utf8" });
    return ok(
      files
        .filter((file) => CASE_FILE.test(file))
        .sort()
        .map((file) => join(path, file)),
    );
  } catch {
    return fault(EXIT.badInput, `${path}: no such file or folder: check the path`);
  }
}

/** The valid cases of a file, and faults of the others, or of their common members. */
function casesIn(document: InputDocument): Pick<ReadCases, "cases" | "faults"> {
  const several = typeof document.value === "object" && document.value !== null && "cases" in document.value;
  const whole = fieldsOf(document.value);
  const list = several ? whole["cases"] : [document.value];
  const all: readonly unknown[] = Array.isArray(list) ? list : [];
  const [alone, together] = caseFileForm.options;
  const { error } = (several ? together : alone).safeParse(document.value);
  const caseOf = ({ path: [field, i] }: z.core.$ZodIssue): number | null =>
    several ? (field === "cases" && typeof i === "number" ? i : null) : 0;
  const issues = Map.groupBy(error?.issues ?? [], caseOf);
  const words = Map.groupBy(wordFaults(document, several, all), ({ of }) => of);
  const wrong = new Set([...issues.keys(), ...words.keys()]);
  const listed = new Set<string>();
  const faults = [null, ...all.keys()].flatMap((i): readonly CaseFileFault[] => {
    const name = i === null ? undefined : fieldsOf(all[i])["name"];
    const lines = [
      ...issueLines(document, issues.get(i) ?? []),
      ...(words.get(i ?? -1) ?? []).map(({ path, message }) => placedIssue(document, { base: [], at: path, message })),
    ].filter((line) => !listed.has(line) && listed.add(line));
    return lines.map((line) => ({ file: document.file, line, name: typeof name === "string" ? name : null }));
  });
  const good = wrong.has(null) ? [] : [...all.keys()].filter((i) => !wrong.has(i));
  const read = several ? together.safeParse({ ...whole, cases: good.map((i) => all[i]) }) : alone.safeParse(all[0]);
  if (good.length === 0 || !read.success) return { cases: [], faults };
  const { cases, ...shared } = "cases" in read.data ? read.data : { cases: [read.data] };
  return {
    cases: cases.flatMap((own, i) => casesOf(own, shared, several ? ["cases", good[i] ?? 0] : [], document)),
    faults,
  };
}

type CaseForm = z.output<typeof caseForm>;
/** A case for each of its kubelet versions. `at`: its path in the file. */
function casesOf(
  own: CaseForm,
  shared: Partial<CaseForm>,
  at: readonly Step[],
  document: InputDocument,
): readonly Case[] {
  const kind = own.kind ?? shared.kind;
  if (kind === undefined) return [];
  const given: Case["given"] = new Map([
    ...optionsAt(shared.given, ["given"]),
    ...optionsAt(own.given, [...at, "given"]),
  ]);
  const kubelets = own.kubelet ?? shared.kubelet ?? [undefined];
  return kubelets.map((kubelet) => ({
    name: kubelets.length === 1 ? own.name : `${own.name} (${kubelet})`,
    file: document.file,
    line: document.place([...at, "name"]).line,
    kind,
    kubelet,
    now: own.now ?? shared.now,
    given,
    expect: own.expect,
  }));
}

/**
 * Unknown words: options and reasons that a case's kind does not have, a missing kind, and unknown versions; also in a file with
 * other faults. A fault in the common members may affect several cases.
 */
function wordFaults(document: InputDocument, several: boolean, all: readonly unknown[]): readonly CaseFault[] {
  const shared = several ? fieldsOf(document.value) : {};
  return all.flatMap((one, i): readonly CaseFault[] => {
    const own = fieldsOf(one);
    const at = several ? ["cases", i] : [];
    const kind = own["kind"] ?? shared["kind"];
    const ofKubelet = [
      ...kubeletFaults(own["kubelet"], [...at, "kubelet"]),
      ...kubeletFaults(shared["kubelet"], ["kubelet"]),
    ];
    const of = (faults: readonly WordFault[]) => faults.map((fault) => ({ ...fault, of: i }));
    if (kind === undefined && isObject(one))
      return of([...ofKubelet, { path: [...at, "kind"], message: `must be one of ${KINDS.join(", ")}` }]);
    if (!isKind(String(kind))) return of(ofKubelet);
    const given = [...optionsAt(shared["given"], ["given"]), ...optionsAt(own["given"], [...at, "given"])];
    const reasons = fieldsOf(own["expect"])["reasons"];
    const known = String(kind) as Kind;
    return of([
      ...givenFaults(known, given),
      ...reasonFaults(known, reasons, [...at, "expect", "reasons"]),
      ...ofKubelet,
    ]);
  });
}

interface CaseFault {
  readonly path: readonly Step[];
  readonly message: string;
  /** The number of the case. */
  readonly of: number;
}
type WordFault = Omit<CaseFault, "of">;

/** Options that cases cannot have: a case depends only on its files, not on a cluster or the form of the output. */
const NOT_GIVEN = [
  ...withClusterOptions(new Command()).options.map(({ long }) => wordOf(long)),
  ...["output", "help", "kubelet", "observed-at"],
];
const INSTEAD: Readonly<Record<string, string>> = {
  kubelet: "kubelet beside given",
  "observed-at": "now beside given",
};

/** Options that the kind's command does not have, with a suggestion, or that no case can have. */
function givenFaults(kind: Kind, given: ReturnType<typeof optionsAt>): readonly WordFault[] {
  const command = new Command();
  addKindOptions(command, kind);
  const words = command.options.map(({ long }) => wordOf(long)).filter((word) => !NOT_GIVEN.includes(word));
  const known = [...words, ...words.map((word) => word.replace(/^no-/, ""))];
  return given.flatMap(([option, { path }]) => {
    const message = OPTION.test(option) ? givenFault(kind, option, known) : null;
    return message === null ? [] : [{ path, message }];
  });
}

function givenFault(kind: Kind, option: string, known: readonly string[]): string | null {
  if (known.includes(option)) return null;
  const instead = INSTEAD[option];
  if (instead !== undefined) return `write ${instead}`;
  if (NOT_GIVEN.includes(option)) return "is not allowed in a case";
  return `is no option of \`nodewise decide ${kind}\`: ${suggest(option, known) ?? `\`nodewise decide ${kind} --help\` lists them`}`;
}

function reasonFaults(kind: Kind, reasons: unknown, at: readonly Step[]): readonly WordFault[] {
  const codes = specOf(kind).reasons;
  return (Array.isArray(reasons) ? reasons : []).flatMap((code: unknown, i) => {
    if (typeof code !== "string" || code === "" || codes.includes(code)) return [];
    const proposal = suggest(code, codes) ?? `there are ${codes.join(", ")}`;
    return [{ path: [...at, i], message: `is no code of a reason of ${kind}: ${proposal}` }];
  });
}

/** Unknown versions: nobody would notice that a neighbouring version was used. */
const kubeletFaults = (kubelets: unknown, path: readonly Step[]): readonly WordFault[] =>
  [kubelets].flat().flatMap((kubelet: unknown) => {
    if (typeof kubelet !== "string" && typeof kubelet !== "number") return [];
    const known = knownVersion("", String(kubelet));
    return known.ok ? [] : [{ path, message: known.error.message }];
  });

function wordOf(long: string | null | undefined): string {
  return (long ?? "").replace(/^--/, "");
}
/** A similar word; null if there is none. */
const suggest = (given: unknown, words: readonly string[]): string | null =>
  typeof given === "string" ? suggestionText(given, words, "`") : null;

const MEMBERS = [...Object.keys(caseForm.shape), "cases", ...Object.keys(expectForm.def.shape)];

/** A line per fault, with a similar word; a misspelt member is not also reported as missing. */
function issueLines(document: InputDocument, issues: readonly z.core.$ZodIssue[]): readonly string[] {
  const misspelt = new Set(
    issues.flatMap(({ path, ...issue }) =>
      issue.code === "unrecognized_keys"
        ? issue.keys.flatMap((key) =>
            similarNames(key, MEMBERS).map((name) => joinPath("", [...(path as Step[]), name])),
          )
        : [],
    ),
  );
  return issues
    .filter(
      ({ path }) => valueAt(document, path as Step[]) !== undefined || !misspelt.has(joinPath("", path as Step[])),
    )
    .flatMap((issue) => linesOfIssue(document, issue));
}

function linesOfIssue(document: InputDocument, issue: z.core.$ZodIssue): readonly string[] {
  const at = issue.path as Step[];
  if (issue.code === "unrecognized_keys")
    return issue.keys.map((key) => {
      const proposal = suggest(key, MEMBERS);
      const message = `is no field of a case${proposal === null ? "" : `: ${proposal}`}`;
      return placedIssue(document, { base: [], at: [...at, key], message });
    });
  const words = issue.code === "invalid_value" ? issue.values.map(String) : [];
  const value = valueAt(document, at);
  if (value === undefined && words.length === 0)
    return [placedIssue(document, { base: [], at, message: "is missing" })];
  const proposal = suggest(value, words);
  const said =
    words.length === 0 ? issue.message.replace(/^Invalid input: /, "") : `must be one of ${words.join(", ")}`;
  const message = proposal === null ? said : `${said}: ${proposal}`;
  return [placedIssue(document, { base: [], at, message })];
}

const optionsAt = (given: unknown, at: readonly Step[]) =>
  Object.entries(fieldsOf(given)).map(([option, value]) => [option, { value, path: [...at, option] }] as const);
