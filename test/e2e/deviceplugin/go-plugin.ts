import { type ChildProcessWithoutNullStreams, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

const SOURCE = join(import.meta.dirname, "go-plugin");
/** A cold machine fetches the modules, and compiles all of them. */
const BUILD_MS = 240_000;

/** The plugin with one version of grpc-go, and the oldest Go that builds it (1.x). */
export interface GoBuild {
  readonly name: string;
  readonly grpc: string;
  readonly modfile: "go.mod" | "old-grpc.mod";
  readonly leastGo: number;
}
export const GO_BUILDS: readonly GoBuild[] = [
  { name: "grpc-go of today", grpc: "1.75.0", modfile: "go.mod", leastGo: 23 },
  { name: "grpc-go 1.38, which sends a path as :authority", grpc: "1.38.0", modfile: "old-grpc.mod", leastGo: 18 },
];

/** Builds the plugin into `dir`. What is missing for it is told; an error of the compiler is thrown. */
export function buildGoPlugin(
  dir: string,
  { grpc, modfile, leastGo }: GoBuild,
): { program: string } | { missing: string } {
  const version = /go1\.(\d+)/.exec(spawnSync("go", ["version"], { encoding: "utf8" }).stdout ?? "");
  if (version === null) return { missing: "there is no Go toolchain" };
  if (Number(version[1]) < leastGo)
    return { missing: `grpc-go ${grpc} needs Go 1.${leastGo}, here is 1.${version[1]}` };
  const source = join(dir, "source");
  cpSync(SOURCE, source, { recursive: true });
  const env = { ...process.env, GOFLAGS: "-mod=mod", GOTOOLCHAIN: "local" };
  const inSource = { cwd: source, env, timeout: BUILD_MS };
  const fetched = spawnSync("go", ["mod", "download", `-modfile=${modfile}`], inSource);
  if (fetched.status !== 0) return { missing: `the modules of grpc-go ${grpc} cannot be had` };
  const program = join(dir, "plugin");
  execFileSync("go", ["build", `-modfile=${modfile}`, "-o", program, "."], inSource);
  return { program };
}

/** A running plugin of the other language: what it tells, a line each. */
export interface GoPlugin {
  readonly lines: readonly string[];
  list(...devices: readonly string[]): void;
  kill(): Promise<void>;
}

export function startGoPlugin(program: string, dir: string, resource: string, devices: readonly string[]): GoPlugin {
  const child: ChildProcessWithoutNullStreams = spawn(program, ["-dir", dir, "-resource", resource, ...devices]);
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  child.stderr.resume();
  return {
    lines,
    list: (...next) => child.stdin.write(`list ${next.join(" ")}\n`),
    kill: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}
