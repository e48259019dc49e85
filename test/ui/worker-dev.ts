import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { newToken, webSha256 } from "../../api/http/auth/tokens.ts";
import { readMigrations } from "../../db/migrations.ts";
import { CREATE_TABLE } from "../../db/sqlite/dialect.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const WRANGLER = join(createRequire(import.meta.url).resolve("wrangler/package.json"), "../bin/wrangler.js");
const LONGEST_MS = 120_000;

export interface Dev {
  readonly url: string;
  /** An administrator's token. */
  readonly token: string;
  /** Everything that it has written so far. */
  said(): string;
  /** Kills it with SIGKILL, like a power cut. */
  close(): Promise<void>;
}
export interface DevOptions {
  /** An environment of wrangler.toml; default: the top-level one. */
  readonly environment?: string;
  /** The folder of its databases, which is kept; default: a folder that is removed at the end. */
  readonly folder?: string;
}

/** Runs wrangler, the tool with which people deploy, without telemetry. Throws its output if it fails. */
export function wrangler(args: readonly string[], cwd = ROOT): void {
  const { status, stdout, stderr } = spawnSync(process.execPath, [WRANGLER, ...args], options(cwd));
  if (status !== 0) throw new Error(`wrangler ${args.join(" ")}: ${stdout}${stderr}`);
}
const options = (cwd: string) =>
  ({ cwd, encoding: "utf8", env: { ...process.env, CI: "true", WRANGLER_SEND_METRICS: "false" } }) as const;

/** The Worker as `wrangler dev` runs it: the built bundle in workerd, with its own databases. */
export async function workerDev({ environment, folder: kept }: DevOptions = {}): Promise<Dev> {
  const folder = kept ?? mkdtempSync(join(tmpdir(), "nodewise-worker-"));
  const place = ["--local", "--persist-to", folder, ...(environment === undefined ? [] : ["--env", environment])];
  // an existing folder that is not empty already has the migrations
  if (kept === undefined || readdirSync(folder).length === 0) migrate(folder, place);
  const { text } = newToken();
  const dev = [...place, "--var", `NODEWISE_TOKEN_SHA256:${await webSha256(text)}`];
  const remove = () => {
    if (kept === undefined) rmSync(folder, { recursive: true, force: true });
  };
  return { token: text, ...(await running(dev, ROOT, remove)) };
}

/**
 * Runs all migrations at once: `wrangler d1 migrations apply` starts workerd for each of them and takes five times the
 * CPU time.
 */
function migrate(folder: string, place: readonly string[]): void {
  const applied = readMigrations(join(ROOT, "migrations")).map(
    ({ name, sql }) => `${sql};\nINSERT INTO d1_migrations (name) VALUES ('${name}');`,
  );
  const file = join(folder, "migrations.sql");
  writeFileSync(file, [`${CREATE_TABLE};`, ...applied].join("\n"));
  wrangler(["d1", "execute", "DB", ...place, "--file", file]);
}

/** Runs `wrangler dev` on a free port. */
export async function running(
  args: readonly string[],
  cwd: string,
  atEnd: () => void = () => {},
): Promise<Omit<Dev, "token">> {
  const dev = ["dev", ...args, "--ip", "127.0.0.1", "--port", "0", "--inspector-port", "0"];
  const child = spawn(process.execPath, [WRANGLER, ...dev], {
    ...options(cwd),
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (said += chunk));
  const close = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null && child.pid !== undefined) {
      const ended = once(child, "exit");
      // wrangler starts workerd, which would survive if only wrangler were killed
      process.kill(-child.pid, "SIGKILL");
      await ended;
    }
    atEnd();
  };
  try {
    const url = await addressOf(child, () => said);
    return { url, said: () => said, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function addressOf(child: ChildProcess, said: () => string): Promise<string> {
  return new Promise((done, fail) => {
    const timer = setTimeout(() => fail(new Error(`wrangler dev does not listen: ${said()}`)), LONGEST_MS);
    const hear = (): void => {
      const [, url] = /Ready on (http:\/\/\S+)\s/.exec(said()) ?? [];
      if (url === undefined) return;
      clearTimeout(timer);
      done(url);
    };
    child.stdout?.on("data", hear);
    child.stderr?.on("data", hear);
    child.once("exit", (code) => fail(new Error(`wrangler dev ended with ${code}: ${said()}`)));
  });
}
