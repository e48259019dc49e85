import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { StoreSetting } from "../../db/open/node.ts";
import { type Cli, wholeNumber } from "./cli.ts";

/** The options that `api` and `up` take from commander. */
export interface ApiFlags {
  readonly port?: number;
  readonly host?: string;
  readonly dataDir?: string;
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

/** `below`: the folder below the usual one where a command keeps its own. */
export const dataDirOption = (below = ""): Option =>
  new Option(
    "--data-dir <dir>",
    `where the history is (default: $XDG_STATE_HOME/nodewise${below} or ~/.local/state/nodewise${below})`,
  ).env("NODEWISE_DATA_DIR");

/** As the Host header has it without its port: what holds a scheme, a port or a path is never equal to one. */
function hosts(text: string, before: readonly string[] = []): readonly string[] {
  if (/^(?:[\w-]+(?:\.[\w-]+)*|\[[\da-f:.]+\])$/i.test(text)) return [...before, text];
  throw new InvalidArgumentError("Expected the name of a host alone, such as nodewise.example, 10.0.0.1 or [fd00::1].");
}

export const withApiOptions = (command: Command, below = ""): Command =>
  command
    .addOption(
      new Option("--port <n>", "0: any free one (default: 8787)")
        .env("NODEWISE_PORT")
        .argParser(wholeNumber(0, 65_535)),
    )
    .addOption(new Option("--host <address>", "address to listen on (default: 127.0.0.1)").env("NODEWISE_HOST"))
    .addOption(dataDirOption(below))
    .addOption(
      new Option(
        "--tls-cert <file>",
        "serve HTTPS: the certificate with its chain, PEM; read anew when it changes",
      ).env("NODEWISE_TLS_CERT"),
    )
    .addOption(new Option("--tls-key <file>", "its private key, PEM; with --tls-cert").env("NODEWISE_TLS_KEY"))
    .addOption(
      new Option(
        "--admin-token-sha256 <hex>",
        "of a token that may do everything; `nodewise token generate` prints one",
      ).env("NODEWISE_TOKEN_SHA256"),
    )
    .addOption(
      new Option(
        "--allow-host <name...>",
        "names, beside loopback's, by which requests without a token may call",
      ).argParser(hosts),
    )
    .option("--trust-forwarded-host", "a reverse proxy sets X-Forwarded-Host, and that is whom browsers asked for")
    .addOption(new Option("--max-body-bytes <n>", "largest request (default: 8 MiB)").argParser(wholeNumber(1024)))
    .addOption(
      new Option(
        "--max-bytes-in-flight <n>",
        "bytes of all requests' bodies at a time; more are answered 503 (default: 32 of the largest)",
      ).argParser(wholeNumber(1024)),
    )
    .addOption(
      new Option(
        "--min-body-rate <n>",
        "bytes a second below which a body on its way is given up; 0: never (default: 4096)",
      ).argParser(wholeNumber(0)),
    )
    .addOption(
      new Option("--max-concurrency <n>", "requests of one caller at a time (default: 512)").argParser(wholeNumber(1)),
    )
    .addOption(
      new Option(
        "--threads <n>",
        "so many threads decide, from the start on; 0: the event loop does it all (default: as there is work, at most one less than CPUs)",
      )
        .env("NODEWISE_THREADS")
        .argParser(wholeNumber(0, 64)),
    )
    .addOption(
      new Option(
        "--metrics-nodes <n>",
        "nodes with metrics of their own, those that stand worst first (default: 100)",
      ).argParser(wholeNumber(0, 100_000)),
    )
    .addOption(
      new Option(
        "--keep-days <n>",
        "age at which decisions go: at the start, then every ten minutes (default: 30)",
      ).argParser(wholeNumber(1, 36_500)),
    )
    .addOption(
      new Option(
        "--keep-decisions <n>",
        "decisions kept of each node; more go at the same times (default: 10000)",
      ).argParser(wholeNumber(1)),
    );

/** The store that the options of a command name. */
export const storeSetting = (given: { readonly dataDir?: string }, { env }: Cli): StoreSetting => ({
  dataDir: given.dataDir ?? stateHome(env),
});

type Environment = Readonly<Record<string, string | undefined>>;

/** Where `nodewise up` does: what is tried out there never mixes with the history and the state of a node. */
export const tryoutHome = (env: Environment): string => join(stateHome(env), "up");

/** Where nodewise keeps its state by default: `$XDG_STATE_HOME/nodewise`, else `~/.local/state/nodewise`. */
export function stateHome(env: Environment): string {
  const base = env["XDG_STATE_HOME"] ?? "";
  // The base directory specification: a relative one is to be ignored.
  return join(isAbsolute(base) ? base : join(homedir(), ".local", "state"), "nodewise");
}
