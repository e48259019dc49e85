import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { StoreSetting } from "../../db/open/node.ts";
import { hasPassword, postgresSetting } from "../../db/open/setting.ts";
import { ok, type Result } from "../base/result.ts";
import { type Cli, wholeNumber } from "./cli.ts";
import { EXIT, type Fault, fault } from "./terminal.ts";

/** The options of `api` and `up`, as commander names them. */
export interface ApiFlags extends HistoryPlace {
  readonly port?: number;
  readonly host?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly adminTokenSha256?: string;
  readonly allowHost?: readonly string[];
  readonly trustForwardedHost?: boolean;
  readonly maxBodyBytes?: number;
  readonly maxConcurrency?: number;
  readonly maxBytesInFlight?: number;
  readonly minBodyRate?: number;
  readonly metricsNodes?: number;
  readonly threads?: number;
  readonly keepDays?: number;
  readonly keepDecisions?: number;
}

/** `below`: the subfolder of the default one that a command uses. */
const dataDirOption = (below = ""): Option =>
  new Option(
    "--data-dir <dir>",
    `where the history is (default: $XDG_STATE_HOME/nodewise${below} or ~/.local/state/nodewise${below})`,
  ).env("NODEWISE_DATA_DIR");

/** The place of a history, from a command's options. */
interface HistoryPlace {
  readonly dataDir?: string;
  readonly database?: string;
  readonly databasePasswordFile?: string;
}
/** A history, or an API instead, from a command's options. */
export interface HistorySourceFlags extends HistoryPlace {
  readonly api?: string;
  readonly tokenFile?: string;
}
/** The database of the history: for every command with `--data-dir` except `up`, which has a history of its own. */
export const databaseOption = (): Option =>
  new Option(
    "--database <url>",
    "the history is in a Postgres database: postgres://user@host/name (or set NODEWISE_DATABASE, which may hold a password)",
  );
export const passwordFileOption = (): Option =>
  new Option(
    "--database-password-file <file>",
    "file with the password for the database (or set PGPASSWORD or PGPASSFILE)",
  ).env("NODEWISE_DATABASE_PASSWORD_FILE");

/** Adds the options for the place of a history. */
export const withHistoryOptions = (command: Command): Command =>
  command.addOption(dataDirOption()).addOption(databaseOption()).addOption(passwordFileOption());
/** Adds the options for an API instead of a history. */
export const withApiAddressOptions = (command: Command): Command =>
  command
    .option("--api <url>", "ask this API instead")
    .option("--token-file <file>", "file with the token for --api (or set NODEWISE_TOKEN)");
/** Adds the options for a history, or for an API instead. */
export const withHistoryOrApiOptions = (command: Command): Command =>
  withApiAddressOptions(withHistoryOptions(command));

/** A host as in the Host header without its port; a text with a scheme, a port or a path could never match. */
function hosts(text: string, before: readonly string[] = []): readonly string[] {
  if (/^(?:[\w-]+(?:\.[\w-]+)*|\[[\da-f:.]+\])$/i.test(text)) return [...before, text];
  throw new InvalidArgumentError("Expected only the name of a host, such as nodewise.example, 10.0.0.1 or [fd00::1].");
}

