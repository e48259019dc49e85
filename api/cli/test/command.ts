import type { Command } from "commander";
import { ok } from "../../base/result.ts";
import { KINDS } from "../../model/decision.ts";
import { specOf } from "../../model/kinds.ts";
import { type Annotation, githubText, type JUnitCase, junitText } from "../../text/ci.ts";
import { many } from "../../text/sentences/words.ts";
import { printable } from "../../text/style.ts";
import { table } from "../../text/table.ts";
import { type Cli, examples, finish, outputOption } from "../cli.ts";
import { EXIT, type Form, fault, type Outcome, printData, printText, type Terminal } from "../terminal.ts";
import type { CaseFileFault } from "./case-file.ts";
import { mismatchText } from "./expectation.ts";
import type { CaseResult } from "./run-case.ts";

interface TestFlags {
  readonly output: Form | "junit" | "github";
}

const EXIT_CODES = `
Exit codes:
  0  all is as expected
  1  something is not
  2  a case cannot be read`;

export function addTest(program: Command, cli: Cli): void {
  const command = program
    .command("test")
    .summary("Test decisions against expected results")
    .description(
      "Run test cases in YAML: the input of `nodewise decide`, and the expected decision. Reports which fail, and which reason codes the cases covered.",
    )
    .argument("<paths...>", "case files, or folders of them")
    .addOption(outputOption(["table", "json", "yaml", "junit", "github"]))
    .action((paths: readonly string[], flags: TestFlags) => finish(cli, () => testAll(paths, flags, cli)));
  examples(
    command,
    "nodewise test policy-tests",
    "nodewise test policy-tests -o junit > junit.xml",
    "nodewise schema test > case.schema.json",
  );
  command.addHelpText("after", EXIT_CODES);
}

async function testAll(paths: readonly string[], { output }: TestFlags, { terminal }: Cli): Promise<Outcome> {
  const { readCases } = await import("./case-file.ts");
  const { tryCase } = await import("./run-case.ts");
  const read = await readCases(paths);
  if (!read.ok) return read;
  const { cases, faults, passedOver } = read.value;
  const tried: CaseResult[] = [];
  for (const one of cases) tried.push(await tryCase(one));
  if (output === "table" && passedOver.length > 0)
    terminal.warn(`nodewise: ${passedOver.join(", ")}: contains no case, and no case uses it: skipped`);
  if (output === "table") printText(terminal, tableOf(tried, faults.length, terminal));
  else if (output === "junit")
    terminal.write(junitText("nodewise test", [...tried.map(junitOf), ...faults.map(junitOfFault)]));
  else if (output === "github")
    terminal.write(githubText([...tried.flatMap(annotationOf), ...faults.map(annotationOfFault)]));
  else {
    const unread = { faults: faults.map(({ file, line: message }) => ({ file, message })), passedOver };
    printData(
      terminal,
      { ...countsOf(tried), cases: tried.map(dataOf), reasons: coverageOf(tried), ...unread },
      output,
    );
  }
  if (faults.length > 0) return fault(EXIT.badInput, ...faults.map(({ line }) => line));
  return ok(tried.every(isPassed) ? EXIT.ok : EXIT.negative);
}

const isPassed = ({ mismatches }: CaseResult): boolean => mismatches.length === 0;
const countsOf = (tried: readonly CaseResult[]) => {
  const passed = tried.filter(isPassed).length;
  return { passed, failed: tried.length - passed };
};

interface Coverage {
  readonly kind: string;
  readonly cases: number;
  readonly met: readonly string[];
  readonly missed: readonly string[];
}
/** The codes of reasons of each kind with a case: those in some answer, and the others. */
function coverageOf(tried: readonly CaseResult[]): readonly Coverage[] {
  return KINDS.flatMap((kind) => {
    const own = tried.filter(({ case: of }) => of.kind === kind);
    if (own.length === 0) return [];
    const seen = new Set(own.flatMap(({ codes }) => [...codes]));
    const codes = specOf(kind).reasons;
    const [met, missed] = [codes.filter((code) => seen.has(code)), codes.filter((code) => !seen.has(code))];
    return [{ kind, cases: own.length, met, missed }];
  });
}

/** `faults`: how many faults case files have. */
function tableOf(tried: readonly CaseResult[], faults: number, { columns, paint }: Terminal): string {
  const rows = tried.map(({ case: { name, file, line, kind }, mismatches }) => ({
    cells: [
      mismatches.length === 0 ? { text: "ok", color: "green" as const } : { text: "FAILED", color: "red" as const },
      printable(name),
      kind,
      printable(`${file}:${line}`),
    ],
    notes: mismatches.map((one) => `  ${printable(mismatchText(one))}`),
  }));
  const cases = table(
    [{ title: "" }, { title: "CASE", shrinkTo: 20 }, { title: "KIND" }, { title: "WHERE", giveUp: 1 }],
    rows,
    columns,
    paint,
  );
  const covered = coverageOf(tried).map(({ kind, cases, met, missed }) => ({
    cells: [kind, String(cases), `${met.length} of ${met.length + missed.length}`, fewOf(missed)],
  }));
  const coverage = table(
    [
      { title: "KIND" },
      { title: "CASES", align: "right" },
      { title: "REASONS COVERED", align: "right" },
      { title: "NOT COVERED", shrinkTo: 30 },
    ],
    covered,
    columns,
    paint,
  );
  const { passed, failed } = countsOf(tried);
  const unread = faults === 0 ? "" : `, ${many(faults, "fault")} in case files`;
  const end =
    failed + faults === 0
      ? paint("green", `${many(passed, "case")} passed`)
      : paint("red", `${passed} passed, ${failed} failed${unread}`);
  return tried.length === 0 ? `${end}\n` : `${cases}\n${coverage}\n${end}\n`;
}

const SHOWN = 4;
const fewOf = (codes: readonly string[]): string =>
  codes.length <= SHOWN ? codes.join(", ") : `${codes.slice(0, SHOWN).join(", ")} and ${codes.length - SHOWN} more`;

const dataOf = ({ case: { name, file, line, kind, kubelet }, mismatches, codes, seconds }: CaseResult) => ({
  name,
  file,
  line,
  kind,
  ...(kubelet !== undefined && { kubelet }),
  passed: mismatches.length === 0,
  mismatches,
  reasons: [...codes],
  seconds,
});
const junitOf = ({ case: { name, file }, mismatches, seconds }: CaseResult): JUnitCase => {
  const lines = mismatches.map(mismatchText);
  const failure = lines[0] === undefined ? null : { message: lines[0], text: lines.join("\n") };
  return { suite: file, name, seconds, failure };
};
/** A fault of a case, or of a file whose cases could not be read. */
const junitOfFault = ({ file, line, name }: CaseFileFault): JUnitCase => ({
  suite: file,
  name: name ?? "can be read",
  seconds: 0,
  failure: { message: line, text: line },
});
const annotationOfFault = ({ file, line: message, name }: CaseFileFault): Annotation => {
  const [, line = "1"] = /:(\d+):\d+: /.exec(message) ?? [];
  return { level: "error", file, line: Number(line), title: name ?? "no case can be read", message };
};
const annotationOf = ({ case: { name, file, line }, mismatches }: CaseResult): readonly Annotation[] =>
  mismatches.length === 0
    ? []
    : [{ level: "error", file, line, title: name, message: mismatches.map(mismatchText).join("\n") }];
