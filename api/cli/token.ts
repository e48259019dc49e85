import type { TokenRow } from "../../db/store.ts";
import type { Scope } from "../auth/token.ts";
import { createToken, listTokens, revokeToken } from "../auth/tokens.ts";
import { ok } from "../model/result.ts";
import { printable } from "../text/style.ts";
import { table } from "../text/table.ts";
import type { Cli } from "./cli.ts";
import { stateHome } from "./directories.ts";
import { EXIT, fault, type Outcome } from "./exit.ts";
import { storeFault, withHistory } from "./open-history.ts";
import { type Form, printData } from "./output.ts";

export interface TokenGiven {
  readonly dataDir?: string;
  readonly output: Form;
  readonly scope: readonly Scope[];
  readonly node?: string;
}
type Where = Pick<TokenGiven, "dataDir">;
const dirOf = ({ dataDir }: Where, { env }: Cli): string => dataDir ?? stateHome(env);

/** The token alone on standard output, so that a script can take it; what to know about it on standard error. */
export const create = (name: string, given: TokenGiven, cli: Cli): Promise<Outcome> =>
  withHistory(dirOf(given, cli), true, async (store) => {
    const { terminal } = cli;
    const request = { name, scopes: [...new Set(given.scope)], node: given.node ?? null, now: Date.now() };
    const created = await createToken(store, request);
    if (!created.ok) return storeFault(created);
    const { token, row } = created.value;
    if (given.output !== "table") printData(terminal, { token, ...shown(row) }, given.output);
    else {
      terminal.write(`${token}\n`);
      const node = row.node === null ? "any node" : `node ${row.node}`;
      terminal.warn(`token ${row.id} for ${node} may: ${row.scopes.join(", ")}. It is shown only now; keep it secret.`);
    }
    return ok(EXIT.ok);
  });

export const list = (given: TokenGiven, cli: Cli): Promise<Outcome> =>
  withHistory(dirOf(given, cli), false, async (store) => {
    const { terminal } = cli;
    const tokens = await listTokens(store);
    if (!tokens.ok) return storeFault(tokens);
    const rows = tokens.value.map(shown);
    if (given.output !== "table") printData(terminal, rows, given.output);
    else if (rows.length === 0) terminal.warn("no tokens: on loopback everyone may call the API");
    else terminal.write(tokenTable(rows, cli));
    return ok(EXIT.ok);
  });

/** An id counts before a name; of a name there must be one active token. */
export const revoke = (which: string, given: Where, cli: Cli): Promise<Outcome> =>
  withHistory(dirOf(given, cli), false, async (store) => {
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
    return ok(EXIT.ok);
  });

const timeText = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
/** Without the hash. */
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
