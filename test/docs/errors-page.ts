import { PROBLEMS } from "../../api/http/problem.ts";
import { REFUSAL_CODES } from "../../api/model/decision.ts";

export const ERRORS_PAGE = "docs/reference/errors.md";

const HEAD = `# Error codes

The API reports errors as problem documents (RFC 9457, \`application/problem+json\`) with one of these codes in \`code\`; the list is complete. \`detail\` describes
the case, \`issues\` lists each place in the input, \`needs\` what is missing, \`advice\` what to do. Lines of a batch and decisions of a turn have the same codes.
\`nodewise decide -o json\` prints the codes marked * in \`refusal.code\`. Exit codes of commands are in \`nodewise --help\`.

| code | status | what it means | what to do |
| --- | --- | --- | --- |
`;

/** The text of the page. */
export function errorsPage(): string {
  const refusals: ReadonlySet<string> = new Set(REFUSAL_CODES);
  const rows = Object.entries(PROBLEMS).map(
    ([code, { status, title, advice }]) =>
      `| \`${code}\`${refusals.has(code) ? " *" : ""} | ${status} | ${title} | ${advice.replaceAll("|", "\\|")} |\n`,
  );
  return `${HEAD}${rows.join("")}`;
}
