/** Something that a check found, for the tools that continuous integration has. */
export interface Annotation {
  readonly level: "error" | "warning" | "notice";
  readonly file: string;
  readonly line: number;
  readonly title: string;
  readonly message: string;
}

/** GitHub's workflow commands: shown beside the lines of a pull request. */
export const githubText = (annotations: readonly Annotation[]): string =>
  annotations
    .map(
      ({ level, file, line, title, message }) =>
        `::${level} file=${githubValue(file)},line=${line},title=${githubValue(title)}::${githubData(message)}\n`,
    )
    .join("");
const githubData = (text: string): string =>
  text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
const githubValue = (text: string): string => githubData(text).replaceAll(":", "%3A").replaceAll(",", "%2C");

/** An annotation of a check that has a code for each kind of finding. */
export interface CodedAnnotation extends Annotation {
  readonly code: string;
  /** The subject within the file, such as a field; empty: the file as a whole. */
  readonly subject: string;
}

const SARIF_LEVEL: Readonly<Record<Annotation["level"], string>> = {
  error: "error",
  warning: "warning",
  notice: "note",
};

/** A log in SARIF 2.1.0, which GitHub code scanning, GitLab and editors read. */
export function sarifText(version: string, annotations: readonly CodedAnnotation[]): string {
  const codes = [...new Set(annotations.map(({ code }) => code))];
  const results = annotations.map(({ level, file, line, message, code, subject }) => ({
    ruleId: code,
    ruleIndex: codes.indexOf(code),
    level: SARIF_LEVEL[level],
    message: { text: message },
    locations: [
      {
        physicalLocation: { artifactLocation: { uri: uriOf(file) }, region: { startLine: line } },
        ...(subject === "" ? {} : { logicalLocations: [{ fullyQualifiedName: subject }] }),
      },
    ],
  }));
  const rules = codes.map((id) => ({ id, shortDescription: { text: id.replaceAll("-", " ") } }));
  const log = {
    $schema: "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
    version: "2.1.0",
    runs: [{ tool: { driver: { name: "nodewise", semanticVersion: version, rules } }, results }],
  };
  return `${JSON.stringify(log, null, 2)}\n`;
}
/** A relative path stays relative, so that readers of the log find it from the repository's root. */
const uriOf = (path: string): string => {
  const uri = encodeURI(path.replace(/^\.\//, "")).replaceAll("#", "%23").replaceAll("?", "%3F");
  return path.startsWith("/") ? `file://${uri}` : uri;
};

/** One test of a suite. */
export interface JUnitCase {
  readonly suite: string;
  readonly name: string;
  readonly seconds: number;
  /** The failure; null: the test passed. */
  readonly failure: { readonly message: string; readonly text: string } | null;
}

/** The XML that Jenkins, GitLab and others read. */
export function junitText(name: string, cases: readonly JUnitCase[]): string {
  const suites = Array.from(
    Map.groupBy(cases, ({ suite }) => suite),
    ([suite, own]) => [
      `  <testsuite ${attributes({ name: suite, ...counts(own) })}>`,
      ...own.flatMap((one) => {
        const head = `    <testcase ${attributes({ classname: suite, name: one.name, time: one.seconds.toFixed(3) })}`;
        if (one.failure === null) return [`${head}/>`];
        const { message, text } = one.failure;
        return [`${head}>`, `      <failure ${attributes({ message })}>${xml(text)}</failure>`, "    </testcase>"];
      }),
      "  </testsuite>",
    ],
  );
  const lines = [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${attributes({ name, ...counts(cases) })}>`,
    ...suites.flat(),
    "</testsuites>",
  ];
  return `${lines.join("\n")}\n`;
}

const counts = (cases: readonly JUnitCase[]) => ({
  tests: String(cases.length),
  failures: String(cases.filter(({ failure }) => failure !== null).length),
  time: cases.reduce((sum, { seconds }) => sum + seconds, 0).toFixed(3),
});
const attributes = (values: Readonly<Record<string, string>>): string =>
  Object.entries(values)
    .map(([name, value]) => `${name}="${xml(value)}"`)
    .join(" ");
/** XML 1.0 has no way to write most control characters. */
const xml = (text: string): string =>
  text
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("\n", "&#10;");
