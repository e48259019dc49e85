import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command, Help } from "commander";
import packageJson from "../../../package.json" with { type: "json" };
import { didYouMean, similarNames } from "../../base/near-name.ts";
import { ok } from "../../base/result.ts";
import type { Cli } from "../cli.ts";
import { commandTree, type TreeCommand } from "../command-tree.ts";
import { EXIT, fault, type Outcome } from "../terminal.ts";

export interface ManFlags {
  readonly dir?: string;
}

/** Prints one page, or writes all. Errors: no such command; the directory cannot be written. */
export async function man(
  path: readonly string[],
  { dir }: ManFlags,
  program: Command,
  { terminal }: Cli,
): Promise<Outcome> {
  const tree = commandTree(program);
  if (dir !== undefined) return path.length > 0 ? fault(EXIT.badInput, ONE_OR_ALL) : writeAll(tree, dir, terminal);
  const found = tree.find(({ path: words }) => words.join(" ") === path.join(" "));
  if (found !== undefined) {
    terminal.write(manPage(found));
    return ok(EXIT.ok);
  }
  const names = tree.map(({ path: words }) => words.join(" "));
  const wanted = path.join(" ");
  // `evicton` is similar only to the last word of `decide eviction`
  const before = path.slice(0, -1).join(" ");
  const beside = tree.filter(({ path: words }) => before === "" || words.slice(0, -1).join(" ") === before);
  const [last] = similarNames(path.at(-1) ?? "", [...new Set(beside.map(({ path: words }) => words.at(-1) ?? ""))]);
  const whole = beside
    .map(({ path: words }) => words.join(" "))
    .find((name) => name === last || name.endsWith(` ${last}`));
  const meant =
    whole === undefined ? didYouMean(wanted, names, "`nodewise --help` lists them") : `did you mean \`${whole}\`?`;
  return fault(EXIT.badInput, `there is no command \`${wanted}\`; ${meant}`);
}
const ONE_OR_ALL = "--dir writes the pages of all commands: leave the command out";

function writeAll(tree: readonly TreeCommand[], dir: string, terminal: Cli["terminal"]): Outcome {
  try {
    mkdirSync(dir, { recursive: true });
    for (const one of tree) writeFileSync(join(dir, `${pageName(one)}.1`), manPage(one));
  } catch (error) {
    return fault(EXIT.failed, `--dir ${dir}: cannot be written (${(error as NodeJS.ErrnoException).code})`);
  }
  terminal.warn(`${tree.length} pages are in ${dir}`);
  return ok(EXIT.ok);
}

const pageName = ({ path }: Pick<TreeCommand, "path">): string => ["nodewise", ...path].join("-");

/** The man page of a command in roff (man(7)), from its help. */
function manPage(one: TreeCommand): string {
  const { command, help, summary, commands, path } = one;
  const name = pageName(one);
  const [first = ""] = summary.split(/\.(?:\s|$)/);
  const sections = [
    section("NAME", [`${roff(name)} \\- ${roff(first)}`]),
    section("SYNOPSIS", [roff(help.commandUsage(command))]),
    section("DESCRIPTION", [roff(help.commandDescription(command))]),
    section(
      "ARGUMENTS",
      help.visibleArguments(command).map((argument) => item(argument.name(), help.argumentDescription(argument))),
    ),
    ...optionSections(command, help),
    section(
      "COMMANDS",
      commands.map((below) => item(below.name, below.summary)),
    ),
    ...textAfter(command).map(([title, lines]) => section(title.toUpperCase(), [".nf", ...lines.map(roff), ".fi"])),
    section("SEE ALSO", [seeAlso(path, commands)]),
  ];
  return `.TH ${quoted(name.toUpperCase())} 1 "" ${quoted(`nodewise ${packageJson.version}`)} "Nodewise"\n${sections.join("")}`;
}

const section = (title: string, paragraphs: readonly string[]): string =>
  paragraphs.every((text) => text === "") ? "" : `.SH ${quoted(title)}\n${paragraphs.join("\n")}\n`;
const item = (term: string, text: string): string => `.TP\n\\fB${roff(term)}\\fR\n${roff(text)}`;
const quoted = (text: string): string => `"${roff(text).replaceAll('"', "\\(dq")}"`;

function optionSections(command: Command, help: Help): readonly string[] {
  const visible = help.visibleOptions(command);
  const groups = Map.groupBy(visible, ({ helpGroupHeading = "Options:" }) => helpGroupHeading);
  const texts = [...groups].flatMap(([heading, options]) => [
    ...(groups.size === 1 ? [] : [`.SS ${quoted(heading.replace(/:$/, ""))}`]),
    ...options.map((option) => item(help.optionTerm(option), help.optionDescription(option))),
  ]);
  return [section("OPTIONS", texts)];
}

/** The paragraphs after the options in the help, by title: `Examples:`, `Exit codes:`. */
function textAfter(command: Command): readonly (readonly [title: string, lines: readonly string[]])[] {
  const usual = command.configureOutput();
  let text = "";
  command
    .configureOutput({
      writeOut: (more) => {
        text += more;
      },
    })
    .outputHelp();
  command.configureOutput(usual);
  text = text.slice(command.helpInformation().length);
  const found: [string, string[]][] = [];
  for (const line of text.split("\n").filter((one) => one.trim() !== "")) {
    const title = /^([A-Z][\w ]*)(?::$|, )/.exec(line)?.[1];
    if (title !== undefined) found.push([title, line.endsWith(":") && !line.includes(",") ? [] : [line]]);
    else found.at(-1)?.[1].push(line);
  }
  return found;
}

function seeAlso(path: readonly string[], commands: TreeCommand["commands"]): string {
  const parent = path.length === 0 ? [] : [path.slice(0, -1)];
  const below = commands.map(({ name }) => [...path, name]);
  return [...parent, ...below].map((words) => `\\fB${roff(pageName({ path: words }))}\\fR(1)`).join(", ");
}

/** Text escaped for roff: a backslash, a dash that can be copied, and a dot or quote that would start a request. */
const roff = (text: string): string => text.replaceAll("\\", "\\e").replaceAll("-", "\\-").replace(/^[.']/gm, "\\&$&");
