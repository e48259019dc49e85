import { type Command, InvalidArgumentError, Option } from "commander";
import { SCOPES, type Scope } from "../../dependencies.ts";
import { isScope } from "../../http/auth/tokens.ts";
import { nodeName } from "../../model/fields.ts";
import { withHistoryOptions } from "../api-options.ts";
import { type Cli, examples, finish, outputOption } from "../cli.ts";
import type { Form } from "../terminal.ts";
import type { TokenFlags } from "./token.ts";

const DEFAULT_SCOPES: readonly Scope[] = ["decide", "read"];

/** Scopes from `decide read`, `decide,read`, and repeated options: all of them. */
function addScopes(text: string, before: readonly Scope[] | undefined): readonly Scope[] {
  const named = text.split(",");
  if (!named.every(isScope)) throw new InvalidArgumentError(`Allowed choices are ${SCOPES.join(", ")}.`);
  return before === undefined || before === DEFAULT_SCOPES ? named : [...before, ...named];
}

/** Validates a node's name: with another name the token would be useless. */
function takenNode(text: string): string {
  const name = nodeName.safeParse(text);
  if (!name.success) throw new InvalidArgumentError(`A node's name ${name.error.issues[0]?.message}.`);
  return text;
}
/** Validates the name by which the token is listed and revoked. */
function takenName(text: string): string {
  if (text.trim() === "") throw new InvalidArgumentError("It must not be empty: give its owner or its purpose.");
  return text;
}

export function addToken(program: Command, cli: Cli): void {
  const group = program
    .command("token")
    .summary("Create, list and revoke the API's tokens")
    .description(
      "Make, list and revoke the API's tokens. As soon as one exists, the API requires a token from every caller, even after it is revoked.",
    );
  examples(
    group,
    "TOKEN=$(nodewise token create dashboard --scope read)",
    "nodewise token create actuator --scope decide --node $(hostname) > token && chmod 600 token",
    "nodewise token create edge-1 --scope decide --node edge-1 --print",
    "nodewise token list",
    "nodewise token revoke dashboard",
    "nodewise token open --to-everyone",
  );
  const load = () => import("./token.ts");
  withHistoryOptions(
    group
      .command("create")
      .description("Print a new token; this is the only time that it can be seen.")
      .argument("<name>", "its owner or its purpose", takenName)
      .addOption(
        new Option("--scope <scopes...>", "its rights").choices(SCOPES).argParser(addScopes).default(DEFAULT_SCOPES),
      )
      .option("--node <name>", "the only node that it may act for (default: any)", takenNode)
      .option("--print", "store nothing: also print the SQL that adds it to a Worker's database"),
  )
    .addOption(outputOption())
    .action((name: string, given: TokenFlags) => finish(cli, async () => (await load()).create(name, given, cli)));
  group
    .command("generate")
    .description(
      "Print a new administrator's token and its SHA-256, and store neither: the API (or the Worker) needs the hash, its callers need the token.",
    )
    .action(() => finish(cli, async () => (await load()).generate(cli)));
  withHistoryOptions(
    group.command("list").description("List all tokens, the revoked ones too; secrets are not stored."),
  )
    .addOption(outputOption())
    .action((given: TokenFlags) => finish(cli, async () => (await load()).list(given, cli)));
  withHistoryOptions(
    group
      .command("revoke")
      .description("Revoke a token by its id or its name, at once.")
      .argument("<id-or-name>", "as `token list` shows them; a name that several active tokens have is not enough"),
  ).action((which: string, given: { dataDir?: string; output: Form }) =>
    finish(cli, async () => (await load()).revoke(which, given, cli)),
  );
  withHistoryOptions(
    group
      .command("open")
      .description("Open an API on loopback to every caller again: forget the tokens, all of which must be revoked.")
      .option("--to-everyone", "allow everything to every client that reaches the port, without a token"),
  ).action((given: { dataDir?: string; toEveryone?: boolean }) =>
    finish(cli, async () => (await load()).open(given, cli)),
  );
}
