import type { TokenRow } from "../../../db/rows.ts";
import { tokenSql } from "../../../db/sql/tokens.ts";
import { ok } from "../../base/result.ts";
import type { Scope } from "../../dependencies.ts";
import {
  type CreatedToken,
  createToken,
  freshToken,
  listTokens,
  newToken,
  openToEveryone,
  revokeToken,
  webSha256,
} from "../../http/auth/tokens.ts";
import { shellWord } from "../../text/shell-word.ts";
import { printable } from "../../text/style.ts";
import { table } from "../../text/table.ts";
import { storeSetting } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import { storeFault, withHistory } from "../inputs/open-history.ts";
import { EXIT, type Form, fault, type Outcome, printData, printText } from "../terminal.ts";

export interface TokenFlags {
  readonly dataDir?: string;
  readonly output: Form;
  readonly scope: readonly Scope[];
  readonly node?: string;
  /** Store nothing. */
  readonly print?: boolean;
}
type TokenLocation = Pick<TokenFlags, "dataDir">;

/** Prints only the token on standard output, for scripts; information about it goes to standard error. */
export async function create(name: string, given: TokenFlags, cli: Cli): Promise<Outcome> {
  const request = { name, scopes: [...new Set(given.scope)], node: given.node ?? null, now: Date.now() };
  if (given.print === true) return print(await freshToken(request), given, cli);
  return withHistory(storeSetting(given, cli), true, async (store) => {
    const created = await createToken(store, request);
    if (!created.ok) return storeFault(created);
    printToken(created.value, {}, given, cli);
    return ok(EXIT.ok);
  });
}

/** For a history that this machine cannot open, such as a Worker's: prints the SQL that stores the token there. */
function print(created: CreatedToken, given: TokenFlags, cli: Cli): Outcome {
  const sql = tokenSql(created.row);
  printToken(created, { sql }, given, cli);
  if (given.output === "table")
    cli.terminal.warn(`it is not stored yet: npx wrangler d1 execute DB --remote --command ${shellWord(sql)}`, true);
  return ok(EXIT.ok);
}

function printToken({ token, row }: CreatedToken, more: object, given: TokenFlags, { terminal }: Cli): void {
  if (given.output !== "table") {
    printData(terminal, { token, ...shown(row), ...more }, given.output);
    return;
  }
  terminal.write(`${token}\n`);
  const node = row.node === null ? "any node" : `node ${row.node}`;
  terminal.warn(`token ${row.id} for ${node}, scope ${row.scopes.join(", ")}. It is shown only now; keep it secret.`);
}

/** Prints two lines in the form of `docker --env-file` and `kubectl create secret --from-env-file`. */
export async function generate({ terminal }: Cli): Promise<Outcome> {
  const { text } = newToken();
  terminal.write(`NODEWISE_TOKEN=${text}\nNODEWISE_TOKEN_SHA256=${await webSha256(text)}\n`);
  terminal.warn(
    "It has all rights and is shown only now. The API reads NODEWISE_TOKEN_SHA256, its callers NODEWISE_TOKEN.",
  );
  return ok(EXIT.ok);
}

export const list = (given: TokenFlags, cli: Cli): Promise<Outcome> =>
  withHistory(storeSetting(given, cli), false, async (store) => {
    const { terminal } = cli;
    const tokens = await listTokens(store);
    if (!tokens.ok) return storeFault(tokens);
    const rows = tokens.value.map(shown);
    if (given.output !== "table") printData(terminal, rows, given.output);
    else if (rows.length === 0) terminal.warn("no tokens: on loopback every caller may use the API");
    else printText(terminal, tokenTable(rows, cli));
    if (rows.length > 0 && rows.every(({ revokedAt }) => revokedAt !== null)) terminal.warn(NOBODY);
    return ok(EXIT.ok);
  });

/** An id takes precedence over a name; a name must have exactly one active token. */
export const revoke = (which: string, given: TokenLocation, cli: Cli): Promise<Outcome> =>
  withHistory(storeSetting(given, cli), false, async (store) => {
    const tokens = await listTokens(store);
    if (!tokens.ok) return storeFault(tokens);
    const active = tokens.value.filter(({ revokedAtMs }) => revokedAtMs === null);
    const byId = active.filter(({ id }) => id === which);
    const [found, ...others] = byId.length > 0 ? byId : active.filter(({ name }) => name === which);
    if (found === undefined) {
      const none = `no active token has the id or the name ${printable(which)}`;
      return fault(EXIT.badInput, `${none}: \`nodewise token list\` shows them`);
    }
    if (others.length > 0) {
      const ids = [found, ...others].map(({ id }) => id).join(", ");
      return fault(
        EXIT.badInput,
        `${others.length + 1} active tokens have the name ${printable(which)}: name one by its id: ${ids}`,
      );
    }
    const revoked = await revokeToken(store, found.id, Date.now());
    if (!revoked.ok) return storeFault(revoked);
    cli.terminal.warn(`token ${found.id} (${printable(found.name)}) is revoked`);
    if (active.length === 1) cli.terminal.warn(NOBODY);
    return ok(EXIT.ok);
  });

/** Opens the API to everyone who can reach the port, without any restriction, so the option must be given explicitly. */
export async function open(given: TokenLocation & { readonly toEveryone?: boolean }, cli: Cli): Promise<Outcome> {
  if (given.toEveryone !== true)
    return fault(
      EXIT.badInput,
      "give --to-everyone: every caller that reaches the API on loopback may then do everything",
    );
  return withHistory(storeSetting(given, cli), false, async (store) => {
    const opened = await openToEveryone(store);
    if (!opened.ok) return storeFault(opened);
    const { active, forgotten } = opened.value;
    if (active > 0)
      return fault(
        EXIT.negative,
        `${active} ${active === 1 ? "token is" : "tokens are"} active, so the API stays closed: revoke them first (\`nodewise token list\`)`,
      );
    const tokens =
      forgotten === 0
        ? "there is no token"
        : `${forgotten} revoked ${forgotten === 1 ? "token is" : "tokens are"} forgotten`;
    cli.terminal.warn(`${tokens}: on loopback every caller may use the API, until \`nodewise token create\` makes one`);
    return ok(EXIT.ok);
  });
}

const NOBODY =
  "no token is active: no caller may use the API until `nodewise token create`, or `nodewise token open --to-everyone` on loopback";

const timeText = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
/** The token's row without the hash. */
const shown = ({ id, name, scopes, node, createdAtMs, revokedAtMs }: TokenRow) => ({
  id,
  name,
  scopes,
  node,
  createdAt: timeText(createdAtMs),
  revokedAt: timeText(revokedAtMs),
});

function tokenTable(rows: readonly ReturnType<typeof shown>[], { terminal }: Cli): string {
  return table(
    [
      { title: "ID" },
      { title: "NAME", shrinkTo: 12 },
      { title: "SCOPES" },
      { title: "NODE" },
      { title: "CREATED", giveUp: 1 },
      { title: "REVOKED" },
    ],
    rows.map(({ id, name, scopes, node, createdAt, revokedAt }) => ({
      cells: [id, printable(name), scopes.join(","), printable(node ?? "any"), createdAt ?? "", revokedAt ?? ""],
    })),
    terminal.columns,
    terminal.paint,
  );
}
