import { type StoreFailure, type StoreFailureCode, withCauses } from "../failure.ts";

/** SQLSTATE by its beginning, the longest first (PostgreSQL's appendix of error codes). */
const BY_STATE: readonly (readonly [string, StoreFailureCode, string])[] = [
  ["28", "unavailable", "check the user and the password"],
  ["3D000", "unavailable", "make the database: `createdb NAME`"],
  ["42501", "unavailable", "give the user the rights: `GRANT CREATE ON DATABASE name TO user`"],
  ["3F000", "not_migrated", "start `nodewise api`, which makes the tables"],
  ["42P01", "not_migrated", "start `nodewise api`, which makes the tables"],
  ["42703", "not_migrated", "start `nodewise api`, which makes the tables"],
  ["42883", "not_migrated", "start `nodewise api`, which makes the tables"],
  ["53100", "unavailable", "free disk space on the database's server, then try again"],
  ["53200", "unavailable", "free memory on the database's server, then try again"],
  ["53300", "unavailable", "allow more connections (max_connections), or run fewer API processes"],
  ["53", "unavailable", "free what the database's server lacks, then try again"],
  ["54", "too_large", "send less in one row"],
  ["25006", "unavailable", "the server takes no writes: name the primary"],
  ["40", "unavailable", "others changed the same; try again"],
  ["55P03", "unavailable", "another session holds a lock; try again"],
  ["57014", "unavailable", "it took too long; try again"],
  ["57P", "unavailable", "the server stops or starts; try again"],
  ["08", "unavailable", "check the network to the database's server"],
  ["58", "unavailable", "check the disk of the database's server"],
  ["XX001", "corrupt", "restore the database from a backup"],
  ["XX002", "corrupt", "rebuild the index (REINDEX), or restore the database from a backup"],
  ["22P02", "corrupt", "restore the database from a backup"],
];
/** Node's error codes if the server cannot be reached. */
const NETWORK: Readonly<Record<string, string>> = {
  ECONNREFUSED: "start the server, or check host and port",
  ENOENT: "start the server, or check the folder of its socket",
  ENOTFOUND: "check the name of the host",
  EAI_AGAIN: "check the name of the host",
  EACCES: "make the server's socket writable for this user",
};
const IS_NETWORK = /^(?:E[A-Z]+|EAI_[A-Z]+)$/;
const IS_TLS = /^(?:ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_)/;
/** Messages of pg itself, without a code. `plainly`: their meaning, if pg does not say it. */
const WORDS: readonly (readonly [said: RegExp, advice: string, plainly?: string])[] = [
  [/pool after calling end|Client was closed/, "the history is closed; open it again"],
  [
    /does not support SSL/,
    "the server has no TLS: set it up there, or add `?sslmode=disable` where the network is safe",
  ],
  [
    /establishing an SSL connection/,
    "check that host and port are those of a Postgres server",
    "what answered is no Postgres server",
  ],
  [/Connection terminated|not queryable|connection error/i, "check the server, and try again"],
  [
    /password must be a (?:non-empty )?string|no password/i,
    "give it: PGPASSWORD, PGPASSFILE or --database-password-file",
    "the server asks for a password",
  ],
  [/timeout/i, "check the network to the database's server"],
];

const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim().replace(/\.$/, "");

function classify(error: Error & { code?: unknown; syscall?: unknown }): StoreFailure | null {
  const code = String(error.code ?? "");
  // callers of an API must not see the server's address
  const found = IS_NETWORK.test(code)
    ? [error.syscall, code].filter(Boolean).join(" ")
    : oneLine(error.message) || code;
  const said = (failure: StoreFailureCode, advice: string, what = found): StoreFailure => ({
    code: failure,
    message: `the history failed: ${what}${what.includes(code) ? "" : ` (${code})`}; ${advice}`,
  });
  if (/^[0-9A-Z]{5}$/.test(code) && "severity" in error) {
    const known = BY_STATE.find(([state]) => code.startsWith(state));
    return known === undefined ? null : said(known[1], known[2]);
  }
  if (IS_TLS.test(code))
    return said("unavailable", "name the server's authority with `?sslrootcert=FILE`, or see sslmode");
  if (IS_NETWORK.test(code)) return said("unavailable", NETWORK[code] ?? "check the network to the database's server");
  const words = code === "" ? WORDS.find(([pattern]) => pattern.test(error.message)) : undefined;
  return words === undefined ? null : said("unavailable", words[1], words[2]);
}

export const failureOf = withCauses(classify);
