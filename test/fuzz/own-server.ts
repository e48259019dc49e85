import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const CHILD = fileURLToPath(new URL("../api/child.ts", import.meta.url));

export interface OwnServer {
  readonly url: string;
  /** The folder of the server's history, which may contain other files. */
  readonly dataDir: string;
  readonly child: ChildProcess;
  /** Ends the server, and removes its files. */
  close(): Promise<void>;
}

/** Starts a server in its own process, on a free loopback port. */
export async function ownServer(): Promise<OwnServer> {
  const dataDir = mkdtempSync(join(tmpdir(), "nodewise-fuzz-"));
  const child = spawn(process.execPath, [CHILD, dataDir], { stdio: ["ignore", "pipe", "ignore"] });
  const ended = once(child, "exit");
  const close = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
    rmSync(dataDir, { recursive: true });
  };
  const [line] = (await Promise.race([once(child.stdout, "data"), ended])) as [unknown];
  return { url: String(line).trim(), dataDir, child, close };
}
