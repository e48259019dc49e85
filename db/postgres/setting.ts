import { readFileSync } from "node:fs";
import passwordOf, { type Connection } from "pgpass";
import { err, ok, type Result } from "../../api/base/result.ts";
import { isLoopback } from "../../api/model/fields.ts";

/** Names a database. Plain data, by which a thread finds the same one. */
export interface PostgresSetting {
  /** The URL without a password. */
  readonly url: string;
  /** The password; absent: PGPASSWORD, or the file that PGPASSFILE names, or none. */
  readonly password?: string;
}

const SSL_MODES = ["disable", "require", "verify-ca", "verify-full"] as const;
const PARAMETERS = ["host", "user", "sslmode", "sslrootcert", "sslcert", "sslkey"];
/** libpq has more, which promise nothing. */
const EXAMPLE = "postgres://user@host:5432/database";

interface ConnectionTarget {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string | undefined;
  readonly parameters: ReadonlyMap<string, string>;
}

/** A given URL -> a setting. Errors: one line without the URL, which may contain a password. */
export function postgresSetting(given: string, password?: string): Result<PostgresSetting, string> {
  if (/^[a-z]+:\/\/(?:[^/?#]*@)?[^/?#@]*,/i.test(given))
    return err("it names several hosts: give one address, which leads to the primary");
  let url: URL;
  let inUrl: string;
  try {
    url = new URL(given);
    inUrl = decodeURIComponent(url.password);
    decodeURIComponent(url.username + url.hostname + url.pathname);
  } catch {
    return err(
      `it is no URL: write ${EXAMPLE}; a port is at most 65535, and in a user or a password, \`#\`, \`/\`, \`?\`, \`@\` and \`%\` are %23, %2F, %3F, %40 and %25`,
    );
  }
  url.password = "";
  const setting = { url: url.href };
  const place = placeOf(setting);
  if (!place.ok) return place;
  const secret = password ?? (inUrl === "" ? undefined : inUrl);
  return ok(secret === undefined ? setting : { ...setting, password: secret });
}

export const hasPassword = (given: string): boolean => {
  try {
    return new URL(given).password !== "" || new URL(given).searchParams.has("password");
  } catch {
    return false;
  }
};

function placeOf({ url: text }: PostgresSetting): Result<ConnectionTarget, string> {
  const url = new URL(text);
  if (url.protocol !== "postgres:" && url.protocol !== "postgresql:")
    return err(`its scheme is \`${url.protocol.slice(0, -1)}\`: write ${EXAMPLE}`);
  const parameters = new Map(url.searchParams);
  const odd = [...parameters.keys()].find((name) => !PARAMETERS.includes(name));
  if (odd === "password") return err("a password does not belong there: see --database-password-file");
  if (odd !== undefined) return err(`\`${odd}\` is not known: it may have ${PARAMETERS.join(", ")}`);
  const mode = parameters.get("sslmode");
  if (mode !== undefined && !(SSL_MODES as readonly string[]).includes(mode))
    return err(`sslmode is \`${mode}\`: it is one of ${SSL_MODES.join(", ")}`);
  const database = decodeURIComponent(url.pathname.slice(1));
  if (database === "" || /[/\0]/.test(database)) return err(`it names no database: write ${EXAMPLE}`);
  const host = parameters.get("host") ?? decodeURIComponent(url.hostname).replace(/^\[(.+)\]$/, "$1");
  const user = parameters.get("user") ?? (decodeURIComponent(url.username) || undefined);
  return ok({ host: host === "" ? "localhost" : host, port: Number(url.port || 5432), database, user, parameters });
}

const isHere = (host: string): boolean => host.startsWith("/") || isLoopback(host);

/** A file named in the URL has the wrong content; the message is for people. */
export class UnusableFile extends Error {}

/** TLS by libpq's sslmode; without one, a remote server must prove its name, and a local one is used without TLS. */
function tlsOf({ host, parameters }: ConnectionTarget) {
  const mode = parameters.get("sslmode") ?? (isHere(host) ? "disable" : "verify-full");
  if (mode === "disable" || host.startsWith("/")) return false;
  const file = (name: string, holds: RegExp) => {
    const path = parameters.get(name);
    if (path === undefined) return undefined;
    const text = readFileSync(path, "utf8");
    if (!holds.test(text))
      throw new UnusableFile(
        `${name} ${path}: there is no PEM of ${name === "sslkey" ? "a private key" : "a certificate"} in it`,
      );
    return text;
  };
  const CERTIFICATE = /-----BEGIN (?:TRUSTED )?CERTIFICATE-----/;
  const [ca, cert, key] = [
    file("sslrootcert", CERTIFICATE),
    file("sslcert", CERTIFICATE),
    file("sslkey", /-----BEGIN [A-Z ]*PRIVATE KEY-----/),
  ];
  return {
    rejectUnauthorized: mode !== "require" || ca !== undefined,
    ...(mode === "verify-full" ? {} : { checkServerIdentity: () => undefined }),
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  };
}

/** The password for a connection from PGPASSFILE, or from ~/.pgpass. pg's types lack this function. */
const filedPassword = ((connection: Connection) =>
  new Promise((resolve) => passwordOf(connection, resolve))) as unknown as () => Promise<string>;

/** The options for pg. Throws if a file of the TLS parameters cannot be read. INVARIANT: `setting` comes from `postgresSetting`. */
export function connectionOf(setting: PostgresSetting) {
  const place = placeOf(setting);
  if (!place.ok) throw new Error(place.error);
  const { host, port, database, user } = place.value;
  const { password } = setting;
  return {
    host,
    port,
    database,
    ...(user === undefined ? {} : { user }),
    ...(password !== undefined ? { password } : process.env["PGPASSWORD"] ? {} : { password: filedPassword }),
    ssl: tlsOf(place.value),
  };
}

/** The database as messages name it. */
export function labelOf(setting: PostgresSetting): string {
  const { protocol, username, host, pathname } = new URL(setting.url);
  const place = placeOf(setting);
  const at = host !== "" || !place.ok ? host : place.value.host;
  return `${protocol}//${username === "" ? "" : `${username}@`}${at}${pathname}`;
}
