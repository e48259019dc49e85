import { spawn } from "node:child_process";

/** An API process on a free loopback port. */
export interface ApiProcess {
  readonly pid: number;
  readonly port: number;
  /** Sends SIGTERM and waits for the exit; by then the API has written everything that waited for the history. */
  stop(): Promise<void>;
}

/** Starts `launcher`, a `nodewise.js`, with its history in `history`. Throws if the process exits before it listens. */
export async function startApiProcess(
  launcher: string,
  history: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<ApiProcess> {
  const args = [launcher, "api", "--port", "0", ...history];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"], env: { ...process.env, ...env } });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.once("data", (line: Buffer) => resolve(line.toString().split("\n")[0] as string));
    child.once("exit", (code) => reject(new Error(`the API ended with ${code}`)));
  });
  child.stdout.resume();
  return {
    pid: child.pid as number,
    port: Number(new URL(url).port),
    stop: async () => {
      if (child.exitCode === null) child.kill("SIGTERM");
      await ended;
    },
  };
}
