import { Argument, type Command } from "commander";
import { didYouMean } from "../../base/near-name.ts";
import { ok } from "../../base/result.ts";
import { KINDS } from "../../model/decision.ts";
import { table } from "../../text/table.ts";
import { type Cli, examples, finish } from "../cli.ts";
import { EXIT, fault, type Outcome, printData, printText } from "../terminal.ts";

/** In addition to the kinds of decisions, in the order of the list. */
const OTHERS = [
  "why",
  "why-list",
  "advise",
  "lint",
  "history",
  "history-show",
  "replay",
  "upgrade",
  "agreement",
  "test",
  "machine",
  "dra-drivers",
  ...[
    "test-result",
    "actuator",
    "history-removals",
    "history-removals-summary",
    "machines",
    "kinds",
    "pods",
    "pod",
    "top",
  ],
  ...[
    "probes-status",
    "probes-plan",
    "devices-status",
    "probes-history",
    "devices-history",
    "devices-allocate",
    "devices-free",
    "gc",
    "takeover",
    "token",
    "token-list",
    "version",
  ],
];
export const SCHEMAS: readonly string[] = [...KINDS, ...OTHERS, "snapshot"];
const NAME = new Argument("[name]", "a kind of decision, or another name of the list");
// for completions: the command itself reports an unknown name
NAME.argChoices = [...SCHEMAS];

export function addSchema(program: Command, cli: Cli): void {
  const command = program
    .command("schema")
    .summary("Print the JSON Schema of a command's JSON output")
    .description("Print the JSON Schema (2020-12) of a command's JSON output; without a name, list the schemas.")
    .addArgument(NAME)
    .action((name: string | undefined) => finish(cli, () => printSchema(name, cli)));
  examples(command, "nodewise schema", "nodewise schema allocatable > allocatable.schema.json");
}

async function printSchema(name: string | undefined, { terminal }: Cli): Promise<Outcome> {
  const { PUBLISHED, publishedSchema } = await import("./output-schemas.ts");
  if (name === undefined) {
    const rows = Array.from(PUBLISHED, ([one, { what }]) => ({ cells: [one, what] }));
    printText(
      terminal,
      table([{ title: "NAME" }, { title: "WHAT", shrinkTo: 20 }], rows, terminal.columns, terminal.paint),
    );
    return ok(EXIT.ok);
  }
  const found = PUBLISHED.get(name);
  if (found === undefined)
    return fault(
      EXIT.badInput,
      `schema ${name}: no such schema; ${didYouMean(name, SCHEMAS, "`nodewise schema` lists them")}`,
    );
  printData(terminal, await publishedSchema(name, found), "json");
  return ok(EXIT.ok);
}