export const withApiOptions = (command: Command, below = ""): Command =>
  command
    .addOption(
      new Option("--port <n>", "0: any free port (default: 8787)")
        .env("NODEWISE_PORT")
        .argParser(wholeNumber(0, 65_535)),
    )
    .addOption(new Option("--host <address>", "address to listen on (default: 127.0.0.1)").env("NODEWISE_HOST"))
    .addOption(dataDirOption(below))
    .addOption(
      new Option(
        "--tls-cert <file>",
        "serve HTTPS: the certificate with its chain, PEM; read again when it changes",
      ).env("NODEWISE_TLS_CERT"),
    )
    .addOption(new Option("--tls-key <file>", "private key for --tls-cert, PEM").env("NODEWISE_TLS_KEY"))
    .addOption(
      new Option(
        "--admin-token-sha256 <hex>",
        "SHA-256 of the administrator's token; `nodewise token generate` prints one",
      ).env("NODEWISE_TOKEN_SHA256"),
    )
    .addOption(
      new Option(
        "--allow-host <name...>",
        "host names, besides loopback's, that requests without a token may use",
      ).argParser(hosts),
    )
    .option("--trust-forwarded-host", "X-Forwarded-Host, set by a reverse proxy, is the host that browsers asked for")
    .addOption(new Option("--max-body-bytes <n>", "largest request (default: 8 MiB)").argParser(wholeNumber(1024)))
    .addOption(
      new Option(
        "--max-bytes-in-flight <n>",
        "bytes of all request bodies at a time; beyond that requests get 503 (default: 32 of the largest)",
      ).argParser(wholeNumber(1024)),
    )
    .addOption(
      new Option(
        "--min-body-rate <n>",
        "a request body that arrives at fewer bytes a second is aborted; 0: never (default: 4096)",
      ).argParser(wholeNumber(0)),
    )
    .addOption(
      new Option("--max-concurrency <n>", "requests of one caller at a time (default: 512)").argParser(wholeNumber(1)),
    )
    .addOption(
      new Option(
        "--threads <n>",
        "number of deciding threads from the start; 0: the event loop decides (default: as many as there is work for, at most one less than CPUs)",
      )
        .env("NODEWISE_THREADS")
        .argParser(wholeNumber(0, 64)),
    )
    .addOption(
      new Option(
        "--metrics-nodes <n>",
        "number of nodes with metrics of their own, worst state first (default: 100)",
      ).argParser(wholeNumber(0, 100_000)),
    )
    .addOption(
      new Option(
        "--keep-days <n>",
        "days after which decisions are removed: at the start, then every ten minutes (default: 30)",
      ).argParser(wholeNumber(1, 36_500)),
    )
    .addOption(
      new Option(
        "--keep-decisions <n>",
        "decisions kept of each node; older ones are removed at the same times (default: 10000)",
      ).argParser(wholeNumber(1)),
    );

/** The store that a command's options name. Errors: an invalid database URL, or a visible password. */
export function storeSetting(given: HistoryPlace, { env }: Cli): Result<StoreSetting, Fault> {
  const { database, dataDir, databasePasswordFile: passwordFile } = given;
  const isTyped = dataDir !== undefined && dataDir !== env["NODEWISE_DATA_DIR"];
  if (database !== undefined && isTyped)
    return fault(EXIT.badInput, "--database and --data-dir name two places of the history: give only one");
  if (database !== undefined && hasPassword(database))
    return fault(
      EXIT.badInput,
      "--database: every user of this machine can see a password in the arguments: leave it out, and set NODEWISE_DATABASE to the whole URL, or PGPASSWORD, or give --database-password-file",
    );
  const url = database ?? (isTyped ? undefined : env["NODEWISE_DATABASE"] || undefined);
  if (url === undefined) return ok({ dataDir: dataDir ?? stateHome(env) });
  const name = database === undefined ? "NODEWISE_DATABASE" : "--database";
  let password: string | undefined;
  try {
    password = passwordFile === undefined ? undefined : readFileSync(passwordFile, "utf8").replace(/\r?\n$/, "");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return fault(EXIT.badInput, `--database-password-file ${passwordFile}: cannot be read (${code})`);
  }
  if (password === "")
    return fault(EXIT.badInput, `--database-password-file ${passwordFile}: there is no password in it`);
  const setting = postgresSetting(url, password);
  return setting.ok ? ok({ database: setting.value }) : fault(EXIT.badInput, `${name}: ${setting.error}`);
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The state of `nodewise up`: experiments never mix with a node's history and state. */
export const upStateDirectory = (env: Environment): string => join(stateHome(env), "up");

/** The default place of nodewise's state: `$XDG_STATE_HOME/nodewise`, else `~/.local/state/nodewise`. */
export function stateHome(env: Environment): string {
  const base = env["XDG_STATE_HOME"] ?? "";
  // XDG Base Directory Specification: a relative path must be ignored
  return join(isAbsolute(base) ? base : join(homedir(), ".local", "state"), "nodewise");
}
