import { readFileSync } from "node:fs";
import packageJson from "../../../package.json" with { type: "json" };
import { ok, type Result } from "../../model/result.ts";
import type { ServeOptions } from "../../server.ts";
import type { Cli } from "../cli.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";

export interface TelemetryFlags {
  readonly decisionLog?: string;
  readonly decisionLogTokenFile?: string;
  readonly decisionLogLabel?: Readonly<Record<string, string>>;
  readonly decisionLogErase?: readonly string[];
  readonly decisionLogMaxBytes?: number;
}
type Log = NonNullable<ServeOptions["decisionLog"]>;

/** The decision log as flags and variables say it. Errors: no URL that can be posted to, a secret in sight, a token that cannot be read. */
export function telemetryOf(given: TelemetryFlags, cli: Cli): Result<Pick<ServeOptions, "decisionLog">, Fault> {
  const { decisionLog: target, decisionLogLabel, decisionLogErase, decisionLogMaxBytes } = given;
  if (target === undefined) {
    const lonely = Object.keys(given).find(
      (name) => name.startsWith("decisionLog") && given[name as keyof TelemetryFlags] !== undefined,
    );
    return lonely === undefined || lonely === "decisionLogTokenFile"
      ? ok({})
      : fault(EXIT.badInput, "options of the decision log are given without --decision-log, which says where it goes");
  }
  const to = targetOf(target, given, cli);
  if (!to.ok) return to;
  const decisionLog: Log = {
    to: to.value,
    labels: decisionLogLabel ?? {},
    version: packageJson.version,
    erase: decisionLogErase ?? [],
    ...(decisionLogMaxBytes === undefined ? {} : { maxBytes: decisionLogMaxBytes }),
  };
  return ok({ decisionLog });
}

function targetOf(
  target: string,
  { decisionLogTokenFile: tokenFile }: TelemetryFlags,
  { env }: Cli,
): Result<Log["to"], Fault> {
  if (!/^[a-z][a-z\d+.-]*:\/\//i.test(target)) return ok({ file: target });
  const url = URL.parse(target);
  if (url === null || !/^https?:$/.test(url.protocol))
    return fault(EXIT.badInput, "--decision-log: expected a URL that begins with https:// or http://, or a file");
  if (url.username !== "" || url.password !== "")
    return fault(
      EXIT.badInput,
      "--decision-log: every user of this machine can see a password among the arguments: leave it out, and give --decision-log-token-file or set NODEWISE_DECISION_LOG_TOKEN",
    );
  const inEnvironment = env["NODEWISE_DECISION_LOG_TOKEN"] || null;
  const token = (): string | null =>
    tokenFile === undefined ? inEnvironment : readFileSync(tokenFile, "utf8").trim() || null;
  const isReadable = url.protocol === "http:" && !/^(?:localhost|127\.[\d.]+|\[::1\])$/.test(url.hostname);
  try {
    if (token() !== null && isReadable)
      return fault(
        EXIT.badInput,
        `--decision-log ${url.origin}: a token is not sent over http to another machine, where it can be read on the way: use https`,
      );
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return fault(EXIT.badInput, `--decision-log-token-file ${tokenFile}: cannot be read (${code})`);
  }
  return ok({ url, token });
}
