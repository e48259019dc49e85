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
  /** An administrator's. */
  readonly token: string;
  /** All that it has written so far. */
  said(): string;
  /** Ends it at once, as a power cut would. */
  close(): Promise<void>;
}
export interface DevOptions {
  /** The environment of wrangler.toml. Default: the one at the top. */
  readonly environment?: string;
  /** Where its databases are and stay. Default: a folder that is gone with it. */
  readonly folder?: string;
}

/** Runs the tool that people deploy with, without a word to its maker. Throws what it said when it failed. */
export function wrangler(args: readonly string[], cwd = ROOT): void {
  const { status, stdout, stderr } = spawnSync(process.execPath, [WRANGLER, ...args], options(cwd));
  if (status !== 0) throw new Error(`wrangler ${args.join(" ")}: ${stdout}${stderr}`);
}
const options = (cwd: string) =>
  ({ cwd, encoding: "utf8", env: { ...process.env, CI: "true", WRANGLER_SEND_METRICS: "false" } }) as const;

/** The Worker as `wrangler dev` runs it: the built bundle in workerd, over databases of its own. */
export async function workerDev({ environment, folder: kept }: DevOptions = {}): Promise<Dev> {
  const folder = kept ?? mkdtempSync(join(tmpdir(), "nodewise-worker-"));
  const place = ["--local", "--persist-to", folder, ...(environment === undefined ? [] : ["--env", environment])];
  // a kept folder that is not empty has been migrated before
  if (kept === undefined || readdirSync(folder).length === 0) migrate(folder, place);
  const { text } = newToken();
  const dev = [...place, "--var", `NODEWISE_TOKEN_SHA256:${await webSha256(text)}`];
  const remove = () => {
    if (kept === undefined) rmSync(folder, { recursive: true, force: true });
  };
  return { token: text, ...(await running(dev, ROOT, remove)) };
}

/** All migrations at once: `wrangler d1 migrations apply`, which starts workerd for each, takes five times the processor time. */
function migrate(folder: string, place: readonly string[]): void {
  const applied = readMigrations(join(ROOT, "migrations")).map(
    ({ name, sql }) => `${sql};\nINSERT INTO d1_migrations (name) VALUES ('${name}');`,
  );
  const file = join(folder, "migrations.sql");
  writeFileSync(file, [`${CREATE_TABLE};`, ...applied].join("\n"));
  wrangler(["d1", "execute", "DB", ...place, "--file", file]);
}

/** `wrangler dev` on a free port. */
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
      // it starts workerd, which outlives it when it alone is killed
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
