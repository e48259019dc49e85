import type { Command, Help, Option } from "commander";
import { END_REASONS } from "../model/end-reasons.ts";
import { PROFILES } from "../profiles/index.ts";
import { machineNames } from "./inputs/machine-library.ts";

/** A command of commander's tree, with what completions and man pages need. */
export interface TreeCommand {
  /** The command's words after the program's name: `["decide", "eviction"]`; empty for the program. */
  readonly path: readonly string[];
  readonly summary: string;
  readonly commands: readonly { readonly name: string; readonly summary: string }[];
  readonly options: readonly TreeOption[];
  /** The words allowed as its argument; empty for any text. */
  readonly words: readonly string[];
  readonly takesFiles: boolean;
  readonly command: Command;
  readonly help: Help;
}
export interface TreeOption {
  /** `--output` and `-o`, as typed. */
  readonly flags: readonly string[];
  readonly summary: string;
  /** `none`: the next word is not its value, or need not be. */
  readonly value: "none" | "file" | "directory" | "text" | readonly string[];
  /** Names that are allowed instead of a file. */
  readonly names: readonly string[];
}

/** Every visible command with its visible options, parents first. */
export function commandTree(command: Command, path: readonly string[] = []): readonly TreeCommand[] {
  const help = command.createHelp();
  const below = help.visibleCommands(command);
  const own: TreeCommand = {
    path,
    summary: path.length === 0 ? help.commandDescription(command) : help.subcommandDescription(command),
    commands: below.map((one) => ({ name: one.name(), summary: help.subcommandDescription(one) })),
    options: help.visibleOptions(command).map(optionOf),
    words: wordsOf(command),
    takesFiles: command.registeredArguments.some((argument) => FILE.test(argument.name())),
    command,
    help,
  };
  return [own, ...below.flatMap((one) => commandTree(one, [...path, one.name()]))];
}

const FILE = /^(?:file|path|socket)s?$/;

function wordsOf(command: Command): readonly string[] {
  if (command.name() === "help" || command.name() === "man")
    return (command.parent?.commands ?? []).map((one) => one.name());
  if (command.name() === "machines") return machineNames();
  return command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
}

function optionOf(option: Option): TreeOption {
  const { short, long, description } = option;
  return {
    flags: [long, short].filter((flag) => flag !== undefined && flag !== null),
    summary: description,
    value: valueKindOf(option),
    names: long === "--machine" ? machineNames() : [],
  };
}

function valueKindOf({ flags, required, argChoices }: Option): TreeOption["value"] {
  if (!required) return "none";
  if (argChoices !== undefined) return argChoices;
  const name = /<([^>.]+)/.exec(flags)?.[1] ?? "";
  if (name === "reason") return END_REASONS;
  if (name === "version") return PROFILES.map(({ version }) => version);
  if (FILE.test(name)) return "file";
  return name === "dir" ? "directory" : "text";
}
